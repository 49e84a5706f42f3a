"""Figures of docs/reports/simulated-supernode.md. `./x figures` runs these functions (docs/figures.py)."""
import re

from figures_recipe import figures

BATCH = "algorithm.groups_per_update=512"  # Of cm384_pangu.yaml, so that placements train the same batch.


@figures("measured", "slow")
def runs_time_passes(fig):
    fig.head("configuration", "what", "wall, user time", "memory")
    for config, sets, name, what in [
        ("cm384_pangu", "", "`configs/cm384_pangu.yaml`, 10 updates", "718B on 384 cards, asynchronous"),
        ("cm384_pangu", "steps=100", "the same, `steps=100` (819,200 responses)", ""),
        ("cm384_pangu_fused", BATCH, "`configs/cm384_pangu_fused.yaml`, 10 updates of 512 prompts", "the same cards, roles in turn"),
        ("cm384_x4_pangu", "", "`configs/cm384_x4_pangu.yaml`, 10 updates", "four supernodes, 1536 cards"),
        ("a3_128_r1_671b", "", "`configs/a3_128_r1_671b.yaml`, 4 updates", "a published synchronous iteration"),
        ("a3_64_qwen3_235b_32k", "", "`configs/a3_64_qwen3_235b_32k.yaml`, 5 updates", "long answers, synchronous")]:
        sets = f" --set {sets}" if sets else ""
        u = fig.usage(f"temper run configs/{config}.yaml --driver in-process --json --set run_dir={{out}}/run{sets}")
        fig.row(name, what, f"{u.wall:.1f} s, {u.user:.1f} s", f"{u.mib * 1.048576:.0f} MB")


@figures("measured", "slow")
def runs_time_passes_2(fig):
    small = " --set simulation.model=pangu-pro-moe-v2-72b --set simulation.rollout.tp=2 --set simulation.trainer.pp=4 --set simulation.trainer.ep=16"
    b = (" --set steps=20 --set rollout.replicas=48 --set placement.rollout_cards=192 --set placement.reference_cards=64"
         " --set rollout.concurrency=512 --set simulation.rollout.ep=8")
    c = (" --set steps=3 --set rollout.replicas=384 --set placement.rollout_cards=768 --set placement.reference_cards=256"
         " --set rollout.concurrency=256 --set simulation.rollout.ep=4")
    fig.head("run", "engines", "actors per worker", "processes", "updates", "wall", "user + system", "memory of all")
    for name, config, sets, engines, updates, actors in [
        ("A", "cm384_pangu", "", 7, 10, 16), ("B", "cm384_pangu", small + b, 48, 20, 16),
        ("C", "cm384_x4_pangu", small + c, 384, 3, 16), ("C", "cm384_x4_pangu", small + c, 384, 3, 1)]:
        u = fig.usage(f"temper run configs/{config}.yaml --json --set run_dir={{out}}/run{sets} --set transport.actors_per_worker={actors}")
        fig.row(name, engines, actors, u.processes, updates, f"{u.wall:.1f} s", f"{u.user:.1f} + {u.system:.1f} s", f"{u.mib:.0f} MiB")


@figures("exact", "cheap")
def run_leaves(fig):
    r = fig.run("configs/cm384_pangu.yaml steps=30")
    roles = ["rollout", "reference", "trainer"]
    fig.head("of 30 updates", *roles, "run")
    fig.row("MFU", *[fig.pct(r.mfu.roles[x].mfu, 1) for x in roles], fig.pct(r.mfu.mfu, 1))
    fig.row("while busy", *[fig.pct(r.mfu.roles[x].while_busy, 1) for x in roles], "")
    for name, part in (("device", "device"), ("host", "host")):
        gb = [(r.memory[x][part].peak_bytes / 1e9, r.memory[x][part].predicted_bytes / 1e9) for x in roles]
        fig.row(f"{name} memory, of {r.memory.trainer[part].capacity_bytes / 1e9:.1f} GB (predicted)", *[f"{a:.1f} ({b:.1f})" for a, b in gb], "")
    for i, p in enumerate(p for p in r.network.planes if p.bytes > 0):
        t = p.bytes_per_update
        fig.row(("network, per update, share: " if i == 0 else "") + p.plane.replace("_", " "), "", "", "",
            (f"{t / 1e15:.1f} PB" if t >= 1e15 else f"{t / 1e12:.1f} TB") + f", {fig.pct(p.share, 2)}")


@figures("exact", "cheap")
def published_iteration_again(fig):
    r = fig.run("configs/a3_128_r1_671b.yaml")
    c = {m.name: m for m in fig.json("temper cost --json kind=rl_iteration hardware=cm384 cards=128 model=deepseek-v3 prompts=512"
                                 " group=16 prompt_len=75 response_len=3040 rollout_tp=2 rollout_dp=128 rollout_ep=256 train_tp=4"
                                 " train_pp=8 train_ep=8").metrics}
    update = r.wall_s / r.steps
    of = lambda *states: update * sum(r.utilization.states[s] for s in states)
    switch = sum(s.count * s.mean_s for s in r.switches.states.values()) / r.steps
    cost = {name: c[name].value for name in ("rollout", "reference_logprobs", "reward", "update", "offload")}
    part = {t.name: t.value for t in c["rollout"].terms}
    fig.head("phase", "published", "run", "cost model", align="lrrr")
    fig.row("rollout", "318.3", f"{of('decode', 'prefill'):.1f}", f"{cost['rollout']:.1f}")
    fig.row("reference", "104.7", f"{of('reference'):.1f}", f"{cost['reference_logprobs']:.1f}")
    fig.row("reward", "13.7", f"{of('wait-data'):.1f}", f"{cost['reward']:.1f}")
    fig.row("update", "328.8", f"{of('train'):.1f}", f"{cost['update']:.1f}")
    fig.row("switch", "35.7 (reshard 11.2, offload and other 24.5)", f"{switch:.1f}", f"{cost['offload']:.1f}")
    fig.row("total", "796.8", f"{update:.1f}", f"{c['time'].value:.1f}")
    fig.prose(f"""
- The run is `fused`: all roles time-share all cards, each with its published layout (training TP4 PP8 EP8). The weights of the reference stay in host memory while other roles work.
- Run and cost model agree on equal quantities: the reference and the update are within 0.5 %. The cost model also
  gathers every weight on every device ({part['reshard']:.1f} s; a run reshards along the links, {r.switches.states.reshard.mean_s:.1f} s), and it prefills
  a prompt for each response ({part['prefill']:.1f} s; an engine does so once per group, {of('prefill'):.1f} s).
- Compared with the published figures, the run's rollout is {fig.gain(of('decode', 'prefill') / 318.3, 0)} (its parts other than decode steps are not stated), the update
  {fig.gain(of('train') / 328.8, 0)}, the reference {fig.gain(of('reference') / 104.7, 0)}, and the total {fig.gain(update / 796.8, 0)}. The errors partly cancel.
- A switch takes the time of its copies on the links, {switch:.1f} s; 35.7 s are published. A
  `simulation.publication.link_share` of 0.025 would give about 31 s.""")
    fig.holds(abs(of('reference') / cost['reference_logprobs'] - 1) < .005 and abs(of('train') / cost['update'] - 1) < .005, "within 0.5 %")


@figures("exact", "cheap")
def published_iteration_again_2(fig):
    r = fig.run("configs/a3_64_qwen3_235b_32k.yaml")
    update = r.wall_s / r.steps
    decode = update * (r.utilization.states.decode + r.utilization.states.prefill)
    train = update * r.utilization.states.train
    fig.prose(f"""`a3_64_qwen3_235b_32k.yaml` is close to a published run (RL043 to RL050) whose distribution of lengths and rollout layout are not known. The published 6,620 s of rollout are for two generations; the update takes 798 s. One generation of the run takes
{decode:,.0f} s, {fig.gain(2 * decode / 6620, 0)}, and its update {train:,.0f} s, {fig.gain(train / 798, 0)}.""")


@figures("exact", "sampled")
def staleness_buys_384_cards(fig):
    fig.head("cards", "bound", "trained tokens/s", "busy", "mean staleness", "virtual time", align="lrrrrr")
    splits = {"160 + 32 + 192": " placement.rollout_cards=160 rollout.replicas=5 simulation.trainer.ep=16",
              "224 + 32 + 128": "",
              "256 + 32 + 96": " placement.rollout_cards=256 rollout.replicas=8 simulation.trainer.pp=6"}
    for cards, sets in splits.items():
        for bound in (2,) if fig.quick else (0, 1, 2, 4):
            r = fig.run(f"configs/cm384_pangu.yaml steps=30 staleness.bound={bound}{sets}")
            fig.row(cards, bound, fig.k(r.tokens.trained_per_s), fig.pct(r.utilization.busy), f"{r.staleness.mean:.2f}", f"{r.wall_s / 3600:.1f} h")


@figures("exact", "sampled")
def staleness_buys_384_cards_2(fig):
    base = fig.run("configs/cm384_pangu.yaml steps=30 staleness.bound=2").tokens.trained_per_s
    fig.head("what is changed", "trained tokens/s", "against the first row", align="lrr")
    fig.row("nothing", fig.k(base), "")
    for sets, was in (("simulation.response.mean=4000", "7000"), ("simulation.response.mean=10000", "7000"),
                      ("simulation.response.p99_over_median=3", "8"), ("algorithm.groups_per_update=256", "512"))[:1 if fig.quick else 4]:
        r = fig.run(f"configs/cm384_pangu.yaml steps=30 staleness.bound=2 {sets}").tokens.trained_per_s
        fig.row(f"`{sets}` ({was})", fig.k(r), fig.gain(r / base, 0))


@figures("exact", "sampled")
def staleness_buys_384_cards_3(fig):
    fig.head("updates", "one supernode", "four", "four, of four times one", align="rrrr")
    for steps in (10,) if fig.quick else (10, 30):
        one = fig.run(f"configs/cm384_pangu.yaml steps={steps} staleness.bound=2").tokens.trained_per_s
        four = fig.run(f"configs/cm384_x4_pangu.yaml steps={steps}").tokens.trained_per_s
        fig.row(steps, fig.k(one), fig.k(four), fig.pct(four / one / 4))


@figures("exact", "sampled")
def rl_fusion_roles_take(fig):
    fig.head("bound", "separate", "fused, interrupted", "fused, drained", "hybrid, lending", align="rllll")
    best = {}
    for bound in (0,) if fig.quick else (0, 1, 2, 4):
        cells = []
        for config, sets in (("cm384_pangu", ""), ("cm384_pangu_fused", " placement.return_share=0.25"),
                             ("cm384_pangu_fused", " placement.return_share=0"), ("cm384_pangu", " placement.mode=hybrid")):
            r = fig.run(f"configs/{config}.yaml {BATCH} steps=30 staleness.bound={bound}{sets}")
            best[bound, len(cells)] = r.tokens.trained_per_s
            cells.append(f"{fig.k(r.tokens.trained_per_s)}, {fig.pct(r.utilization.busy)}, {r.staleness.mean:.2f}")
        fig.row(bound, *cells)
    fig.prose(f"""
At bound 0, time-sharing gives {fig.gain(best[0, 2] / best[0, 0], 0)}; {fig.gain(25.0 / 14.0, 0)} is published. A card counts as busy while its engine decodes, however few responses are left, so a busy card is not a fast card: at bound 1, half of the decode time of a rollout phase serves the last tenth of its responses.""")


@figures("exact", "sampled")
def rl_fusion_roles_take_2(fig):
    fast = lambda config, bound, *sets: fig.run(" ".join([f"configs/{config}.yaml {BATCH} steps=30 staleness.bound={bound}", *sets])).tokens.trained_per_s
    bounds = (0, 1, 2, 4)
    many = lambda config, *sets: ", ".join(fig.k(fast(config, b, *sets)) for b in bounds)
    if not fig.quick:
        fig.head("piece", "with it, bound 0, 1, 2, 4", "without it")
        fig.row("interrupting (`return_share: 0.25`) against draining (`0`)", many("cm384_pangu_fused", "placement.return_share=0.25"),
            many("cm384_pangu_fused", "placement.return_share=0"))
        fig.row("lending (`hybrid` against `separate`)", many("cm384_pangu", "placement.mode=hybrid"), many("cm384_pangu"))
        fig.row("lending only if it pays (`lending: auto`) against `always`", many("cm384_pangu", "placement.mode=hybrid"),
            many("cm384_pangu", "placement.mode=hybrid", "placement.lending=always"))
    hybrid = lambda *sets: fast("cm384_pangu", 0, "placement.mode=hybrid", *sets) / fast("cm384_pangu", 0, *sets)
    off = [f"stragglers.{x}=false" for x in ("even_load", "deadline_first", "keep_kv", "migrate")]
    fig.prose(f"""
Lending gains {fig.gain(hybrid())} at bound 0. With `stragglers.even_load=false` alone it gains {fig.gain(hybrid(off[0]))}, and {fig.gain(hybrid(*off), 0)} with all four of
`even_load`, `deadline_first`, `keep_kv` and `migrate` off ({fig.k(fast("cm384_pangu", 0, *off))} to {fig.k(fast("cm384_pangu", 0, "placement.mode=hybrid", *off))}): straggler options and lending use the same idle time ([staleness](staleness.md)).""")


@figures("exact", "sampled")
def rl_fusion_roles_take_3(fig):
    fig.head("bound", "separate", "separate, prepare", "fused", "fused, one by one", "fused, one by one, prepare", align="rlllll")
    apart = " placement.switching=one_by_one"
    for bound in (1,) if fig.quick else (0, 1, 2, 4):
        cells = []
        for config, sets in (("cm384_pangu", ""), ("cm384_pangu", " stragglers.prepare=true"), ("cm384_pangu_fused", ""),
                             ("cm384_pangu_fused", apart), ("cm384_pangu_fused", apart + " stragglers.prepare=true")):
            r = fig.run(f"configs/{config}.yaml {BATCH} steps=30 staleness.bound={bound}{sets}")
            cells.append(f"{fig.k(r.tokens.trained_per_s)}, {fig.pct(r.utilization.busy)}, {fig.pct(r.slots.while_serving)}, {r.staleness.mean:.2f}")
        fig.row(bound, *cells)


@figures("exact", "sampled")
def rl_fusion_roles_take_4(fig):
    r = fig.run(f"configs/cm384_pangu_fused.yaml {BATCH} steps=30 staleness.bound=0")
    states = r.utilization.states
    decode = 1 - states["train"] - states["reference"] - states["switch"]
    fig.prose(f"""
At bound 0, the longest response is the limit. If all cards switch together, an update generates for {r.wall_s / 30 * decode:.0f} s, with all engines, evenly loaded, until the last response ends. Fewer engines for the last responses are slower, and these are not known in advance, so no order of work generates a batch sooner. Without any time for scoring, training and switching, the speed would be
{fig.k(r.tokens.trained_per_s / decode, 2)} tokens/s, {fig.gain(1 / decode)} more than that of cards that switch together.""")


@figures("exact", "sampled")
def rl_fusion_roles_take_5(fig):
    fig.head("cards", "bound", "eager", "just in time", "tokens/s", "mean staleness", align="lrrrrr")
    places = [("288 + 32 + 64", "cm384_pangu", " placement.rollout_cards=288 rollout.replicas=9 simulation.trainer.ep=16"),
              ("256 + 32 + 96", "cm384_pangu", " placement.rollout_cards=256 rollout.replicas=8 simulation.trainer.pp=6"),
              ("224 + 32 + 128", "cm384_pangu", ""), ("fused", "cm384_pangu_fused", "")]
    for name, config, sets in places[:1] if fig.quick else places:
        for bound in (4,) if fig.quick else (1, 2, 4):
            a, b = [fig.run(f"configs/{config}.yaml {BATCH} steps=30 staleness.bound={bound}{sets}{x}") for x in ("", " staleness.admission=just_in_time")]
            fig.row(name, bound, *[f"{fig.k(r.tokens.trained_per_s)}, {r.staleness.mean:.2f}" for r in (a, b)],
                fig.gain(b.tokens.trained_per_s / a.tokens.trained_per_s, 2), fig.gain(b.staleness.mean / a.staleness.mean, 0))


@figures("exact", "sampled")
def rl_fusion_roles_take_6(fig):
    fig.head("link_share", "fused, bound 0", "fused, interrupted, bound 2", "separate, bound 2", align="rrrr")
    for share in ("0.025",) if fig.quick else ("1", "0.1", "0.025"):
        sets = f"{BATCH} steps=30 simulation.publication.link_share={share}"
        fig.row(share, *[fig.k(fig.run(f"configs/{c} {sets}").tokens.trained_per_s) for c in (
            "cm384_pangu_fused.yaml staleness.bound=0",
            "cm384_pangu_fused.yaml staleness.bound=2 placement.return_share=0.25", "cm384_pangu.yaml staleness.bound=2")])


@figures("exact", "sampled")
def weights_reach_engines(fig):
    small = " simulation.model=pangu-pro-moe-v2-72b simulation.rollout.tp=2 simulation.trainer.pp=4 simulation.trainer.ep=16"
    b = small + (" rollout.replicas=48 placement.rollout_cards=192 placement.reference_cards=64 rollout.concurrency=512"
                 " simulation.rollout.ep=8")
    c = small + (" rollout.replicas=384 placement.rollout_cards=768 placement.reference_cards=256 rollout.concurrency=256"
                 " simulation.rollout.ep=4")
    fig.head("configuration", "engines", "relay", "broadcast", "tokens/s, relay", "broadcast", align="lrrrrr")
    for config, sets, name, engines, steps in [
            ("cm384_pangu", "", "`cm384_pangu.yaml`", 7, 30), ("cm384_x4_pangu", "", "`cm384_x4_pangu.yaml`", 28, 30),
            ("cm384_pangu", b, "B", 48, 30), ("cm384_x4_pangu", c, "C", 384, 3)][:1 if fig.quick else 4]:
        seconds, rates = [], []
        for mode in ("relay", "broadcast"):
            all_sets = f"staleness.bound=1 simulation.publication.mode={mode}{sets}"
            flags = " ".join("--set " + x for x in all_sets.split())
            said = fig.text(f"temper check configs/{config}.yaml {flags}")
            seconds.append(re.search(r"publication by \w+ takes ([0-9.]+ s)", said)[1])
            rates.append(fig.k(fig.run(f"configs/{config}.yaml steps={steps} {all_sets}").tokens.trained_per_s, 2))
        fig.row(name, engines, *seconds, *rates)
