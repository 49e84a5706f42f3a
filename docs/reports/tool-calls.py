"""Figures of docs/reports/tool-calls.md. `./x figures` runs these functions (docs/figures.py)."""
import figures_gain as gain
from figures_recipe import figures

TOOLS = " simulation.tools."
TURNS = (f"{TOOLS}turn.mean=1000{TOOLS}turn.p99_over_median=4{TOOLS}result.mean=400{TOOLS}result.p99_over_median=4"
         f"{TOOLS}latency.p99_over_median=8{TOOLS}latency.cap=2h{TOOLS}latency.mean=")
#: Mean latency of a call, and what it sets. Without tools, the same lengths are one turn.
LATENCIES = {"no tools": "", "none": f"{TURNS}1ms", "10 s": f"{TURNS}10s", "60 s": f"{TURNS}60s", "300 s": f"{TURNS}300s"}
CHUNKED = " simulation.rollout.chunked_prefill=true"
#: Responses that an engine may have at once: those of all batches that the bound admits.
MANY = " rollout.concurrency=65536"
CELLS = ((512, (0, 1, 2, 4)), (2048, (0, 1)))


def run(fig, config, batch, bound, sets, prefill=CHUNKED, slots=MANY):
    """Whole turns of cards: at a bound, cards in turn train one more step than it per turn."""
    steps = 4 if bound == 0 else 2 * (bound + 1)
    return fig.run(f"{config} steps={steps} algorithm.groups_per_update={batch} staleness.bound={bound}{slots}{prefill}{sets}")


def best(fig, batch, bound, sets, **options):
    """The fastest of the splits of separate or hybrid cards, and its run."""
    runs = {split: run(fig, gain.SEPARATE, batch, bound, f"{sets} {more}", **options) for split, more in gain.SPLITS.items()}
    return max(runs.items(), key=lambda item: item[1].tokens.trained_per_s)


def rate(r):
    return r.tokens.trained_per_s


def share(r, *states):
    return sum(r.utilization.states.get(s, 0) for s in states)


@figures("exact", "sampled")
def calls(fig):
    said = next(line for line in fig.text("temper check configs/recipes/tools-supernode.yaml").splitlines() if line.startswith("# tools: "))
    fig.prose(f"`temper check` says: {said[9:]}.")


@figures("exact", "slow")
def placements(fig):
    fig.head("batch", "bound", "latency", "separate", "its split", "hybrid", "fused", "fused over separate", align="rrrrlrrr")
    for batch, bounds in CELLS:
        for bound in bounds:
            for name, sets in LATENCIES.items():
                split, apart = best(fig, batch, bound, sets)
                _, lent = best(fig, batch, bound, sets + " placement.mode=hybrid")
                fused = run(fig, gain.SHARED, batch, bound, sets)
                fig.row(f"{batch} x 16", bound, name, fig.k(rate(apart)), split, fig.k(rate(lent)), fig.k(rate(fused)),
                        f"{rate(fused) / rate(apart):.2f}x")


@figures("exact", "slow")
def cards(fig):
    states = ("wait-tools", "decode", "train")
    fig.head("bound", "latency", *(f"separate: {s}" for s in states), *(f"fused: {s}" for s in states), align="rrrrrrrr")
    for bound in (0, 2):
        for name, sets in LATENCIES.items():
            both = (best(fig, 512, bound, sets)[1], run(fig, gain.SHARED, 512, bound, sets))
            fig.row(bound, name, *(fig.pct(share(r, s), 1) for r in both for s in states))


@figures("exact", "slow")
def kept(fig):
    bounds = (0, 1, 2, 4, 8)
    fig.head("placement", "latency", *(f"bound {b}" for b in bounds), align="lr" + "r" * len(bounds))
    for place in ("separate", "fused"):
        rates = {name: [rate(best(fig, 512, b, sets)[1] if place == "separate" else run(fig, gain.SHARED, 512, b, sets)) for b in bounds]
                 for name, sets in LATENCIES.items()}
        for name in ("10 s", "60 s", "300 s"):
            fig.row(place, name, *(fig.pct(r / plain) for r, plain in zip(rates[name], rates["none"])))


@figures("exact", "slow")
def prefill(fig):
    fig.head("placement", "bound", "steps of their own", "chunked", "gain", align="lrrrr")
    for bound in (0, 2):
        for place, measure in (("separate, 224 + 32 + 128", gain.SEPARATE), ("fused", gain.SHARED)):
            own, chunked = (rate(run(fig, measure, 512, bound, LATENCIES["10 s"], prefill=p)) for p in ("", CHUNKED))
            fig.row(place, bound, fig.k(own), fig.k(chunked), fig.gain(chunked / own))


#: Experts over 32 dies in every engine, in 8 bits.
WIDE = " simulation.rollout.ep=32 simulation.rollout.weights=int8 simulation.rollout.kv_cache=int8"
#: A configuration, and its cards that generate.
WIDE_PLACES = {"separate": (f"{gain.SEPARATE} placement.rollout_cards=256 simulation.trainer.pp=6{WIDE}", 256),
               "fused": (f"{gain.SHARED}{WIDE}", 384)}
#: Cards of an engine, where it prefills, and what that sets.
INSTANCES = ((32, "chunked", CHUNKED), (32, "chunks of 256 tokens", f"{CHUNKED} simulation.rollout.prefill_tokens=256"),
             (64, "chunked", CHUNKED), (64, "16 cards", " simulation.rollout.prefill_cards=16"),
             (128, "steps of their own", ""), (128, "chunked", CHUNKED), (128, "16 cards", " simulation.rollout.prefill_cards=16"),
             (128, "32 cards", " simulation.rollout.prefill_cards=32"))


@figures("exact", "slow")
def instances(fig):
    fig.head("placement", "latency", "cards of an engine", "prefill", "tokens/s", "ms per output token", "decoding", "prefilling",
             align="lrrlrrrr")
    for place, (config, cards) in WIDE_PLACES.items():
        for latency in ("no tools", "10 s"):
            for size, name, sets in INSTANCES:
                r = run(fig, f"{config} rollout.replicas={cards // size}", 512, 2, LATENCIES[latency], prefill=sets)
                fig.row(place, latency, size, name, fig.k(rate(r)), f"{1e3 * r.engines.token_s:.0f}", fig.pct(r.engines.decode),
                        fig.pct(r.engines.prefill, 1))


@figures("exact", "slow")
def interrupted(fig):
    shares = (0, 0.02, 0.1)
    fig.head("latency", *(f"return_share {s:g}" for s in shares), align="r" + "r" * len(shares))
    for name in ("10 s", "60 s", "300 s"):
        fig.row(name, *(fig.k(rate(run(fig, gain.SHARED, 512, 2, f"{LATENCIES[name]} placement.return_share={s}",
                                       slots=" rollout.concurrency=2048"))) for s in shares))
