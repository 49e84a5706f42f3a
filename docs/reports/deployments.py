"""Figures of docs/reports/deployments.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("exact", "slow")
def compared(fig):
    line = "temper ladder configs/cm384_pangu.yaml --effort 24 --steps 8 --out {out}"
    found = fig.rows(line, "ladder.csv")
    four = {(r.rung, r.lengths): r.tokens_per_s for r in fig.rows(
        "temper ladder configs/cm384_x4_pangu.yaml --rung fusion-eta1 --rung fusion-eta4 --lengths 8000:32768:3 --lengths 16000:65536:5"
        " --effort 16 --steps 8 --out {out}", "ladder.csv")}
    cell = {(r.rung, r.lengths): r for r in found}
    lengths = list(dict.fromkeys(r.lengths for r in found))
    rungs = list(dict.fromkeys(r.rung for r in found))
    names = {"separate": "synchronous, separate cards", "colocated": "synchronous, co-located", "one-step-off": "one step off, separate cards",
             "fusion": "RL Fusion"}
    names |= {f"fusion-eta{n}": f"RL Fusion + StaleSync, eta {n}" for n in (1, 2, 3, 4)}
    names |= {f"separate-eta{n}": f"StaleSync alone, separate, eta {n}" for n in (2, 4)}
    published = {"separate": "14.0k", "fusion": "25.0k 1.79", "fusion-eta1": "35.0k 2.50 (eta not known)"}
    plain = lambda r, l: cell[r, l].tokens_per_s
    means = lambda r, l: cell[r, l].means_per_s
    def table(rate):
        fig.head("deployment", *lengths, "published", align="l" + "r" * len(lengths) + "l")
        for r in rungs:
            fig.row(names[r], *[fig.k(rate(r, l)) + ("" if r == "separate" else f" {rate(r, l) / rate('separate', l):.2f}") for l in lengths],
                published.get(r, ""))
    table(plain)
    fig.prose("""
With gradients during generation, and with cards of RL Fusion and of the co-located deployment that switch one by one:
""")
    table(means)
    fig.prose("""
Busy share of the cards and mean staleness, of the first table:
""")
    fig.head("deployment", *lengths, align="l" + "r" * len(lengths))
    for r in rungs:
        fig.row(names[r], *[f"{fig.pct(cell[r, l].busy)} {cell[r, l].staleness_mean:.2f}" for l in lengths])
    def span(a, b, rate=plain, digits=2):
        all_of = [rate(a, l) / rate(b, l) for l in lengths]
        return f"{min(all_of):.{digits}f} to {max(all_of):.{digits}f}"
    def busy(r):
        all_of = [cell[r, l].busy for l in lengths]
        return f"{100 * min(all_of):.0f} to {100 * max(all_of):.0f} %"
    three = (("separate", 14e3), ("fusion", 25e3), ("fusion-eta1", 35e3))
    ratios = {l: [plain(r, l) / p for r, p in three] for l in lengths}
    all_ratios = [x for of in ratios.values() for x in of]
    nearest = min(lengths, key=lambda l: sum(abs(x - 1) for x in ratios[l]))
    shipped, fused = [fig.run(f"configs/{c}.yaml algorithm.groups_per_update=512 steps=30 staleness.bound=0").tokens.trained_per_s for c in ("cm384_pangu", "cm384_pangu_fused")]
    modes = [cell[r, l]["mode"] for r in rungs if r.startswith("fusion") for l in lengths]
    gained = lambda r: " to ".join(fig.gain(f([means(r, l) / plain(r, l) for l in lengths]), 0) for f in (min, max))
    fig.prose(f"""
`fused` won {modes.count("fused")} of the {len(modes)} RL Fusion cells and `hybrid`, with which it shares its runs, {modes.count("hybrid")}. If a larger eta is no faster, or the options are slower, the search was too short: the larger space contains the smaller one.

## Agreement with published figures

Published for one supernode (known from secondary sources): 14.0k tokens/s, 25.0k with RL Fusion, 35.0k with StaleSync in addition; claimed: doubled utilization, and up to 50 % more throughput. Lengths, batch, split and eta are not published.

- **Agrees: the order of the deployments, and utilization.** {busy("separate")} busy become {busy("fusion")}; twice is claimed.
- **Agrees: what one step of StaleSync adds to RL Fusion**, {span("fusion-eta1", "fusion")} times; 1.40, "up to 50 %", is published. If their eta was larger, it does not agree: eta 2 adds {span("fusion-eta2", "fusion")} times, eta 4 {span("fusion-eta4", "fusion")} times.
- **Nearest at {nearest}**: there the errors of the three published figures are {", ".join(fig.gain(x, 0) for x in ratios[nearest])}.
- **What RL Fusion gains in tokens/s depends on the batch.** At this one, 512 x 16, it is {span("fusion", "separate")} times a tuned separate baseline and {span("fusion", "colocated")}
  times a tuned co-located one; 1.79 is published. With the split and the layouts as shipped, neither tuned, it is {fused / shipped:.2f} times ([simulated supernode](simulated-supernode.md)). A batch of 512 x 16 is limited by its longest responses, which more cards do not shorten. Batches that fill the slots gain more: [by batch](#by-batch) below, and [RL Fusion](rl-fusion.md#against-separate-cards) over batches, lengths and splits.
- **With gradients during generation, the gain is smaller**: {span("fusion", "separate", means)} times the separate baseline with the same option. The option gives that baseline {gained("separate")}, one step off {gained("one-step-off")}, RL Fusion {gained("fusion")}, and RL Fusion at eta 1 {gained("fusion-eta1")}: a trainer with exclusive cards can always begin, one with time-shared cards only when an engine releases some.
- **Absolute figures are {min(all_ratios):.1f} to {max(all_ratios):.1f} times the published ones.** Cards are healthy, experts loaded equally, and frameworks
  cost nothing beyond the fitted overheads. That weights take only the time of the links has little influence
  ([simulated supernode](simulated-supernode.md)).
- **Four supernodes**, 1,536 cards and a batch of 2048 x 16 (`configs/cm384_x4_pangu.yaml`, 16 runs to a search): with RL Fusion and
  StaleSync {fig.k(four["fusion-eta1", "16000:65536:5"])} at eta 1 and {fig.k(four["fusion-eta4", "16000:65536:5"])} at eta 4 with a mean of 16K, {fig.k(four["fusion-eta1", "8000:32768:3"])} and {fig.k(four["fusion-eta4", "8000:32768:3"])} with one of 8000; 127k is
  published, which is {127 / 35:.2f} times that of one; here eta 1 has {four["fusion-eta1", "16000:65536:5"] / plain("fusion-eta1", "16000:65536:5"):.2f} and {four["fusion-eta1", "8000:32768:3"] / plain("fusion-eta1", "8000:32768:3"):.2f} times one.
- **Not published, but found here:** a tuned one-step-off run on separate cards is {span("one-step-off", "fusion")} times as fast as RL
  Fusion alone, and StaleSync on tuned separate cards at eta 4 is {span("separate-eta4", "fusion-eta4")} times as fast as with RL Fusion. RL Fusion saves the search for a split, since it needs none, and staleness: it is faster if eta is 0 or 1 and without gradients during generation.""")
    fig.holds(all(plain("separate", l) < plain("colocated", l) < plain("fusion", l) < plain("fusion-eta1", l) for l in lengths), "the order of the deployments agrees")


@figures("exact", "slow")
def by_batch(fig):
    fig.head("batch", "synchronous, separate", "synchronous, co-located", "RL Fusion", "over separate", "over co-located",
             "with the options: over separate", "over co-located", align="rrrrrrrr")

    def split(r):
        cards = f"{r.engines * r.engine_cards:.0f}"
        return {"fused": f"{cards} shared", "colocated": f"{cards} shared + {r.reference_cards:.0f}"}.get(
            r["mode"], f"{cards} + {r.reference_cards:.0f} + {r.trainer_cards:.0f}")
    for batch in (512, 2048):
        separate, colocated, fusion = fig.rows(
            "temper ladder configs/cm384_pangu.yaml --rung separate --rung colocated --rung fusion --lengths 8000:32768:10 --effort 12"
            f" --steps 5 --set algorithm.groups_per_update={batch} --out {{out}}", "ladder.csv")
        fig.row(f"{batch} x 16", *[f"{fig.k(r.tokens_per_s)} ({split(r)})" for r in (separate, colocated, fusion)],
                *[f"{fusion.tokens_per_s / r.tokens_per_s:.2f}x" for r in (separate, colocated)],
                *[f"{fusion.means_per_s / r.means_per_s:.2f}x" for r in (separate, colocated)])


@figures("exact", "slow")
def staleness_share_cards_given(fig):
    bounds = ("temper sweep configs/cm384_pangu.yaml --fit --steady 12 --over staleness.bound=0,1,2,3,4,6,8"
              " --over placement.mode+placement.rollout_cards+placement.reference_cards+rollout.replicas=separate/192/48/3,hybrid/128/64/2,fused/0/0/3"
              " --any rollout.concurrency=2048,3072,4096,8192 --any simulation.rollout.tp=2,4 --out {out}")
    cards = ("temper sweep configs/cm384_pangu.yaml --fit --steady 10 --set simulation.rollout.tp=2"
             " --over placement.rollout_cards+rollout.replicas=96/3,128/4,160/5,192/6,224/7,256/8,288/9"
             " --over staleness.bound=0,1,2,4 --any rollout.concurrency=2048,4096 --out {out}")
    fig.plot(bounds, "sweep.svg", "deployments-eta.svg")
    fig.plot(cards, "sweep.svg", "deployments-share.svg")
    fig.say("""![tokens/s and utilisation over the staleness bound](../images/deployments-eta.svg)

![tokens/s and utilisation over the cards given to rollout](../images/deployments-share.svg)""")
