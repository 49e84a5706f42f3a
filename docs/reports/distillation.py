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


#: 14 tokens are the whole vocabulary of the quickstart.
TOP_TOKENS = (0, 1, 4, 14)
SEEDS_OF_TOP_TOKENS = (1, 2, 3, 4)


@figures("measured", "slow")
def top_tokens(fig):
    _, teacher, base = models(fig)
    runs = {k: [] for k in TOP_TOKENS}
    for seed in SEEDS_OF_TOP_TOKENS:  # One after another, so that other work slows all of them down.
        for k in TOP_TOKENS:
            line = (f"temper run configs/recipes/distillation.yaml --json --set model.path={base} --set reference.model={teacher} "
                    f"--set seed={seed} --set run_dir={{out}}/run --set steps={STEPS[-1]} --set algorithm.distillation_top_k={k}")
            runs[k].append((fig.json(line), fig.jsonl(line, "run/metrics.jsonl")))

    def mean(values):
        values = list(values)
        return sum(values) / len(values)

    def reward(steps, step):
        return mean(m.reward for m in steps[step - 10:step])

    def divergence(steps):
        return mean(m.kl for m in steps[-10:])

    fig.head("tokens of the teacher", *[f"step {step}" for step in STEPS], "KL to the teacher, steps 41 to 50",
             "bytes/response", "s/step", align="l" + "r" * (len(STEPS) + 3))
    for k, of_k in runs.items():
        length = mean(m.length["mean"] for _, steps in of_k for m in steps)
        fig.row(f"the {k} most likely" if k else "the sampled one",
                *[f"{mean(reward(steps, step) for _, steps in of_k):.3f}" for step in STEPS],
                f"{mean(divergence(steps) for _, steps in of_k):.3f}", f"{(4 + 8 * k) * length:.0f}",
                f"{mean(summary.wall_s for summary, _ in of_k) / STEPS[-1]:.2f}")

    def gain(k, of):
        return [of(steps) - of(sampled) for (_, steps), (_, sampled) in zip(runs[k], runs[0])]

    closer, better = gain(4, divergence), gain(4, lambda steps: reward(steps, STEPS[-1]))
    fig.holds(max(closer) < 0, "with each seed, four tokens bring the student closer to the teacher")
    fig.prose(f"""
With 4 tokens, the KL is lower than with the sampled one by {-max(closer):.3f} to {-min(closer):.3f} over the seeds, and the
reward at step {STEPS[-1]} is higher by {min(better):.3f} to {max(better):.3f}.
""")


@figures("measured", "slow")
def two_teachers(fig):
    _, long, base = models(fig)
    trained = "temper run configs/quickstart.yaml --json --set steps=400 --set task.digits=1 --set run_dir={out}/run"
    short = fig.path(f"temper export {fig.path(trained, 'run')} {{out}}/teacher", "teacher")
    fig.head("teacher of short sums", "of long sums", "right answers, short", "long", "audit", align="llrrl")
    folders, right = {"short": short, "long": long}, {}
    for first, second in (("short", "long"), ("short", "short"), ("long", "long")):
        line = (f"temper run configs/recipes/teachers.yaml --json --set model.path={base} --set reference.teachers.short.model={folders[first]} "
                f"--set reference.teachers.long.model={folders[second]} --set run_dir={{out}}/run")
        steps = fig.jsonl(line, "run/metrics.jsonl")[-10:]
        means = [sum(m.sources[f"reward/{name}"] for m in steps) / len(steps) for name in folders]
        audit = fig.json(f"temper audit {fig.path(line, 'run')} --json")
        right[first, second] = means
        fig.row(f"`{first}`", f"`{second}`", *[f"{mean:.3f}" for mean in means], "clean" if not audit.violations else f"{len(audit.violations)} violations")
    fig.holds(min(right["short", "long"]) > max(min(right["short", "short"]), min(right["long", "long"])) + 0.3,
              "only two teachers teach both")


#: A 32B student on 384 simulated cards, with responses of 7,000 tokens on average.
STUDENT = ("configs/cm384_pangu.yaml", "simulation.model=qwen3-32b", "simulation.rollout.ep=1", "simulation.trainer.ep=1")
DISTILLED = ("algorithm.name=opd", "algorithm.kl=0")
TEACHERS = (
    ("none", ("algorithm.kl=0", "reference.replicas=0")),
    ("Qwen3-32B, as the student", (*DISTILLED, "simulation.reference.model=qwen3-32b")),
    ("DeepSeek-V3, 671B", (*DISTILLED, "simulation.reference.model=deepseek-v3", "simulation.reference.pp=1", "simulation.reference.ep=64")),
)


@figures("exact", "slow")
def teachers(fig):
    fig.head("cards", "teacher", "rollout + teacher + training", "layout of the teacher", "teacher busy", "trained tokens/s", "of no teacher",
             align="llllrrr")
    rates = {}
    for place, mode in (("exclusive", "separate"), ("time-shared", "fused")):
        for name, sets in TEACHERS:
            config, *keys = (*STUDENT, *sets)
            words = "".join(f" --set {key}" for key in keys)
            line = f"temper tune {config} --modes {mode} --eta 2 --effort 24{words} --out {{out}}"
            plan = next(r for r in fig.rows(line, "tune.csv") if r.verdict == "advised")
            run = fig.run(f"{fig.path(line, 'tuned.yaml')} steps=10")
            rates[place, name] = plan.tokens_per_s
            cards = f"{plan.rollout_cards:.0f} + {plan.reference_cards:.0f} + {plan.trainer_cards:.0f}"
            busy = run.utilization.states.get("reference", 0) * run.cards / plan.reference_cards if plan.reference_cards else None
            fig.row(place, name, cards if mode == "separate" else "384", plan.reference_layout or "–", "–" if busy is None else fig.pct(busy, 1),
                    fig.k(plan.tokens_per_s), f"{plan.tokens_per_s / rates[place, 'none']:.2f}x")
    fig.holds(all(rates[place, "none"] >= rates[place, TEACHERS[2][0]] for place in ("exclusive", "time-shared")),
              "a large teacher costs throughput on either kind of cards")
