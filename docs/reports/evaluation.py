"""Figures of docs/reports/evaluation.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("measured", "slow")
def quickstart(fig):
    def asked(every):
        line = f"temper run configs/quickstart.yaml --set evaluation.every={every} --set evaluation.problems=200 --set run_dir={{out}}/run --json"
        return line, fig.json(line), fig.jsonl(line, "run/metrics.jsonl")
    line, r, metrics = asked(100)
    fig.head("version", "held out, pass@1", "train reward, mean since the one before", "passed at", align="rrrr")
    before = 0
    for p in r.evaluation.points:
        since = [m.reward for m in metrics if before < m.step <= p.step]
        fig.row(p.step, f"{p.pass_1:.3f}", f"{sum(since) / len(since):.3f}" if since else "", f"{p.at_s:.0f} s")
        before = p.step
    best = r.evaluation.best
    again = fig.json(f"temper eval {fig.path(line, 'run/summary.json').parent}@best --json")
    fig.holds(again.pass_1 == best.pass_1, "the best checkpoint gives the same figure again")
    fig.prose(f"""
The best is version {best.step} with {best.pass_1:.3f}; `temper eval RUN@best`, in processes of its own, gives {again.pass_1:.3f} again.
""")


@figures("measured", "slow")
def quickstart_2(fig):
    fig.head("`evaluation.every`", "evaluations", "`evaluate`", "share of card time", "for each", "wall", "last pass@1", align="rrrrrrr")
    for every in (0, 300, 100, 50):
        r = fig.json(f"temper run configs/quickstart.yaml --set evaluation.every={every} --set evaluation.problems=200 --set run_dir={{out}}/run --json")
        e = r.evaluation
        if every == 0:
            fig.row("0 (never)", 0, "", "", "", f"{r.wall_s:.0f} s", "")
        else:
            fig.row(every, len(e.points), f"{e.card_s:.1f} s", fig.pct(e.share, 2), f"{1000 * e.card_s / len(e.points):.0f} ms", f"{r.wall_s:.0f} s", f"{e.points[-1].pass_1:.3f}")
