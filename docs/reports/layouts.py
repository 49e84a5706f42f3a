"""Figures of docs/reports/layouts.md. `./x figures` runs these functions (docs/figures.py)."""
import re

from figures_recipe import figures


@figures("exact", "cheap")
def planning_layouts(fig):
    line = "temper plan task=train model=pangu-ultra-moe-718b hardware=cm384 cards=8 batch=64 seq=8192"
    said = fig.text(line, may_fail=True).strip()
    said = re.sub(r" \+ activations [^)]*", " + ...", said).replace(" and 511", "\nand 511").replace("; ", ";\n")
    fig.say("    $ " + line + "\n" + "\n".join("    " + x for x in said.splitlines()))


@figures("exact", "cheap")
def searched(fig):
    line = "temper plan configs/cm384_pangu.yaml --json --out {out}/planned.yaml"
    p = fig.json(line)
    made = fig.run(f"{fig.path(line, 'planned.yaml')} steps=10")
    fig.head("", "trainer", "rollout", "update, predicted", "engines, predicted", "trained tokens/s of the run", align="lllrrr")
    def layout(l):
        return f"tp{l.tp} pp{l.pp} " + (f"vpp{l.vpp} " if l.vpp > 1 else "") + f"ep{l.ep}" + (f" cp{l.cp}" if l.cp > 1 else "")
    for name, t, e, r in (("as shipped", p.configured_trainer, p.configured_rollout, fig.run("configs/cm384_pangu.yaml steps=10")),
                          ("planned", p.trainers[0], p.rollouts[0], made)):
        fig.row(name, layout(t.layout), f"tp{e.layout.tp} ep{e.layout.ep}", f"{t.seconds:,.0f} s", fig.k(e.tokens_per_second), fig.k(r.tokens.trained_per_s))
    busy = {"reference": 32, "train": 128}
    busy = {s: made.utilization.states[s] * 384 / cards for s, cards in busy.items()}
    fig.prose(f"""
In the planned run, the 32 reference cards are busy for {fig.pct(busy['reference'])} of the time and the trainer's 128 cards for {fig.pct(busy['train'])}. `temper
tune` finds a split of the cards that suits these layouts.""")


@figures("measured", "slow")
def good(fig):
    b = {name.split("/", 1)[1] if name.startswith("million") else name: x for name, x in fig.bench("plan_bench").items()}
    import time
    def took(line):
        begin = time.monotonic()
        fig.text(line)
        return f"{time.monotonic() - begin:.2f} s"
    fig.head("", "time", "", align="lrl")
    for name, what, note in (("training_cluster", "a million scenarios, 6,144 devices", "divisors, and the ledger against device and host; those that fit are timed"),
                             ("training_cluster_all_timed", "a million scenarios, every one timed", "whether it fits or not"),
                             ("supernode", "a million scenarios, one CM384", ""),
                             ("search/training_cluster", "the search, 6,144 devices", "the three best and the front"),
                             ("search/supernode", "the search, one CM384", "")):
        found = next(x for key, x in b.items() if key == name or key.startswith(name + "/"))
        fig.row(what, f"{found.seconds:.2f} s", note)
    fig.row("`temper plan`, 718B, 6,144 devices", took("temper plan task=train model=pangu-ultra-moe-718b hardware=ascend-910b cards=6144 batch=1536 seq=8192"), "the program, with the errors of the model measured anew")
    fig.row("`temper plan configs/cm384_x4_pangu.yaml`", took("temper plan configs/cm384_x4_pangu.yaml"), "both sides, 1,536 cards")


@figures("exact", "cheap")
def pangu_ultra_moe_718b(fig):
    words = "temper plan task=train model=pangu-ultra-moe-718b hardware=ascend-910b cards=6144 seq=8192 cp=1 --json batch="
    def layout(p, dp=False):
        t = f"tp{p.tp} pp{p.pp} vpp{p.vpp} ep{p.ep}"
        return (f"**{t}**" if (p.tp, p.pp, p.ep) == (8, 16, 32) else t) + (f", dp{p.dp}" if dp else "")
    fig.head("batch", "best", "tokens/s", "second", "third", align="rlrll")
    for batch in (1536, 3072, 6144):
        one, two, three = fig.json(f"{words}{batch}").plans[:3]
        fig.row(f"{batch:,}", layout(one, True), f"{one.tokens_per_second / 1e6:.2f}M", layout(two), layout(three))


@figures("exact", "cheap")
def pangu_ultra_moe_718b_2(fig):
    words = "temper plan task=train model=pangu-ultra-moe-718b hardware=ascend-910b cards=6144 batch=1536 seq=8192 cp=1 --json compare=tp8,pp16,vpp2,ep32"
    found, full = fig.json(words).plans[0], fig.json(words).plans[-1]
    none = fig.json(words + ",recomputenone").plans[-1]
    fig.head("term, ms", "vpp4, found", "vpp2, nothing recomputed", "vpp2, as it fits: all recomputed", align="lrrr")
    terms = (("matrix products, attention, experts, elementwise", ["matrix products", "attention", "experts", "elementwise"]),
             ("gradient accumulation", ["gradient accumulation"]), ("recompute", ["recompute"]),
             ("tensor-parallel communication", ["tensor-parallel communication"]),
             ("expert-parallel communication", ["expert-parallel communication"]),
             ("pipeline transfers", ["pipeline transfers"]), ("pipeline bubble", ["pipeline bubble"]),
             ("data-parallel communication and optimizer", ["data-parallel communication", "optimizer"]),
             ("optimizer states to and from the host", ["optimizer states to and from the host"]))
    for name, of in terms:
        fig.row(name, *[f"{1e3 * sum(t.value for t in p.time if t.name in of):,.0f}" for p in (found, none, full)])
    fig.row("step", *[f"**{1e3 * p.seconds:,.0f}**" for p in (found, none, full)])
    fig.row("memory of the fullest device", *[f"{p.device_memory / 1e9:.1f} GB" + ("" if p.fits else f": {p.device_memory / 1e9 - 64:.1f} too much") for p in (found, none, full)])


@figures("exact", "cheap")
def pangu_ultra_moe_718b_3(fig):
    plans = fig.json("temper plan task=train model=pangu-ultra-moe-718b hardware=ascend-910b cards=6144 batch=1536 seq=8192 cp=1 --json"
                 " activations=as_recompute,chosen schedule=1f1b,dualpipe,adaptive compare=tp8,pp16,vpp2,ep32").plans
    best, published = plans[0], plans[-1]
    term = lambda p, name: sum(t.value for t in p.time if t.name == name)
    fig.head("", "step", "tokens/s", "memory", align="lrrr")
    for name, p in (("best found: ", best), ("second: ", plans[1]), ("third: ", plans[2]), ("published: ", published)):
        fig.row(f"{name}tp{p.tp} pp{p.pp} vpp{p.vpp} ep{p.ep} dp{p.dp}", f"{p.seconds:.2f} s", f"{p.tokens_per_second / 1e6:.2f}M", f"{p.device_memory / 1e9:.1f} GB")
    fig.prose(f"""
The published layout then reaches {published.tokens_per_second / 1e6:.2f}M tokens/s (1.46M is published). It is {100 * (published.seconds / best.seconds - 1):.0f} % slower than the best one, which has fewer stages in more chunks: its bubble takes {term(published, 'pipeline bubble') - term(best, 'pipeline bubble'):.2f} s more, its expert communication {term(best, 'expert-parallel communication') - term(published, 'expert-parallel communication'):.2f} s less. This difference is below the known error of the model, 16 %. Whether {best.vpp} chunks per stage are practical is not modeled.""")


# Mechanisms that the authors describe, as keys of `temper plan`.
MECHANISMS = ("activations=chosen schedule=adaptive layer_balance=counted expert_path=hierarchical balance_loss=expert_group "
              "split_counts=fetched_once host_dispatch=tuned")
PUBLISHED_GFLOP = 436  # Per token, from the published MFU and tokens/s; the model of this project has 358.


@figures("exact", "slow")
def authors_mechanisms(fig):
    words = f"temper plan task=train model=pangu-ultra-moe-718b seq=8192 cp=1 {MECHANISMS} --json compare=tp8,pp16,vpp2,ep32,mbs2"
    fig.head("devices", "batch", "search", "best", "tokens/s", "MFU", "TP8 PP16 VPP2 EP32", "MFU", "slower by", align="lrllrrrrr")
    atlas, found = "hardware=ascend-910b cards=6144", {}
    for hardware, devices, batch, limits in (
            (atlas, "6,144 of Atlas A2", 1536, ""), (atlas, "", 6144, ""), (atlas, "", 24576, ""), (atlas, "", 6144, "vpp=1,2"),
            (atlas, "", 6144, "vpp=1,2 mbs=2"), (atlas, "", 6144, "vpp=1,2 mbs=2 tp=8"), ("hardware=cm384-x4", "3,072 dies of CM384", 6144, "")):
        plans = fig.json(f"{words} {hardware} batch={batch} {limits}").plans
        best, published = found[hardware, batch, limits] = plans[0], plans[-1]
        fig.row(devices, f"{batch:,}", limits or "free", f"tp{best.tp} pp{best.pp} vpp{best.vpp} ep{best.ep} mbs{best.micro_batch}",
                f"{best.tokens_per_second / 1e6:.2f}M", fig.pct(best.mfu, 1), f"{published.tokens_per_second / 1e6:.2f}M", fig.pct(published.mfu, 1),
                fig.pct(published.seconds / best.seconds - 1))
    best, published = found[atlas, 6144, ""]
    near, same = found[atlas, 6144, "vpp=1,2 mbs=2"]
    slower = same.seconds / near.seconds
    fig.holds((near.tp, near.vpp, near.ep) == (8, 2, 32) and slower < 1.02, "the published degrees but for the stages")
    term = lambda p, name: sum(t.value for t in p.time if t.name == name)
    def more(name):
        return term(published, name) - term(best, name)
    most = max(b.mfu for b, _ in found.values())
    fig.prose(f"""
**Which plan wins.** With 64 micro-batches of two sequences per replica, which is assumed because the batch is not published, tp{best.tp} pp{best.pp} vpp{best.vpp} ep{best.ep} wins.
The published layout takes {published.seconds - best.seconds:.1f} s more of {best.seconds:.1f} s: {more('pipeline bubble'):.1f} s of bubble, because it has twice the stages and fewer chunks, and {more('tensor-parallel communication'):.1f} s of
tensor-parallel communication. Fewer stages hold more weights, and tensors that are recomputed or swapped one by one make room for them.
With the published micro-batch of two and at most two chunks per stage, tp{near.tp} pp{near.pp} vpp{near.vpp} ep{near.ep} wins, and the published layout is {fig.pct(slower - 1)} slower,
far below the error of the model.

**MFU of 41 %**, published for a later version of the system without its layout and batch. The best plan reaches {fig.pct(best.mfu, 1)} here, and {fig.pct(best.mfu * PUBLISHED_GFLOP / 358, 1)} by the authors' count of {PUBLISHED_GFLOP} GFLOP per
token (the model here has 358); the published layout {fig.pct(published.mfu, 1)} and {fig.pct(published.mfu * PUBLISHED_GFLOP / 358, 1)}. No search of this table exceeds {fig.pct(most, 1)}.""")


@figures("exact", "cheap")
def pangu_ultra_moe_718b_4(fig):
    words = "temper plan task=train model=pangu-ultra-moe-718b seq=8192 --json "
    free = fig.json(words + "hardware=ascend-910b cards=6144 batch=1536")
    bound = fig.json(words + "hardware=ascend-910b cards=6144 batch=1536 cp=1").plans[0]
    a, b, c = free.plans[:3]
    one = fig.json(words + "hardware=cm384 batch=768 compare=tp8,pp16,vpp2,ep32").plans
    fig.prose(f"""With context parallelism, the search finds layouts that are {100 * (bound.seconds / a.seconds - 1):.0f} % faster ({', '.join(f'tp{p.tp} cp{p.cp}' for p in (a, b, c))} instead of tp8; PP{a.pp},
VPP{a.vpp}, EP{a.ep} again), because sequences of 8K that are split over several devices need less tensor-parallel communication. Of {free.nodes / 1e6:.1f} million partitions, {free.timed:,} scenarios had to be timed.

On one CM384, the published layout is far from the best ({one[-1].seconds:.0f} s compared with {one[0].seconds:.0f} s at batch 768, on {one[-1].devices} of {one[0].devices} dies): fewer stages
are enough where {one[0].devices} dies hold one copy of the experts, and the supernode's links carry EP{one[0].ep}.""")
