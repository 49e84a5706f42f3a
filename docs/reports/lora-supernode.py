"""Figures of docs/reports/lora-supernode.md. `./x figures` runs these functions (docs/figures.py)."""
import re

import figures_gain as gain
from figures_recipe import figures

ATTENTION = "[q_a_proj,q_b_proj,kv_a_proj_with_mqa,kv_b_proj,o_proj]"
EVERYWHERE = ATTENTION[:-1] + ",gate_proj,up_proj,down_proj]"
HOST, HERE = " simulation.trainer.optimizer_on_host=true", " simulation.trainer.optimizer_on_host=false"


def lora(rank, targets):
    return f" model.lora.rank={rank} model.lora.targets={targets}"


#: GB of a device for context and libraries (kFrameworkReserve of sim_hw/memory/ledger.hpp).
RESERVE = 1.07

#: What is trained. The most states, of all weights and of rank 64 on every layer, are in host memory.
TRAINED = {"all weights": HOST,
           "rank 8, attention": lora(8, ATTENTION) + HERE, "rank 64, attention": lora(64, ATTENTION) + HERE,
           "rank 8, every layer": lora(8, EVERYWHERE) + HERE, "rank 64, every layer": lora(64, EVERYWHERE) + HOST}
BATCHES = (512, 2048)


def flags(sets):
    return "".join(f" --set '{s}'" for s in sets.split())


def checked(fig, config, sets):
    """GB of each phase, and the lines about weights, as `temper check` prints them."""
    lines = fig.text(f"temper check {config}{flags(sets)}").splitlines()
    found = (re.match(r"#   (\w+: \w+) +([0-9.]+) +[0-9.]+", line) for line in lines)
    memory = {m[1]: float(m[2]) for m in found if m}
    said = {word: next((line for line in lines if line.startswith(f"# {word}: ")), "") for word in ("adapter", "weights")}
    return memory, said


def seconds(said):
    return float(re.search(r"publication by .* takes ([0-9.]+) s", said["weights"])[1])


@figures("exact", "sampled")
def cards(fig):
    fig.head("trained", "parameters", "trainer", "trainer between steps", "KV cache", "version on a device", "publication, separate",
             "reshard, fused", align="lrrrrrrr")
    for name, sets in TRAINED.items():
        memory, said = checked(fig, gain.SHARED, sets)
        apart, published = checked(fig, gain.SEPARATE, sets)
        words = said["adapter"].split()
        size = f"{float(words[2]):,.0f} M" if words else "all"
        # Besides weights, an engine without a cache has the reserve of a device.
        version = f"{float(words[8]) / 1e3:.2f} GB" if words else f"{memory['shared: free_kv'] - RESERVE:.1f} GB"
        fig.row(name, size, f"{memory['shared: train']:.1f} GB", f"{memory['shared: onload']:.1f} GB",
                f"{memory['shared: kv_alloc'] - memory['shared: free_kv']:.1f} GB", version,
                f"{seconds(published) * 1000:.0f} ms", f"{seconds(said) * 1000:.0f} ms")


def run(fig, config, batch, bound, sets):
    return fig.run(f"{config} steps=4 algorithm.groups_per_update={batch} staleness.bound={bound}{sets}")


@figures("exact", "slow")
def deployments(fig):
    fig.head("batch", "trained", "synchronous, separate", "separate, bound 1", "fused", "fused, bound 1", "fused over separate",
             "bound 1: fused over separate", align="rlrrrrrr")
    for batch in BATCHES:
        for name, sets in TRAINED.items():
            cells = []
            for bound in (0, 1):
                rates = {split: run(fig, gain.SEPARATE, batch, bound, f" {gain.SPLITS[split]}{sets}").tokens.trained_per_s
                         for split in gain.SPLITS}
                split = max(rates, key=rates.get)
                cells.append((split, rates[split], run(fig, gain.SHARED, batch, bound, sets).tokens.trained_per_s))
            (of, apart, shared), (of_later, later, stale) = cells
            fig.row(f"{batch} x 16", name, f"{fig.k(apart)} ({of})", f"{fig.k(later)} ({of_later})", fig.k(shared), fig.k(stale),
                    f"{shared / apart:.2f}x", f"{stale / later:.2f}x")
