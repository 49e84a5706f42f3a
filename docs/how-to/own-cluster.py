"""Figures of docs/how-to/own-cluster.md. `./x figures` runs these functions (docs/figures.py)."""
import re

from figures_recipe import figures


@figures("exact", "cheap")
def cluster(fig):
    line = "temper cost kind=decode_step model=docs/cluster/my-model/config.json hardware=docs/cluster/my-h100.yaml batch=64 context=4096 cards=2 tp=2"
    fig.say("    $ " + line.replace("hardware=", "\\\n        hardware=") + "\n" + "\n".join(("    " + x).rstrip() for x in fig.text(line).strip().splitlines()))


@figures("exact", "sampled")
def cards_two_kinds(fig):
    fig.head("line", "way", "weights on their way", "over the line per update", "trained tokens/s", "mean staleness", align="llrrrr")
    config = "configs/cm384_h800_qwen3_235b.yaml"
    def publication(sets):
        text_of = fig.text(f"temper check {config} " + " ".join(f"--set {s}" for s in sets.split()))
        return float(re.search(r"publication by .* takes ([0-9.]+) s", text_of)[1])
    seen = {}
    for way, bandwidths in (("relay", (200, 50, 12.5, 1.25)), ("broadcast", (200, 50))):
        for bandwidth in bandwidths:
            if fig.quick and (way, bandwidth) != ("relay", 50):
                continue
            sets = f"simulation.between.bandwidth={bandwidth:g}GB/s simulation.publication.mode={way}"
            r = fig.run(f"{config} {sets}")
            seen[way, bandwidth] = r.tokens.trained_per_s
            plane = next(p for p in r.network.planes if p.plane == "between clusters")
            fig.row(f"{8 * bandwidth:g} Gb/s", way, f"{publication(sets):.1f} s", f"{plane.bytes_per_update / 1e9:.0f} GB",
                fig.k(r.tokens.trained_per_s), f"{r.staleness.mean:.2f}")
