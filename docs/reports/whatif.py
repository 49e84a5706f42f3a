"""Figures of docs/reports/whatif.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("measured", "slow")
def asked_then_really_run(fig):
    two = {"colocated": " --set placement.mode=colocated --set rollout.replicas=2"}
    def really(*sets):
        flags = "".join(f" --set {x}" for x in sets)
        return [f"temper run configs/quickstart.yaml --json --set steps=150{flags} --set run_dir={{out}}/run{n}" for n in (1, 2)]
    def rate(lines):
        return sum(fig.json(x).tokens.trained_per_s for x in lines) / len(lines)
    both = ("placement.mode=colocated", "rollout.replicas=2")
    measured_here = "temper measure configs/quickstart.yaml --out {out}/local.yaml"
    fig.head("recorded run", "change", "unchanged, error", "expected", "really run", "error", "verdict", align="llrrrrl")
    for name, base, changes in [
            ("separate, bound 0", ("staleness.bound=0",), [("staleness.bound=1",), ("staleness.bound=2",), ("staleness.bound=4",)]),
            ("separate, bound 2", ("staleness.bound=2",), [("staleness.bound=0",), ("staleness.bound=4",), ("staleness.bound=2", "rollout.replicas=2"),
                                                         ("staleness.bound=2",) + both]),
            ("colocated, 2 replicas, bound 2", ("staleness.bound=2",) + both, [("staleness.bound=0",) + both])]:
        lines = really(*base)
        rate(lines)
        for change in changes:
            new = [x for x in change if x not in base]
            use = f" --calibration {fig.path(measured_here, 'local.yaml')}" if "placement.mode=colocated" in new else ""
            w = fig.json(f"temper whatif {fig.path(lines[0], 'run1')} --json{use}" + "".join(f" --set {x}" for x in new))
            real = rate(really(*change))
            fig.row(f"{name}: {fig.k(w.recorded.trained_per_s)}", ", ".join(f"`{x}`" for x in new) + (", `--calibration`" if use else ""), fig.gain(1 + w.error),
                fig.k(w.expected.trained_per_s), fig.k(real), fig.gain(w.expected.trained_per_s / real), w.verdict)


@figures("exact", "cheap")
def asked_then_really_run_2(fig):
    recorded = "temper run configs/cm384_pangu.yaml --driver in-process --json --set run_dir={out}/run"
    r = fig.json(recorded)
    w = fig.json(f"temper whatif {fig.path(recorded, 'run')} --set staleness.bound=4 --set rollout.concurrency=4096 --json")
    real = fig.run("configs/cm384_pangu.yaml staleness.bound=4 rollout.concurrency=4096")
    fig.head("", "trained tokens/s", "wall", align="lrr")
    for name, x in (("recorded", w.recorded), ("decided again, unchanged", w.unchanged), ("with the change", w.expected)):
        fig.row(name, f"{x.trained_per_s:,.1f}", f"{x.seconds:,.2f} s")
    fig.row("the change, really run", f"{real.tokens.trained_per_s:,.1f}", f"{real.wall_s:,.2f} s")
    fig.holds(abs(r.tokens.trained_per_s - w.unchanged.trained_per_s) < .1, "unchanged settings give the record exactly")
