"""Figures of docs/reports/distillation.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

STEPS = (10, 20, 30, 40, 50)
SEEDS = (1, 2)
RECIPES = (
    ("`opd`: teacher alone", ""),
    ("`grpo`: reward alone", "--set algorithm.name=grpo --set algorithm.kl=0.001 --set \"reference.model=''\""),
    ("teacher and reward", "--set algorithm.reward_weight=1"),
)


def models(fig):
    """Reward of the teacher, its folder, and that of the base that it and all students start from."""
    trained = "temper run configs/quickstart.yaml --json --set steps=400 --set run_dir={out}/run"
    run = fig.path(trained, "run")
    teacher, base = f"temper export {run} {{out}}/teacher", f"temper export {run}@0 {{out}}/base"
    return fig.json(trained).reward.last, fig.path(teacher, "teacher"), fig.path(base, "base")


@figures("measured", "slow")
def students(fig):
    reward_of_teacher, teacher, base = models(fig)
    fig.head("recipe", *[f"step {step}" for step in STEPS], "seconds", "KL to the teacher, last", align="l" + "r" * (len(STEPS) + 2))
    means = {}
    for name, sets in RECIPES:
        runs = []
        for seed in SEEDS:
            line = (f"temper run configs/recipes/distillation.yaml --json --set model.path={base} --set reference.model={teacher} "
                    f"--set seed={seed} --set run_dir={{out}}/run --set steps={STEPS[-1]} {sets}")
            runs.append((fig.json(line), fig.jsonl(line, "run/metrics.jsonl")))
        rewards = [sum(sum(m.reward for m in steps[step - 10:step]) / 10 for _, steps in runs) / len(runs) for step in STEPS]
        seconds = sum(summary.wall_s for summary, _ in runs) / len(runs)
        kl = sum(steps[-1].kl for _, steps in runs) / len(runs)
        means[name] = rewards
        fig.row(name, *[f"{reward:.3f}" for reward in rewards], f"{seconds:.0f}", f"{kl:.3f}" if "grpo" not in name else "")
    alone = means[RECIPES[0][0]]
    fig.holds(alone[-1] > 2 * alone[0], "a student learns from the teacher alone")
    fig.prose(f"""
The teacher, 400 steps of the quickstart, ends with a reward of {reward_of_teacher:.3f}.
""")
