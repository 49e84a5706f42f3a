"""Figures of docs/reports/staleness.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("exact", "sampled")
def own_cards_every_role(fig):
    line = "temper sweep configs/cm384_pangu.yaml --preset configs/presets/staleness-rules.yaml --steps 30 --out {out}"
    if fig.quick:
        line = "temper sweep configs/cm384_pangu.yaml --over staleness.rule+staleness.bound=exact/2,aggregate/2 --steps 30 --out {out}"
    fig.table(fig.file(line, "sweep.md"))
    fig.plot(line, "sweep.svg", "staleness.svg")


@figures("exact", "sampled")
def all_roles_same_cards(fig):
    line = "temper sweep configs/cm384_pangu_fused.yaml --set algorithm.groups_per_update=512 --preset configs/presets/staleness-rules.yaml --steps 30 --out {out}"
    if fig.quick:
        line = "temper sweep configs/cm384_pangu_fused.yaml --set algorithm.groups_per_update=512 --over staleness.rule+staleness.bound=exact/2,aggregate/2 --steps 30 --out {out}"
    fig.table(fig.file(line, "sweep.md"))


@figures("exact", "sampled")
def all_roles_same_cards_2(fig):
    line = "temper sweep configs/cm384_pangu_fused.yaml --set algorithm.groups_per_update=512 --preset configs/presets/staleness-rules.yaml --steps 30 --set placement.return_share=0.25 --out {out}"
    if fig.quick:
        line = line.replace("--preset configs/presets/staleness-rules.yaml", "--over staleness.rule+staleness.bound=exact/2,aggregate/2")
    fig.table(fig.file(line, "sweep.md"))


@figures("exact", "sampled")
def shortening_stragglers(fig):
    names = ["dispatch_ahead", "even_load", "deadline_first", "keep_kv", "migrate"]
    means = [("as shipped", []), ("none but `dispatch_ahead`", names[1:])]
    means += [(f"without `{n}`", [n]) for n in names]
    means += [(f"`{n}` alone", [m for m in names[1:] if m != n]) for n in ("even_load", "migrate", "deadline_first", "keep_kv")]
    places = [("cm384_pangu", ""), ("cm384_pangu_fused", " placement.return_share=0.25")]
    def seconds(off, config, sets, eta):
        off = "".join(f" stragglers.{n}=false" for n in off)
        return fig.run(f"configs/{config}.yaml algorithm.groups_per_update=512 steps=30 staleness.bound={eta}{sets}{off}").wall_s
    fig.head("means", "separate, eta 1", "2", "4", "fused, eta 1", "2", "4", align="lrrrrrr")
    for name, off in means[:1] if fig.quick else means:
        fig.row(name, *[f"{seconds(off, *place, eta):.0f}" for place in places for eta in (1, 2, 4)])


@figures("exact", "sampled")
def was_found(fig):
    off = "".join(f" --set stragglers.{n}=false" for n in ("even_load", "deadline_first", "keep_kv", "migrate"))
    share = " --set placement.return_share=0.25"
    cases = [("separate", "cm384_pangu", ""), ("the same, no means", "cm384_pangu", off), ("fused as shipped", "cm384_pangu_fused", ""),
             ("fused, interrupted", "cm384_pangu_fused", share), ("the same, no means", "cm384_pangu_fused", share + off)]
    def cost(config, sets, eta):
        line = f"temper sweep configs/{config}.yaml --set algorithm.groups_per_update=512 --over staleness.rule=exact,aggregate --set staleness.bound={eta} --steps 30{sets} --out {{out}}"
        exact, aggregate = fig.rows(line, "sweep.csv")
        return exact.seconds / aggregate.seconds
    fig.head("eta", *[name for name, _, _ in cases], align="rrrrrr")
    for eta in (2,) if fig.quick else (1, 2, 4):
        fig.row(eta, *[fig.gain(cost(config, sets, eta)) for _, config, sets in cases])
    fig.holds(all(cost(c, x, 2) < 1.08 for _, c, x in cases[2:4]) and cost(*cases[0][1:], 2) < 1.04, "at most 4 % on separate cards, 8 % interrupted")


@figures("exact", "cheap")
def was_found_2(fig):
    step = fig.json("temper cost --json kind=decode_step hardware=cm384 cards=32 model=pangu-ultra-moe-718b batch=1 tp=4 dp=16 ep=64"
                " context=4000").metrics[0].value
    one, two, four = [fig.run(f"configs/cm384_pangu.yaml steps=30 staleness.bound={eta}") for eta in (1, 2, 4)]
    longest = 32768 * step
    update = two.utilization.states.train * two.wall_s * 384 / 128 / 30
    reference = four.utilization.states.reference * four.wall_s * 384 / 32 / 30
    whole = longest + update
    fig.prose(f"""A single response on a replica takes {1e3 * step:.1f} ms per token (`temper cost kind=decode_step hardware=cm384
cards=32 model=pangu-ultra-moe-718b batch=1 tp=4 dp=16 ep=64 context=4000`), so a response of 32768 tokens takes at least {longest:.0f} s. With the update of {update:.0f} s, a group with such a response (nearly one in four) needs {whole:.0f} s from its dispatch to the next version. In a schedule that dispatches such a group with every version, eta + 1 updates take at least that long:
{whole / 2:.0f} s each at eta 1, {whole / 3:.0f} s at eta 2. The reference works {reference:.0f} s for each update, even with large batches (eta 4). `exact` takes {one.wall_s / 30:.0f} and
{two.wall_s / 30:.0f} s. At eta 2, at most {100 * (1 - max(reference, whole / 3) / (two.wall_s / 30)):.0f} % can be gained. At eta 1 more seems possible, but an engine that serves 1170 responses takes 90 to 100 ms per token, and a response can only gain time that others lose.""")


@figures("exact", "sampled")
def was_found_3(fig):
    fig.head("policy, eta", "separate: time, s", "max s", "mean s", "fused, interrupted: time, s", "max s", "mean s", align="lrrrrrr")
    def compared(config, sets):
        line = (f"temper sweep configs/{config}.yaml --set algorithm.groups_per_update=512 --over staleness.bound={'2' if fig.quick else '1,2,3,4,5,6'}"
                f" --over staleness.rule=exact,aggregate --steps 30{sets} --out {{out}}")
        return {(r["staleness.rule"], int(r["staleness.bound"])): r for r in fig.rows(line, "sweep.csv")}
    apart, fused = compared("cm384_pangu", ""), compared("cm384_pangu_fused", " --set placement.return_share=0.25")
    for key in sorted(apart, key=lambda key: (round(apart[key].staleness_mean, 2), key[0] == "exact")):
        fig.row(f"{key[0]} {key[1]}", *[x for r in (apart[key], fused[key]) for x in (
            f"{r.seconds:.0f}", f"{r.staleness_max:.0f}", f"{r.staleness_mean:.2f}")])


@figures("exact", "slow")
def was_found_4(fig):
    at = {(r["staleness.rule"], int(r["staleness.bound"])): r for r in fig.rows("temper sweep configs/cm384_pangu.yaml --preset configs/presets/staleness-rules.yaml --steps 30 --out {out}", "sweep.csv")}
    vain = lambda policy: ", ".join(fig.pct(at[policy, eta].wasted) for eta in (1, 2, 4))
    fig.holds(all(at[p, e].seconds > at["exact", e].seconds for p in ("drop", "window") for e in (1, 2, 4)), "both are slower than exact")
    fig.holds(at["drop", 1].seconds > at["sync", 0].seconds, "drop at eta 1 is slower than sync")
    fig.prose(f"""**The cost of eviction.** On separate cards, `drop` wastes {vain("drop")} of its tokens at eta 1, 2 and 4, and `window` {vain("window")}. Both are slower than `exact` in all three cases, and `drop` at eta 1 is also slower than `sync`: it then trains nothing older than 0, with twice as many responses in flight as an update takes. The trained responses are shorter than the started ones: the bias is {at["window", 1].bias:.2f} (`window`) and {at["drop", 1].bias:.2f} (`drop`) at eta 1, and {at["window", 4].bias:.2f} and {at["drop", 4].bias:.2f} at eta 4.""")


@figures("measured", "slow")
def idle_card_waits(fig):
    r = fig.run("configs/quickstart.yaml steps=300", driver="")
    found = {}
    for w in r.waits:
        if w.role != "trainer":
            key = w.state, w.on or "work handed out, not started"
            found[key] = found.get(key, 0) + w.s
    fig.head("state of card 0", "what it waited for", "seconds", "of its wall time", align="llrr")
    for (state, on), s in sorted(found.items(), key=lambda x: -x[1]):
        fig.row(f"`{state}`", on, f"{s:.2f}", fig.pct(s / r.wall_s, 1))
    fig.row("", "all waits", f"{sum(found.values()):.2f}", fig.pct(sum(found.values()) / r.wall_s, 1))
    waits = ("switch", "wait-data", "wait-weights", "wait-quota", "idle", "down")
    card = sum(r.utilization.per_card[0].states_s[state] for state in waits)
    fig.holds(abs(card - sum(found.values())) < 1e-3, "the reasons sum to the waiting states of the card")


@figures("measured", "slow")
def staleness_costs_policy_learns(fig):
    line = ("temper sweep configs/quickstart.yaml --over staleness.bound={} --over algorithm.objective=clip,decoupled --seeds 1,2,3 --steps {}"
            " --set algorithm.minibatches=4 --set algorithm.learning_rate=3e-4 --target-reward {} --out {{out}}")
    short, long = line.format("0,1,2,4,8,16", 300, 0.9), line.format("1,2,4,8,16", 700, 0.9)
    fig.plot(short, "reward_steps.svg", "staleness-reward-steps.svg")
    fig.plot(short, "reward_time.svg", "staleness-reward-time.svg")
    def lessons(line, rewards):
        found = {}
        for r in fig.rows(line, "sweep.csv"):
            folder = f"runs/{r.folder.split('/')[-1]}"
            steps = fig.jsonl(line, f"{folder}/metrics.jsonl")
            reward = [x.reward for x in steps]
            mean = [sum(reward[max(0, n - 9):n + 1]) / min(10, n + 1) for n in range(len(reward))]
            def at(target):
                return next((n for n in range(9, len(mean)) if mean[n] >= target), None)
            key = int(r["staleness.bound"]), r["algorithm.objective"]
            last = reward[-len(reward) // 10:]
            found.setdefault(key, []).append((r.seconds, r.trained_per_s, sum(last) / len(last),
                *[None if at(t) is None else (at(t) + 1, steps[at(t)].time) for t in rewards]))
        return found
    average = lambda xs: sum(xs) / len(xs)
    spread = lambda xs: f"{average(xs):.3f} ({min(xs):.3f}..{max(xs):.3f})"
    fig.head("eta", "objective", "300 updates take, s", "tokens/s", "updates to 0.8", "seconds", "updates to 0.9", "seconds", "reward after 300 updates", "after 700", align="rlrrrrrrrr")
    of_short, of_long = lessons(short, (0.8, 0.9)), lessons(long, (0.8, 0.9))
    for key in of_short:
        a, b = of_short[key], of_long.get(key)
        cells = []
        for n in (3, 4):
            got = [x[n] for x in b or a if x[n]]
            cells += [f"{average([g[0] for g in got]):.0f}" + ("" if len(got) == 3 else f" ({len(got)} of 3)") if got else "-",
                      f"{average([g[1] for g in got]):.1f}" if got else "-"]
        fig.row(*key, f"{average([x[0] for x in a]):.1f}", fig.k(average([x[1] for x in a])), *cells, spread([x[2] for x in a]), spread([x[2] for x in b]) if b else "")


@figures("measured", "slow")
def younger_samples_same_bound(fig):
    seeds = (1, 2, 3, 4, 5)
    mean = lambda xs: sum(xs) / len(xs)
    spread = lambda xs, digits: f"{mean(xs):.{digits}f} ({min(xs):.{digits}f}..{max(xs):.{digits}f})"
    fig.head("bound", "admission", "mean staleness", "trained tokens/s", "reward after 150 updates", "after 300", align="rlrrrr")
    for bound in (1, 2, 4):
        for admission in ("eager", "just_in_time"):
            found = []
            for seed in seeds:
                line = (f"temper run configs/quickstart.yaml --json --set run_dir={{out}}/run --set steps=300 --set seed={seed}"
                        f" --set staleness.bound={bound} --set staleness.admission={admission}")
                r, reward = fig.json(line), [x.reward for x in fig.jsonl(line, "run/metrics.jsonl")]
                found.append((r.staleness.mean, r.tokens.trained_per_s, mean(reward[140:150]), mean(reward[290:300])))
            age, speed, at_150, at_300 = zip(*found)
            fig.row(bound, f"`{admission}`", spread(age, 2), f"{mean(speed) / 1e3:.1f}k ({min(speed) / 1e3:.1f}k..{max(speed) / 1e3:.1f}k)",
                spread(at_150, 3), spread(at_300, 3))
