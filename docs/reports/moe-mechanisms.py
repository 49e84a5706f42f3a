"""Figures of docs/reports/moe-mechanisms.md. `./x figures` runs these functions (docs/figures.py)."""
import shlex

from figures_recipe import figures

CONFIG = "configs/cm384_pangu_fused.yaml"
STEPS = 10
# The same run on Atlas A2: as many devices, one die per card, eight to a node.
ATLAS = ("placement.cards=768", "'simulation.cluster=\"\"'", "'simulation.clusters=[{hardware: ascend-910b, cards: 768}]'")

# Mechanism, preset, row of `temper ablation` with the published gain, row of the sweep without it and with it.
ROWS = [
    ("hierarchical all-to-all", "expert-path", None, 0, 1),
    ("zero-redundancy copies", "token-copies", None, 0, 1),
    ("Adaptive Pipe", "adaptive-pipe", None, 0, 1),
    ("EDPB, E: experts migrate", "edpb-experts", None, 0, 1),
    ("EDPB, D: samples by attention, against arrival", "edpb-samples", None, 0, 2),
    ("the same, against dealing by tokens", "edpb-samples", None, 1, 2),
    ("EDPB, P: modules count as layers", "edpb-layers", None, 0, 1),
    ("EP-group balance loss, against one over all replicas", "balance-loss", None, 3, 4),
    ("the same, a weak loss", "balance-loss", None, 0, 1),
    ("the same, a strong loss", "balance-loss", None, 6, 7),
    ("activations: selective", "activations", None, 0, 1),
    ("activations: swap", "activations", None, 0, 2),
    ("activations: auto", "activations", None, 0, 3),
    ("activations: auto, shared host links", "activations-shared-hosts", None, 0, 1),
    ("activations: auto, micro-batch doubled", "activations", "selective recompute and swap: micro-batch doubled", 0, 4),
    ("host dispatch", "host-dispatch", "host-device dispatch", 0, 1),
    ("the same, micro-batches of 256 tokens", "host-dispatch-short", "host-device dispatch, small batches", 0, 1),
    ("AlltoAllV counts reused", "split-counts", "AlltoAllV counts reused: stalls of a layer 4 -> 1", 0, 1),
    ("operator acceleration", "operators", "operator acceleration", 0, 1),
    ("all of these", "all", "all together: throughput", 0, 1),
]
NOT_BUILT = [
    ("DistQueue", "filled by the DistQueue issue"),
]


def rates(fig, preset, sets):
    """Tokens/s of the rows of a sweep; None where the run is refused."""
    line = f"temper sweep {CONFIG} --preset configs/presets/mechanisms/{preset}.yaml --steps {STEPS} --json"
    runs = fig.json(line + "".join(f" --set {s}" for s in sets))
    return [r.tokens_per_s if r.end == "ran" else None for r in runs]


def cells(fig, rate, off, on):
    if rate[off] is None or rate[on] is None:
        return [fig.k(rate[off]) if rate[off] else "refused", fig.k(rate[on]) if rate[on] else "refused", "–"]
    return [fig.k(rate[off]), fig.k(rate[on]), fig.gain(rate[on] / rate[off])]


@figures("exact", "slow")
def in_a_run(fig):
    published = {r.mechanism: r.get("published") for r in fig.json("temper ablation --json")}
    fig.head("mechanism", "preset", "published", "CM384: off", "on", "effect", "Atlas A2: off", "on", "effect", align="llrrrrrrr")
    for mechanism, preset, row, off, on in ROWS:
        gain = published[row] if row else None
        fig.row(mechanism, f"`{preset}`", fig.gain(1 + gain) if gain is not None else "–",
                *cells(fig, rates(fig, preset, ()), off, on), *cells(fig, rates(fig, preset, ATLAS), off, on))
    for mechanism, why in NOT_BUILT:
        fig.row(mechanism, why, *["–"] * 7)


# Exponents of Zipf loads with which the busiest of 32 devices, experts in order, has 1.50 and 2.56
# times the mean load: layers 3 to 5, and the mean of all layers, of DeepSeek-R1 as TensorRT-LLM
# measured it (examples/ep_load_balancer/README.md).
SKEWS = [("balanced", None), ("moderate", 0.35), ("strong", 0.63)]
TREATED = [("none", ""), ("64 redundant experts", " simulation.rollout.redundant_experts=64"),
           ("predicted placement", " simulation.experts.placement=predicted"),
           ("both", " simulation.rollout.redundant_experts=64 simulation.experts.placement=predicted")]
SEPARATE = "configs/cm384_pangu.yaml"
RUNS = [f"{SEPARATE} staleness.bound=0", f"{SEPARATE} staleness.bound=2",
        f"{SEPARATE} staleness.bound=0 algorithm.groups_per_update=2048",
        f"{CONFIG} staleness.bound=0", f"{CONFIG} staleness.bound=2"]


def checked(fig, sets, name, default):
    """A figure of `temper check`: mean of the versions of a run."""
    text = fig.text(f"temper check {CONFIG} --set steps={STEPS}" + "".join(f" --set {shlex.quote(s)}" for s in sets))
    return next((float(line.split(name)[1].split()[0]) for line in text.splitlines() if name in line), default)


def imbalance(fig, sets):
    """Of the engines and of the trainer."""
    return [f"{checked(fig, sets, name, 1):.2f}" for name in ("busiest experts of engines", "busiest experts, as placed")]


@figures("exact", "slow")
def skewed_experts(fig):
    fig.head("loads", "against it", "engines", "trainer", "separate, bound 0", "separate, bound 2", "separate, 2048 x 16",
             "fused, bound 0", "fused, bound 2", "bound 2, separate", "bound 2, fused", "fused over separate", align="ll" + 10 * "r")
    for skew, exponent in SKEWS:
        for against, sets in TREATED if exponent else TREATED[:2]:
            loads = f" simulation.experts.loads=zipf simulation.experts.exponent={exponent}" if exponent else ""
            rate = [fig.run(f"{run} steps={STEPS}{loads}{sets}").tokens.trained_per_s for run in RUNS]
            fig.row(skew, against, *imbalance(fig, (loads + sets).split()), *map(fig.k, rate), fig.gain(rate[1] / rate[0]),
                    fig.gain(rate[4] / rate[3]), fig.gain(rate[3] / rate[2]))


# Large batches, separate and shared cards; bounds as above.
LARGE = [(SEPARATE, ("staleness.bound=0", "algorithm.groups_per_update=2048")), (CONFIG, ("staleness.bound=0",)),
         (CONFIG, ("staleness.bound=2",))]
# Loads of training, and capacity factors there. The engines have the strong skew.
TRAINED = [("strong", (), (None, 2, 1.25, 1)),
           ("balanced", ("simulation.trainer.experts={loads: balanced}",), (None, 1.25, 1))]


@figures("exact", "slow")
def dropped_copies(fig):
    fig.head("loads of training", "capacity factor", "dropped", "trainer", "separate, 2048 x 16", "fused, bound 0",
             "fused, bound 2", "fused over separate", align="l" + 7 * "r")
    for loads, trained, factors in TRAINED:
        for factor in factors:
            sets = ("simulation.experts.loads=zipf", f"simulation.experts.exponent={SKEWS[2][1]}", *trained,
                    *((f"simulation.trainer.capacity_factor={factor}",) if factor else ()))
            rate = []
            for config, of_run in LARGE:
                line = f"temper run {config} --driver in-process --json --set run_dir={{out}}/run"
                every = (*of_run, f"steps={STEPS}", *sets)
                rate.append(fig.json(line + "".join(f" --set {shlex.quote(s)}" for s in every)).tokens.trained_per_s)
            dropped = f"{checked(fig, sets, 'copies dropped by experts', 0):.1f} %"
            fig.row(loads, f"{factor or 'none'}", dropped, imbalance(fig, sets)[1], *map(fig.k, rate),
                    fig.gain(rate[1] / rate[0]))
