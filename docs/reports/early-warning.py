"""Figures of docs/reports/early-warning.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

CHOSEN_ON, SHOWN_ON = range(11, 16), range(1, 6)  # seeds
RECENT = 10  # steps of a mean, as in orchestrator/watch/alarms.hpp
LIMITS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
COLLAPSES = (
    ("lag", "bound 16, `objective: naive`", 150,
     "--set staleness.bound=16 --set algorithm.objective=naive --set algorithm.kl=0"),
    ("learning rate", "bound 16, `decoupled_ppo`, learning rate 6e-4", 200,
     "--set staleness.bound=16 --set algorithm.name=decoupled_ppo --set algorithm.learning_rate=6e-4 --set algorithm.kl=0"),
)
AT_ONCE = ("learning rate", "bound 16, `decoupled_ppo`, learning rate 1e-3", 150,
           "--set staleness.bound=16 --set algorithm.name=decoupled_ppo --set algorithm.learning_rate=1e-3 --set algorithm.kl=0")
HEALTHY = (
    ("quickstart", "bound 2", 300, ""),
    ("quickstart, stale", "bound 8", 300, "--set staleness.bound=8"),
)
SCALED = "--set algorithm.scale_by_effective_samples=true"


def command(steps, sets, seed):
    return f"temper run configs/quickstart.yaml --json --set run_dir={{out}}/run --set steps={steps} --set seed={seed} {sets}"


def steps_of(fig, steps, sets, seed):
    """metrics.jsonl, a line for each step; one after a rollback replaces that of the same step."""
    by_step = {m.step: m for m in fig.jsonl(command(steps, sets, seed), "run/metrics.jsonl")}
    return [by_step[step] for step in sorted(by_step)]


def means(values):
    """By step: the mean of the last RECENT values; None before there are as many."""
    return [sum(values[i - RECENT:i]) / RECENT if i >= RECENT else None for i in range(1, len(values) + 1)]


def first(flags):
    """The first step (from 1) with a true flag, or None."""
    return next((step for step, flag in enumerate(flags, 1) if flag), None)


def dropped(steps):
    """The first step at which the mean reward is 20 % below its best so far."""
    best, flags = 0.0, []
    for mean in means([m.reward for m in steps]):
        best = max(best, mean or 0.0)
        flags.append(mean is not None and mean < 0.8 * best)
    return first(flags)


def below(steps, limit):
    return first(mean is not None and mean < limit for mean in means([m.ratio.effective for m in steps]))


@figures("measured", "slow")
def limits(fig):
    collapses = {name: [steps_of(fig, n, sets, seed) for seed in CHOSEN_ON] for name, _, n, sets in COLLAPSES}
    healthy = [steps_of(fig, n, sets, seed) for _, _, n, sets in HEALTHY for seed in CHOSEN_ON]
    fig.head("limit", *[f"{name}: shortest warning" for name in collapses], "alarms in healthy runs", align="rrrr")
    for limit in LIMITS:
        warnings = []
        for runs in collapses.values():
            leads = [(dropped(r) or len(r)) - (below(r, limit) or len(r)) for r in runs]
            warnings.append(min(leads))
        false = sum(below(r, limit) is not None for r in healthy)
        fig.row(limit, *[f"{w} steps" for w in warnings], f"{false} of {len(healthy)}")
    least = min(m for r in healthy for m in means([s.ratio.effective for s in r]) if m is not None)
    fig.prose(f"\nThe lowest mean of ten steps in a healthy run is {least:.2f}.\n")


@figures("measured", "slow")
def warnings(fig):
    fig.head("run", "seed", "alarm at step", "reward 20 % below its best at step", "warning", "best reward", "last reward",
             align="lrrrrrr")
    for name, what, n, sets in (*COLLAPSES, AT_ONCE):
        for seed in SHOWN_ON:
            steps = steps_of(fig, n, sets, seed)
            alarms = fig.jsonl(command(n, sets, seed), "run/live.json")[0].alarms
            alarm = next((a.step for a in alarms if a.kind == "few_effective_samples"), None)
            drop, rewards = dropped(steps), [m for m in means([s.reward for s in steps]) if m is not None]
            warning = "" if None in (alarm, drop) else f"{drop - alarm} steps"
            fig.row(f"{name}: {what}", seed, alarm or "none", drop or "none", warning, f"{max(rewards):.2f}", f"{rewards[-1]:.2f}")
            if name == "lag":
                fig.holds(drop - alarm >= 10, "with a lag of 16, the alarm comes at least ten steps before the drop")
    for name, what, n, sets in HEALTHY:
        for seed in SHOWN_ON:
            rewards = [m for m in means([s.reward for s in steps_of(fig, n, sets, seed)]) if m is not None]
            alarms = fig.jsonl(command(n, sets, seed), "run/live.json")[0].alarms
            fig.row(f"{name}: {what}, {n} steps", seed, "none" if not alarms else alarms[0].kind, "", "",
                    f"{max(rewards):.2f}", f"{rewards[-1]:.2f}")
            if not sets:
                fig.holds(not alarms, "the quickstart as it is raises no alarm")


@figures("measured", "slow")
def scaled(fig):
    fig.head("run, 300 steps", "learning rate", "reward of the last ten steps, seeds 1 to 3", "mean", align="llrr")
    for name, what, _, sets in (*COLLAPSES, AT_ONCE):
        last = {}
        for label, more in (("as set", ""), ("scaled", SCALED)):
            rewards = [means([s.reward for s in steps_of(fig, 300, f"{sets} {more}", seed)])[-1] for seed in (1, 2, 3)]
            last[label] = sum(rewards) / len(rewards)
            fig.row(f"{name}: {what}", label, ", ".join(f"{r:.2f}" for r in rewards), f"{last[label]:.2f}")
