"""Figures of docs/reports/scale.md. `./x figures` runs these functions (docs/figures.py)."""
import math

import figures_gain as gain
from figures_recipe import figures

CONFIG = "configs/cm384_x4_pangu.yaml"
#: Supernodes of 384 cards, and the steps of a measured run.
SIZES = {1: 10, 4: 10, 16: 10, 64: 4, 256: 2}
SIMULATED = (1, 4, 16, 64)
STEPS = 6
GROUPS = 512  # Of a supernode and step.


def hardware(fig, supernodes):
    """Supernodes as in cm384-x4.yaml, joined by RDMA."""
    return fig.path(f"sed 's/^supernodes: .*/supernodes: {supernodes}/' configs/hardware/cm384-x4.yaml > {{out}}/cluster.yaml", "cluster.yaml")


def settings(fig, supernodes, steps, groups=None):
    """Cards, engines and batch in proportion to the supernodes, or a given batch."""
    return [f"simulation.cluster={hardware(fig, supernodes)}", f"placement.cards={384 * supernodes}",
            f"placement.rollout_cards={224 * supernodes}", f"placement.reference_cards={32 * supernodes}",
            f"rollout.replicas={7 * supernodes}", f"reference.replicas={supernodes}", f"reward.replicas={4 * supernodes}",
            f"simulation.reward.pool={128 * supernodes}", f"algorithm.groups_per_update={groups or GROUPS * supernodes}", f"steps={steps}"]


def run(fig, supernodes, groups=None, more=""):
    return fig.run(" ".join([CONFIG, *settings(fig, supernodes, STEPS, groups)]) + more)


def usage(fig, supernodes, steps):
    sets = "".join(f" --set {s}" for s in settings(fig, supernodes, steps))
    return fig.usage(f"temper run {CONFIG} --driver in-process --json --set run_dir={{out}}/run{sets}")


def number(n):
    return f"{n:,}"


@figures("measured", "slow")
def time_and_memory(fig):
    rows = [(n, steps, usage(fig, n, steps)) for n, steps in [*SIZES.items(), (16, 100)]]
    fig.head("cards", "engines", "steps", "responses", "wall time", "time of a response", "memory", "memory of a response of a step", align="rrrrrrrr")
    points = []
    for n, steps, u in rows:
        batch = GROUPS * n * 16
        micro = 1e6 * u.user / (batch * steps)
        fig.row(number(384 * n), number(7 * n), steps, number(batch * steps), f"{u.wall:.1f} s", f"{micro:.1f} µs", f"{u.mib * 1.048576:.0f} MB",
                f"{u.mib * 1048576 / batch:.0f} B")
        points.append((384 * n, micro, u.mib))
    fig.picture(picture(points[:len(SIZES)]), "scale.svg")
    fig.say("\n![processor time of a response and memory, over the cards](../images/scale.svg)")
    fig.measured()


@figures("exact", "slow")
def more_cards(fig):
    fig.head("cards", "batch", "trained tokens/s", "of a card", "busy", "step", "publication", "of card time", "the head: responses/s", "token ids and log-probs", align="rrrrrrrrrr")
    for groups in (None, 2048):
        for n in SIMULATED:
            if groups and n not in (16, 64):
                continue
            r = run(fig, n, groups)
            batch = (groups or GROUPS * n) * 16
            fig.row(number(384 * n), number(batch), fig.k(r.tokens.trained_per_s), f"{r.tokens.trained_per_s_per_card:.1f}", fig.pct(r.utilization.busy),
                    f"{r.wall_s / r.steps:.0f} s", f"{1e3 * r.staleness.publish_lag_mean_s:.0f} ms", fig.pct(r.utilization.states['weight-sync'], 2),
                    f"{batch * r.steps / r.wall_s:.1f}", f"{8 * r.tokens.generated_per_s / 1e6:.1f} MB/s")


# ---------------------------------------------------------------------------------- picture
WIDTH, HEIGHT, TOP, LEFT = 560, 260, 70, 60
LINES = (("#0072b2", "processor time of a response, µs", 1), ("#d55e00", "memory of the process, MB", 2))


def picture(points):
    """An SVG with logarithmic axes: cards, and both quantities."""
    decades = range(5)
    x_of = lambda cards: LEFT + WIDTH * math.log(cards / 300) / math.log(120000 / 300)
    y_of = lambda value: TOP + HEIGHT * (1 - math.log10(value) / decades[-1])
    width, height = WIDTH + LEFT + 30, TOP + HEIGHT + 50
    body = [(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222" role="img">'),
            "<title>Time and memory of a simulated run over its cards</title>", gain.DARK, '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">A simulated run in one process, on one core</text>']
    for decade in decades:
        y = y_of(10 ** decade)
        body += [f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}" stroke="#ddd"/>',
                 f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(10 ** decade)}</text>']
    for cards, _, _ in points:
        body.append(f'<text x="{x_of(cards):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{number(cards)}</text>')
    body.append(f'<text x="{LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 38}" text-anchor="middle">cards</text>')
    for at, (color, name, field) in enumerate(LINES):
        places, x = [(x_of(p[0]), y_of(p[field])) for p in points], LEFT + 240 * at
        body += [gain.line(places, color, ""), *gain.marks(places, color, "circle"), gain.line([(x, 40), (x + 24, 40)], color, ""),
                 f'<text x="{x + 30}" y="44">{name}</text>']
    return "\n".join([*body, "</svg>", ""])
