"""Figures of docs/reports/learning-under-staleness.md. `./x figures` runs these functions (docs/figures.py)."""
import figures_gain as gain
from figures_recipe import figures

BOUNDS, NAMES, SEEDS = (0, 2, 8), ("grpo", "decoupled_ppo", "tis"), (1, 2, 3)
STEPS = (11, 22, 33, 44)
MOMENT = 150  # Seconds.
CARDS = 2  # States are shares of the time of all cards; the trainer has one.
FULL = 9  # Steps until samples are as old as the largest bound allows.


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def rows_of():
    """Bounds and algorithms; `tis` is `grpo` where no sample is old."""
    return [(bound, name) for bound in BOUNDS for name in NAMES if (bound, name) != (0, "tis")]


def runs_of(fig, bound, name):
    """metrics.jsonl of three seeds. A checkpoint of this model is 1.6 GB, so none is kept."""
    return [fig.jsonl(f"temper run configs/smollm2.yaml --json --set run_dir={{out}}/run --set seed={seed} --set staleness.bound={bound} "
                      f"--set algorithm.name={name} --set placement.mode=separate --set model.compute_dtype=bfloat16 "
                      f"--set checkpoint.every=0 && rm -r {{out}}/run/checkpoints", "run/metrics.jsonl") for seed in SEEDS]


def score(steps, at):
    return steps[at - 1].evaluation.pass_1


def score_after(steps, seconds):
    """Linear between two evaluations; after the last one, that."""
    before, after = steps[0], None
    for step in steps:
        if "evaluation" in step:
            if step.time > seconds:
                after = step
                break
            before = step
    if after is None:
        return before.evaluation.pass_1
    part = (seconds - before.time) / (after.time - before.time)
    return before.evaluation.pass_1 + part * (after.evaluation.pass_1 - before.evaluation.pass_1)


@figures("measured", "slow")
def sums(fig):
    fig.head("bound", "algorithm", *[f"step {at}" for at in STEPS], "by seed", "44 steps take", f"after {MOMENT} s", align="rl" + "r" * 7)
    curves = {}
    for bound, name in rows_of():
        runs = runs_of(fig, bound, name)
        fig.row(bound, f"`{name}`", *[f"{mean(score(run, at) for run in runs):.2f}" for at in STEPS],
                ", ".join(f"{score(run, STEPS[-1]):.2f}" for run in runs), f"{mean(run[-1].time for run in runs):.0f} s", f"{mean(score_after(run, MOMENT) for run in runs):.2f}")
        curves[bound, name] = [(mean(run[at - 1].time for run in runs), mean(score(run, at) for run in runs)) for at in (1, *STEPS)]
    fig.picture(picture({bound: curves[bound, "decoupled_ppo"] for bound in BOUNDS}), "learning-under-staleness.svg")
    fig.measured()


@figures("measured", "slow")
def ages(fig):
    fig.head("bound", "algorithm", "largest age", "mean age", "effective samples", "log ratio by age", "clipped tokens", "entropy", "replaced groups of a step",
             "trainer waits for responses", align="rl" + "r" * 8)
    for bound, name in rows_of():
        late = [step for run in runs_of(fig, bound, name) for step in run[FULL:]]
        ratio = lambda field: mean(step.ratio[field] for step in late)
        waits = CARDS * mean(step.states["wait-data"] for step in late)
        fig.row(bound, f"`{name}`", max(step.staleness.max for step in late), f"{mean(step.staleness.mean for step in late):.1f}", fig.pct(ratio("effective")),
                f"{ratio('stale'):.3f}", fig.pct(mean(step.clip_fraction for step in late), 1), f"{mean(step.entropy for step in late):.2f}",
                f"{mean(step.groups.filtered for step in late):.0f}", fig.pct(waits))
    fig.measured()


# ---------------------------------------------------------------------------------- picture
WIDTH, HEIGHT, TOP, LEFT = 560, 260, 60, 60
COLORS = {0: "#0072b2", 2: "#d55e00", 8: "#009e73"}


def picture(curves):
    """An SVG: the held-out score over wall time, for each bound."""
    last = max(x for points in curves.values() for x, _ in points)
    x_of = lambda seconds: LEFT + WIDTH * seconds / last
    y_of = lambda share: TOP + HEIGHT * (1 - share)
    width, height = WIDTH + LEFT + 30, TOP + HEIGHT + 50
    body = [(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222" role="img">'),
            "<title>Held-out score over wall time, by staleness bound</title>", gain.DARK, '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">SmolLM2-135M learns sums: held-out score</text>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        body += [f'<line x1="{LEFT}" y1="{y_of(share):.1f}" x2="{LEFT + WIDTH}" y2="{y_of(share):.1f}" stroke="#ddd"/>',
                 f'<text x="{LEFT - 6}" y="{y_of(share) + 4:.1f}" text-anchor="end">{share:g}</text>']
    for minute in range(int(last // 60) + 1):
        body.append(f'<text x="{x_of(60 * minute):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{minute}</text>')
    body.append(f'<text x="{LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 38}" text-anchor="middle">minutes</text>')
    for at, (bound, points) in enumerate(curves.items()):
        places, x = [(x_of(x), y_of(y)) for x, y in points], LEFT + 120 * at
        body += [gain.line(places, COLORS[bound], ""), *gain.marks(places, COLORS[bound], "circle"), gain.line([(x, 40), (x + 24, 40)], COLORS[bound], ""),
                 f'<text x="{x + 30}" y="44">bound {bound}</text>']
    return "\n".join([*body, "</svg>", ""])
