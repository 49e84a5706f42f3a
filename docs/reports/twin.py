"""Figures of docs/reports/twin.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("measured", "slow")
def which_rule_gets_there(fig):
    line = "temper sweep configs/twin_pangu.yaml --over staleness.rule+staleness.bound=sync/0,exact/2,aggregate/2,drop/2 --target-reward 0.8 --out {out}"
    fig.plot(line, "reward_time.svg", "twin.svg")
    fig.head("rule, eta", "reward 0.5 after", "0.8 after", "0.9 after", "at 10 h", "at 20 h", "60 updates take", "reward then", "max s", "wasted", "length bias")
    for r in fig.rows(line, "sweep.csv"):
        steps = fig.jsonl(line, f"runs/{r.folder.split('/')[-1]}/metrics.jsonl")
        mean = lambda end, of: sum(x.reward for x in steps[max(0, end - of):end]) / min(of, end)
        def after(target):
            n = next((n for n in range(10, len(steps) + 1) if mean(n, 10) >= target), None)
            return "-" if n is None else f"{steps[n - 1].time / 3600:.1f} h ({n})"
        def at(hours):
            return f"{mean(max(1, sum(x.time <= 3600 * hours for x in steps)), 5):.3f}"
        fig.row(f"{r['staleness.rule']}, {r['staleness.bound']:.0f}", after(.5), after(.8), after(.9), at(10), at(20), f"{r.seconds / 3600:.1f} h", f"{r.final_reward:.3f}",
            f"{r.staleness_max:.0f}", fig.pct(r.wasted, 1) if r.wasted else "0", f"{r.bias:.3f}")
