"""Figures of docs/reports/forecast.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_program import ROOT
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


@figures("measured", "slow")
def slow_tool(fig):
    agent = f"cd {ROOT} && PATH={ROOT}/build/python/bin:$PATH PYTHONPATH=python/src {fig.program.path}"
    config = "python/examples/slow_tool.yaml"
    calibration = fig.path(f"{agent} measure {config} --out {{out}}/tool.yaml", "tool.yaml")
    p = fig.json(f"{agent} forecast {config} --set steps=60 --check 2 --json --calibration {calibration} --out {{out}}/checked --over staleness.bound=0,1,2,4")
    fig.head("bound", "forecast tokens/s", "measured", "error", "noise", "`wait-tools`, forecast", "measured", align="rrrrrrr")
    for bound, r in zip((0, 1, 2, 4), p.runs):
        f, m = r.predicted, r.measured
        fig.row(bound, f"{f.trained_per_s:,.0f}", f"{m.trained_per_s:,.0f}", fig.gain(1 + r.error), fig.pct(r.noise, 1),
                fig.pct(f.states["wait-tools"], 1), fig.pct(m.states["wait-tools"], 1))
    fig.holds(all(abs(r.error) < 0.1 for r in p.runs), "every error is below 10 %")
