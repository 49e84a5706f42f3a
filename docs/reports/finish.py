"""Figures of docs/reports/finish.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

MODES, SEEDS, STEPS = ("keep_kv", "recompute", "finish"), (1, 2, 3), 400
LORA = "--set model.lora='{rank: 8, alpha: 16}' --set algorithm.learning_rate=1.5e-3"
BOUNDS = (1, 2, 3)
#: Seconds of a step of DORA and of a synchronous run: rows P3-479 and P3-478 of the collected publications.
PUBLISHED = {"synchronous": 1213.8, "three versions": 627.6}


def line(mode, seed, more=""):
    return (f"temper run configs/recipes/finish.yaml --json --set run_dir={{out}}/run --set steps={STEPS} --set seed={seed}"
            f" --set checkpoint.every=0 --set samples.share=1 --set rollout.concurrency=8 --set rollout.on_new_weights={mode} {more}")


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def after_a_change(samples):
    """Share of tokens that follow a token of another version."""
    return sum(sum(s.tokens for s in r.segments[1:]) for r in samples) / sum(s.tokens for r in samples for s in r.segments)


@figures("measured", "slow")
def learns(fig):
    fig.head("quickstart with small updates", "`on_new_weights`", "tokens after a change", "mean reward of the last 100 steps, seeds 1 to 3", align="llrr")
    for weights, more in (("all weights", ""), ("LoRA", LORA)):
        for mode in MODES:
            lines = [line(mode, seed, more) for seed in SEEDS]
            changed = mean(after_a_change(fig.jsonl(one, "run/samples.jsonl")) for one in lines)
            rewards = [mean(step.reward for step in fig.jsonl(one, "run/metrics.jsonl")[-100:]) for one in lines]
            fig.row(weights, f"`{mode}`", fig.pct(changed, 1), ", ".join(f"{r:.3f}" for r in rewards))
            if mode == "finish":
                fig.holds(changed == 0, "no token follows one of another version")


@figures("exact", "slow")
def costs(fig):
    config = "configs/recipes/finish-32b.yaml"
    synchronous = fig.run(f"{config} staleness.bound=0").wall_s / 12
    fig.head("32B, 128 cards", *[f"bound {bound}" for bound in BOUNDS], align="lrrr")
    rows = {mode: [fig.run(f"{config} staleness.bound={bound} rollout.on_new_weights={mode}").wall_s / 12 for bound in BOUNDS] for mode in MODES}
    for mode, seconds in rows.items():
        fig.row(f"`{mode}`", *[f"{s:.0f} s" for s in seconds])
    two = rows["finish"][BOUNDS.index(2)]
    published = PUBLISHED["synchronous"] / PUBLISHED["three versions"]
    fig.prose(f"\nA synchronous step (bound 0) takes {synchronous:.0f} s, {synchronous / two:.2f} times that of `finish` at bound 2, with three versions "
              f"at once. Published: {published:.2f} times.\n")
    fig.holds(two < synchronous, "the order of the published rows")
