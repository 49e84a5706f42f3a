"""Figures of docs/reports/rollout-formats.md. `./x figures` runs these functions (docs/figures.py)."""
import figures_gain as gain
from figures_recipe import figures

EIGHT = " simulation.rollout.weights=int8 simulation.rollout.kv_cache=int8"
DRAFT = EIGHT + " simulation.trainer.mtp=true simulation.rollout.speculation.depth=1 simulation.rollout.speculation.acceptance="
#: Acceptance is assumed: the ends of the range that `temper validate` takes for rows that do not state it.
ENGINES = {"BF16": "", "INT8": EIGHT, "INT8 + MTP, p = 0.5": DRAFT + "0.5", "INT8 + MTP, p = 0.9": DRAFT + "0.9"}
BATCHES = (512, 2048)
#: Those of the surface of RL Fusion's gain, and two more for fast engines.
SPLITS = gain.SPLITS | {
    "64 + 32 + 288": "placement.rollout_cards=64 rollout.replicas=2 simulation.trainer.pp=9",
    "32 + 32 + 320": "placement.rollout_cards=32 rollout.replicas=1 simulation.trainer.pp=10"}
# Of the configuration: layers of the model, elements that latent attention caches in each, tokens of a response on average.
LAYERS, LATENT, CONTEXT = 61, 576, 7061


def flags(sets):
    return "".join(f" --set {s}" for s in sets.split())


def cost(name):
    """Parameters of `temper cost kind=serving` for these engines."""
    formats = "" if name == "BF16" else " weights=int8 cache=int8"
    return formats + (f" draft=mtp depth=1 acceptance={name.split()[-1]}" if "MTP" in name else "")


@figures("exact", "sampled")
def engine(fig):
    fig.head("engines", "KV cache of a device", "tokens of a replica", "publication", "decode step", "tokens per step", align="lrrrrr")
    for name, sets in ENGINES.items():
        lines = fig.text(f"temper check {gain.SHARED}{flags(sets)}").splitlines()
        held = {phase: float(line.split()[3]) for line in lines for phase in ("kv_alloc", "free_kv") if f"shared: {phase}" in line}
        cache = held["kv_alloc"] - held["free_kv"]
        each = LATENT * (LAYERS + ("MTP" in name)) * (2 if name == "BF16" else 1)
        published = next(line for line in lines if "publication by relay takes" in line).split(" takes ")[1].split(";")[0]
        step = fig.json(f"temper cost kind=serving hardware=cm384 cards=32 model=pangu-ultra-moe-718b tp=4 dp=16 ep=64 batch={16 * 50} "
                        f"context={CONTEXT}{cost(name)} --json").metrics[0].value
        tokens = 1 + float(name.split()[-1]) if "MTP" in name else 1
        fig.row(name, f"{cache:.1f} GB", f"{cache * 1e6 / each:.0f}k",
                published, f"{step * 1000:.1f} ms", f"{tokens:.1f}")


def rate(fig, config, sets):
    return fig.run(f"{config} steps=4 {sets}").tokens.trained_per_s


def best(fig, sets):
    """The fastest of the splits of separate cards, and its tokens/s."""
    rates = {split: rate(fig, gain.SEPARATE, f"{sets} {more}") for split, more in SPLITS.items()}
    split = max(rates, key=rates.get)
    return split, rates[split]


#: Method, depth, assumed acceptance, and responses of a replica above which the switch disables the drafts: a module that
#: follows the policy, a layer that does not, and a look-up.
DRAFTS = (("MTP", "mtp", 1, 0.7, 64), ("EAGLE", "eagle", 3, 0.5, 32), ("n-gram", "ngram", 3, 0.25, 16), ("n-gram", "ngram", 5, 0.25, 16))


@figures("exact", "slow")
def speculation(fig):
    fig.head("batch", "drafts", "disable_by_batch_size", "separate", "RL Fusion", align="llrrr")
    for batch in BATCHES:
        def rates(drafts=""):
            sets = f"steps=2 staleness.bound=0 algorithm.groups_per_update={batch}{EIGHT}{drafts}"
            return [fig.run(f"{config} {sets}").tokens.trained_per_s for config in (gain.SEPARATE, gain.SHARED)]

        base = rates()
        fig.row(f"{batch} x 16", "none", "–", *(fig.k(r) for r in base))
        for name, method, depth, acceptance, most in DRAFTS:
            for switch in (None, most):
                sets = dict(method=method, depth=depth, acceptance=acceptance)
                if switch is not None:
                    sets["disable_by_batch_size"] = switch
                drafts = " simulation.trainer.mtp=true" if method == "mtp" else ""
                drafts += "".join(f" simulation.rollout.speculation.{key}={value}" for key, value in sets.items())
                fig.row(f"{batch} x 16", f"{name}, depth {depth}, p = {acceptance}", switch or "–",
                        *(f"{fig.k(r)} ({r / b:.2f}x)" for r, b in zip(rates(drafts), base)))


@figures("exact", "slow")
def deployments(fig):
    fig.head("batch", "engines", "synchronous, separate", "separate, bound 1", "RL Fusion", "RL Fusion, bound 1",
             "fusion over separate", "bound 1: fusion over separate", align="rlrrrrrr")
    for batch in BATCHES:
        for name, formats in ENGINES.items():
            sets = [f"algorithm.groups_per_update={batch} staleness.bound={bound}{formats}" for bound in (0, 1)]
            (of, apart), (of_later, later) = (best(fig, s) for s in sets)
            shared, stale = (rate(fig, gain.SHARED, s) for s in sets)
            fig.row(f"{batch} x 16", name, f"{fig.k(apart)} ({of})", f"{fig.k(later)} ({of_later})", fig.k(shared), fig.k(stale),
                    f"{shared / apart:.2f}x", f"{stale / later:.2f}x")
