"""What time-shared cards gain over separate ones: the surface of docs/reports/rl-fusion.md, and its picture.

A cell is a batch, a distribution of lengths and a staleness bound. In each, the separate baseline runs with every split
of SPLITS, so that it is known as shipped and with its best split. Nothing here is fitted to published figures.
"""
import html
import math

SEPARATE, SHARED = "configs/cm384_pangu.yaml", "configs/cm384_pangu_fused.yaml"
ONE_BY_ONE = " placement.switching=one_by_one stragglers.prepare=true"
BATCHES = (512, 1024, 2048, 4096)
SHIPPED = "224 + 32 + 128"  # Cards of rollout + reference + trainer.
SPLITS = {"288 + 32 + 64": "placement.rollout_cards=288 rollout.replicas=9 simulation.trainer.ep=16",
          "256 + 32 + 96": "placement.rollout_cards=256 rollout.replicas=8 simulation.trainer.pp=6",
          SHIPPED: "",
          "192 + 32 + 160": "placement.rollout_cards=192 rollout.replicas=6 simulation.trainer.pp=10",
          "160 + 32 + 192": "placement.rollout_cards=160 rollout.replicas=5 simulation.trainer.ep=16",
          "128 + 32 + 224": "placement.rollout_cards=128 rollout.replicas=4 simulation.trainer.ep=8",
          "96 + 32 + 256": "placement.rollout_cards=96 rollout.replicas=3"}
RESPONSE = "simulation.response."
LENGTHS = {"7000:32768:8": "", "2000:8192:8": f"{RESPONSE}mean=2000 {RESPONSE}cap=8192",
           "8000:32768:3": f"{RESPONSE}mean=8000 {RESPONSE}p99_over_median=3"}


class Cell:
    """Trained tokens/s of every deployment in one cell."""

    def __init__(self, fig, lengths, batch, bound, steps):
        self.lengths, self.batch = lengths, batch
        sets = f"{LENGTHS[lengths]} algorithm.groups_per_update={batch} staleness.bound={bound} steps={steps}"

        def separate(more):
            return {split: fig.run(f"{SEPARATE} {sets} {of_split}{more}").tokens.trained_per_s
                    for split, of_split in SPLITS.items()}

        self.plain, self.prepared = separate(""), separate(" stragglers.prepare=true")
        turns = fig.run(f"{SHARED} {sets}")
        self.together = turns.tokens.trained_per_s
        self.one_by_one = fig.run(f"{SHARED} {sets}{ONE_BY_ONE}").tokens.trained_per_s
        self.closed_form = closed_form(turns.utilization.states)

    @property
    def shipped(self):
        return self.plain[SHIPPED]

    @property
    def best(self):
        return max(self.plain.values())

    @property
    def best_prepared(self):
        return max(self.prepared.values())


def closed_form(states):
    """(sqrt(G) + sqrt(T))^2 / (G + T), with the card time of generation (G), and of training and scoring (T)."""
    generation, training = states["decode"] + states["prefill"], states["train"] + states["reference"]
    return (math.sqrt(generation) + math.sqrt(training)) ** 2 / (generation + training)


# ---------------------------------------------------------------------------------- picture
PANEL, HEIGHT, TOP, LEFT, GAP = 250, 320, 144, 56, 52
LOW, HIGH = 1.0, 3.0
# Color, dashes, marker, name, value of a cell. Colors as in the plots of `temper sweep`.
LINES = [("#0072b2", "6 4", "", "switch together, over separate as shipped", lambda c: c.together / c.shipped),
         ("#0072b2", "", "circle", "switch together, over separate with its best split", lambda c: c.together / c.best),
         ("#009e73", "6 4", "", "one by one, over separate as shipped", lambda c: c.one_by_one / c.shipped),
         ("#009e73", "", "circle", "one by one, over separate with its best split", lambda c: c.one_by_one / c.best),
         ("#d55e00", "", "square", "one by one, over the best split with prepared gradients", lambda c: c.one_by_one / c.best_prepared),
         ("#888888", "2 3", "", "closed form", lambda c: c.closed_form)]
DARK = ('<style>@media (prefers-color-scheme: dark) {svg {fill: #ddd} [fill="#fff"] {fill: #0d1117} '
        '[stroke="#ddd"] {stroke: #3d444d} [stroke="#222"] {stroke: #ddd}}</style>')


def picture(cells, published):
    """An SVG with a panel for each distribution of lengths: gain over the batch."""
    width = LEFT + len(LENGTHS) * PANEL + (len(LENGTHS) - 1) * GAP + 20
    body = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 54}" '
            f'viewBox="0 0 {width} {TOP + HEIGHT + 54}" font-family="sans-serif" font-size="12" fill="#222" role="img">',
            "<title>Gain of time-shared over separate cards at bound 0</title>", DARK,
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{LEFT}" y="22" font-size="15" font-weight="bold">Trained tokens/s of time-shared over separate cards at bound 0, 384 cards</text>']
    names = [*LINES, ("#222", "1 4", "", f"published: {published:.2f}x, without batch, lengths and split", None)]
    for at, (color, dashes, marker, name, _) in enumerate(names):
        x, y = LEFT + at % 2 * 440, 44 + at // 2 * 18
        body += [line([(x, y - 4), (x + 30, y - 4)], color, dashes), *marks([(x + 15, y - 4)], color, marker),
                 f'<text x="{x + 38}" y="{y}">{html.escape(name)}</text>']
    for at, lengths in enumerate(LENGTHS):
        body += panel(LEFT + at * (PANEL + GAP), lengths, [c for c in cells if c.lengths == lengths], published)
    return "\n".join([*body, "</svg>", ""])


def panel(left, lengths, cells, published):
    """The lines of one distribution of lengths."""
    def x_of(batch):
        return left + math.log2(batch / BATCHES[0]) / math.log2(BATCHES[-1] / BATCHES[0]) * PANEL

    def y_of(gain):
        return TOP + (HIGH - gain) / (HIGH - LOW) * HEIGHT

    mean, cap, tail = lengths.split(":")
    out = [f'<text x="{left}" y="{TOP - 12}">mean {int(mean):,}, cap {int(cap):,}, p99/median {tail}</text>']
    for quarters in range(round(LOW * 4), round(HIGH * 4) + 1):
        y = y_of(quarters / 4)
        out += [line([(left, y), (left + PANEL, y)], "#ddd", ""),
                f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{quarters / 4:g}x</text>']
    for batch in BATCHES:
        out.append(f'<text x="{x_of(batch):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{batch:,}</text>')
    out += [f'<text x="{left + PANEL / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">prompts of a batch, 16 responses each</text>',
            line([(left, y_of(published)), (left + PANEL, y_of(published))], "#222", "1 4")]
    for color, dashes, marker, _, value in LINES:
        points = [(x_of(c.batch), y_of(value(c))) for c in cells]
        out += [line(points, color, dashes), *marks(points, color, marker)]
    return out


def line(points, color, dashes):
    dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{path}" stroke="{color}"{dashes} stroke-width="2" fill="none"/>'


def marks(points, color, marker):
    if marker == "circle":
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{color}"/>' for x, y in points]
    if marker == "square":
        return [f'<rect x="{x - 3.3:.1f}" y="{y - 3.3:.1f}" width="6.6" height="6.6" fill="{color}"/>' for x, y in points]
    return []
