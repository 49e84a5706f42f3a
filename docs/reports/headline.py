"""Figures of docs/reports/headline.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

CONFIGURATIONS = ["cm384_pangu", "cm384_pangu_fused", "cm384_x4_pangu", "a3_128_r1_671b", "a3_64_qwen3_235b_32k",
                  "cm384_h800_qwen3_235b"]


@figures("exact", "cheap")
def configurations(fig):
    fig.head("configuration", "cards", "bound", "steps", "trained tokens/s", "per card", "MFU", "busy", "virtual time",
             align="lrrrrrrrr")
    for name in CONFIGURATIONS:
        r = fig.json(f"temper run configs/{name}.yaml --driver in-process --json --set run_dir={{out}}/run")
        fig.row(f"`{name}`", r.cards, r.staleness.bound, r.steps, fig.k(r.tokens.trained_per_s),
                f"{r.tokens.trained_per_s_per_card:.0f}", fig.pct(r.mfu.mfu, 1), fig.pct(r.utilization.busy),
                f"{r.wall_s / 3600:.2f} h")
