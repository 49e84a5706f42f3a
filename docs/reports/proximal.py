"""Figures of docs/reports/proximal.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

STEPS = (50, 100, 200)
SEEDS = (1, 2, 3)
NAMES = ("grpo", "decoupled_ppo", "a3po")


@figures("measured", "slow")
def learns(fig):
    """Reward of the quickstart with four minibatches per step."""
    fig.head("bound", "algorithm", *[f"step {step}" for step in STEPS], f"by seed at step {STEPS[-1]}", "clipped tokens",
             align="rl" + "r" * (len(STEPS) + 2))
    for bound in (2, 8):
        for name in NAMES:
            runs = [fig.jsonl(f"temper run configs/quickstart.yaml --json --set run_dir={{out}}/run --set steps={STEPS[-1]} "
                              f"--set algorithm.name={name} --set algorithm.minibatches=4 --set staleness.bound={bound} "
                              f"--set seed={seed}", "run/metrics.jsonl") for seed in SEEDS]
            rewards = {step: [sum(m.reward for m in steps[step - 10:step]) / 10 for steps in runs] for step in STEPS}
            clipped = sum(m.clip_fraction for steps in runs for m in steps) / sum(len(steps) for steps in runs)
            fig.row(bound, f"`{name}`", *[f"{sum(rewards[step]) / len(SEEDS):.2f}" for step in STEPS],
                    ", ".join(f"{reward:.2f}" for reward in rewards[STEPS[-1]]), f"{100 * clipped:.1f} %")
