"""Figures of docs/reports/forecast.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("measured", "slow")
def forecast_then_measured(fig):
    calibration = fig.path("temper measure configs/quickstart.yaml --out {out}/local.yaml", "local.yaml")
    settings = "separate/1/0,separate/1/1,separate/1/2,separate/1/4,separate/2/2,colocated/1/2,colocated/2/0,colocated/2/2"
    p = fig.json(f"temper forecast configs/quickstart.yaml --set steps=150 --check 2 --json --calibration {calibration} --out {{out}}/checked"
             f" --over placement.mode+rollout.replicas+staleness.bound={settings}")
    fig.head("placement, replicas, bound", "forecast tokens/s", "measured", "error", "noise", "busy, forecast", "measured", "staleness, forecast", "measured", align="lrrrrrrrr")
    for setting, r in zip(settings.split(","), p.runs):
        f, m = r.predicted, r.measured
        fig.row(setting.replace("/", ", "), fig.k(f.trained_per_s), fig.k(m.trained_per_s), fig.gain(1 + r.error), fig.pct(r.noise, 1), fig.pct(f.busy, 1), fig.pct(m.busy, 1),
            f"{f.staleness_mean:.2f}", f"{m.staleness_mean:.2f}")
    fig.prose(f"""
Mean absolute error of trained tokens/s: {fig.pct(p.mean_error, 1)}. Of {p.pairs} pairs that were measured apart by more than the noise, {p.ranked} are in
the right order.""")
