"""Figures of docs/reports/tensors.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

RUNS = [("cm384_pangu", "separate cards"), ("cm384_pangu_fused", "fused cards"), ("cm384_x4_pangu", "four supernodes")]
STEPS = 5
LAYERS, EXPERTS = 61 - 3, 8  # Layers of the model with experts, and experts of a token (configs/models/pangu-ultra-moe-718b.yaml).
ROUTES = LAYERS * EXPERTS * 4
# Setting, and what it is.
COLUMNS = [
    ({}, "none"),
    ({"per_token": f"{LAYERS * EXPERTS}B"}, "routes, 1 byte each"),
    ({"per_token": f"{ROUTES}B"}, "routes, 4 bytes each"),
    ({"per_token": f"{10 * ROUTES}B"}, "ten times that"),
    ({"per_response": "60MB"}, "60 MB a response"),
    ({"per_response": "60MB", "link_share": 0.01}, "the same, 1 % of the links"),
]


def run(fig, config, tensors):
    return fig.run(" ".join([f"configs/{config}.yaml", f"steps={STEPS}", *(f"simulation.tensors.{k}={v}" for k, v in tensors.items())]))


def plane(summary, name):
    """Bytes of the trainer on a plane, per step."""
    return sum(p.roles.get("trainer", 0) for p in summary.network.planes if p.plane == name) / summary.steps


def amount(value):
    return f"{value / 1e12:.2f} TB" if value >= 1e12 else f"{value / 1e9:.1f} GB"


@figures("exact", "slow")
def simulated(fig):
    fig.head("run", "tensors", "bytes a step", "tokens/s", "s of a step", "reading, s", "share", "engines' hosts, GB", "supernode", "rdma",
             align="llrrrrrrrr")
    for config, what in RUNS:
        without = run(fig, config, {})
        for tensors, name in COLUMNS:
            r = run(fig, config, tensors)
            host = r.memory.rollout.host
            step = r.wall_s / r.steps
            row = [what if not tensors else "", name]
            if not tensors:
                fig.row(*row, "", fig.k(r.tokens.trained_per_s), f"{step:,.1f}", "", "", f"{host.peak_bytes / 1e9:.1f}", "", "")
                continue
            t = r.tensors
            fig.holds(t.stored_bytes == t.fetched_bytes + t.dropped_bytes + t.held_bytes, "no byte is lost")
            # What the trainer sends besides is the same.
            sent = [plane(r, name) - plane(without, name) for name in ("supernode", "rdma")]
            fig.row(*row, amount(t.fetched_bytes_per_update), fig.k(r.tokens.trained_per_s), f"{step:,.1f}", f"{t.fetch_s_per_update:.3f}",
                    fig.pct(t.fetch_s_per_update / step, 3), f"{host.peak_bytes / 1e9:.1f} ({host.predicted_bytes / 1e9:.1f})",
                    *[amount(s) for s in sent])
    fig.holds(abs(ROUTES * 32768 / 60e6 - 1) < 0.02, "routes with 4 bytes each take 60 MB for 32K tokens")
