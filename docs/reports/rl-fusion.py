"""Figures of docs/reports/rl-fusion.md. `./x figures` runs these functions (docs/figures.py)."""
import math

import figures_gain as gain
import figures_limit
from figures_recipe import figures

CONFIG, ONE_BY_ONE, BATCHES = gain.SHARED, gain.ONE_BY_ONE, gain.BATCHES
BOUNDS = (0, 1, 2, 4)
# Of the configuration: engines, attention replicas of each, responses of a group, slots of an engine.
ENGINES, REPLICAS, SIBLINGS, SLOTS = 12, 16, 16, 2048
LENGTHS = {"mean": 7000, "p99_over_median": 8, "cap": 32768}
# Tokens/s of RL Fusion over those of separate cards, from secondary sources.
PUBLISHED = 25.0 / 14.0
PROMPTS = {"mean": 512, "p99_over_median": 4, "cap": 4096}


def length_weights(mean, p99_over_median, cap):
    """Weights and lengths of a lognormal distribution with this mean after its cap."""
    sigma = math.log(p99_over_median) / 2.3263478740408408
    steps = [(i + 0.5) / 4000 * 16 - 8 for i in range(4000)]
    weights = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * 16 / 4000 for z in steps]

    def with_median(mu):
        return [(w, min(cap, math.exp(mu + sigma * z))) for w, z in zip(weights, steps)]

    low, high = 0.0, math.log(cap)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if moment(with_median(middle), 1) < mean else (low, middle)
    return with_median(low)


def moment(of, power):
    return sum(weight * length ** power for weight, length in of)


def decode_step(fig, batch, context):
    """Seconds of a decode step with so many responses on each attention replica of an engine."""
    line = (f"temper cost kind=decode_step hardware=cm384 cards=32 model=pangu-ultra-moe-718b batch_per_dp={batch} tp=4 "
            f"dp={REPLICAS} ep=64 context={context:.0f} memory=report --json")
    return next(m.value for m in fig.json(line).metrics if m.name == "time")


def cache_tokens(fig):
    """Tokens that the KV cache of an attention replica holds: what the card map of `temper check` allocates."""
    lines = fig.text(f"temper check {CONFIG}").splitlines()
    gigabytes = {name: float(line.split()[3]) for line in lines for name in ("kv_alloc", "free_kv") if f"shared: {name}" in line}
    memory = [fig.json("temper cost kind=memory hardware=cm384 cards=32 model=pangu-ultra-moe-718b role=rollout tp=4 "
                       f"dp={REPLICAS} ep=64 cached_tokens={n} --json").metrics[0].value for n in (100000, 200000)]
    return (gigabytes["kv_alloc"] - gigabytes["free_kv"]) * 1e9 / ((memory[1] - memory[0]) / 100000)


def ceiling(fig):
    """Card seconds per trained token that generation, training and scoring need at least."""
    responses_of = length_weights(**LENGTHS)
    mean, square = moment(responses_of, 1), moment(responses_of, 2)
    prompt = moment(length_weights(**PROMPTS), 1)
    context = prompt + square / mean / 2  # of a token, on average over all that are generated
    batch = cache_tokens(fig) / context
    whole = fig.run(f"{CONFIG} algorithm.groups_per_update=512 staleness.bound=0 steps=2")
    seconds = {state: whole.utilization.states[state] * whole.wall_s / whole.steps for state in ("train", "reference")}
    responses = 512 * SIBLINGS
    seconds["decode"] = responses * mean * decode_step(fig, round(batch), context) / (ENGINES * REPLICAS * batch)
    return context, batch, seconds, whole.tokens.trained_per_s * whole.wall_s / whole.steps / sum(seconds.values())


def decoding(fig):
    """The replicas of all engines (figures_limit.py)."""
    per_context = (decode_step(fig, 10, 16000) - decode_step(fig, 10, 4000)) / 12000 / 10
    base = [decode_step(fig, size, 4000) - per_context * size * 4000 for size in figures_limit.SIZES]
    width = LENGTHS["cap"] / figures_limit.AGES
    reach = [sum(w * min(max(length - age * width, 0), width) / width for w, length in length_weights(**LENGTHS))
             for age in range(figures_limit.AGES)]
    return figures_limit.Decoding(ENGINES * REPLICAS, base, per_context, cache_tokens(fig), reach, width,
                                  moment(length_weights(**PROMPTS), 1))


def whole_turns(batch, bound):
    """Steps of a run. At a bound, cards in turn train one more step than it per turn, so these are whole turns."""
    return 30 if batch == 512 else 5 if bound == 4 else 6


@figures("exact", "slow")
def batch_and_bound(fig):
    fig.head("batch", "bound", "cards switch together", "one by one", "gain", "limit", "of the limit", align="rrrrrrr")
    _, _, seconds, _ = ceiling(fig)
    replicas = decoding(fig)
    computed = (seconds["train"] + seconds["reference"]) / 512
    for batch in BATCHES:
        for bound in BOUNDS:
            sets = f"{CONFIG} algorithm.groups_per_update={batch} staleness.bound={bound} steps={whole_turns(batch, bound)}"
            together, apart = (fig.run(sets + x) for x in ("", ONE_BY_ONE))
            a, b = together.tokens.trained_per_s, apart.tokens.trained_per_s
            tokens = b * apart.wall_s / apart.steps
            limit = tokens / replicas.least_seconds(batch * SIBLINGS, computed * batch, bound)
            fig.row(f"{batch} x {SIBLINGS}", bound, fig.k(a), fig.k(b), fig.gain(b / a), fig.k(limit), fig.pct(b / limit))


@figures("exact", "sampled")
def ceiling_of_the_cards(fig):
    context, batch, seconds, most = ceiling(fig)
    fig.prose(f"""
A token is generated at a context of {context:.0f} tokens on average, and the KV cache of an attention replica then holds {batch:.0f} responses. With that many at
all times, 512 x 16 responses take {seconds["decode"]:.0f} s of all cards to generate, {seconds["train"]:.0f} s to train and {seconds["reference"]:.0f} s to score. Cards that never wait would
train **{fig.k(most)} tokens/s**.""")


@figures("exact", "slow")
def other_seeds(fig):
    fig.head("batch", "bound", "seed", "cards switch together", "one by one", "gain", align="rrrrrr")
    for batch, bound in ((512, 1), (2048, 0), (2048, 2)):
        for seed in (2, 3):
            sets = f"{CONFIG} algorithm.groups_per_update={batch} staleness.bound={bound} steps={whole_turns(batch, bound)} seed={seed}"
            a, b = (fig.run(sets + x).tokens.trained_per_s for x in ("", ONE_BY_ONE))
            fig.row(f"{batch} x {SIBLINGS}", bound, seed, fig.k(a), fig.k(b), fig.gain(b / a))


@figures("exact", "slow")
def other_workloads(fig):
    fig.head("workload", "batch", "bound", "cards switch together", "one by one", "gain", align="lrrrrr")
    lengths = "simulation.response."
    second = ("configs/a3_64_qwen3_235b_32k.yaml rollout.replicas=4 simulation.rollout.ep=32 simulation.rollout.kv_share=0.6 "
              "simulation.trainer.ep=8 simulation.trainer.cp=1")
    rows = [("lengths: mean 2,000, cap 8,192", f"{CONFIG} {lengths}mean=2000 {lengths}cap=8192", ((2048, 0), (1024, 1))),
            ("lengths: mean 8,000, p99 three times the median", f"{CONFIG} {lengths}mean=8000 {lengths}p99_over_median=3", ((2048, 0), (1024, 1))),
            ("Qwen3 235B on 64 cards, four engines", second, ((128, 0), (128, 1), (128, 2), (512, 0), (512, 1), (512, 2)))]
    for name, config, cells in rows:
        for batch, bound in cells:
            sets = f"{config} algorithm.groups_per_update={batch} staleness.bound={bound} steps={12 if batch < 1024 else 6}"
            a, b = (fig.run(sets + x).tokens.trained_per_s for x in ("", ONE_BY_ONE))
            fig.row(name, f"{batch} x {SIBLINGS}", bound, fig.k(a), fig.k(b), fig.gain(b / a))


@figures("exact", "sampled")
def cache_and_slots(fig):
    held = cache_tokens(fig) / 20000
    fig.prose(f"""
An attention replica has {SLOTS // REPLICAS} slots, but its cache holds {held:.0f} responses of 20,000 tokens, {100 * held * REPLICAS / SLOTS:.0f} % of them.""")


def surface(fig):
    return [gain.Cell(fig, lengths, batch, 0, 3) for lengths in gain.LENGTHS for batch in gain.BATCHES]


def filled(cell):
    """Responses of a batch as a share of the slots of all engines."""
    return cell.batch * SIBLINGS / (ENGINES * SLOTS)


def span(gains):
    return f"{min(gains):.2f}x to {max(gains):.2f}x"


@figures("exact", "slow")
def what_it_gains(fig):
    cells = surface(fig)
    fig.head("a batch has", "switch together", "one by one", "one by one, and separate cards prepare gradients",
             "one by one over switch together", align="lrrrr")
    for name, of in (("a third as many responses as slots (512 x 16)", (512,)), ("two thirds (1024 x 16)", (1024,)),
                     ("more than slots (2048 x 16, 4096 x 16)", (2048, 4096))):
        chosen = [c for c in cells if c.batch in of]
        fig.row(name, span([c.together / c.best for c in chosen]), span([c.one_by_one / c.best for c in chosen]),
                span([c.one_by_one / c.best_prepared for c in chosen]), span([c.one_by_one / c.together for c in chosen]))
    full = [c for c in cells if filled(c) >= 1]
    fig.holds(all(c.one_by_one > 1.2 * c.best_prepared for c in full), "share when a batch fills the slots")
    even = [c for c in cells if c.batch == 1024 and c.lengths.endswith(":3")]
    fig.holds(all(c.one_by_one > 1.3 * c.best_prepared for c in even), "share at two thirds of the slots if lengths are even")
    fig.holds(all(c.one_by_one < 1.15 * c.best_prepared for c in cells if c.batch == 512), "prepare gradients first below that")


@figures("exact", "slow")
def against_separate_cards(fig):
    cells = surface(fig)
    fig.picture(gain.picture(cells, PUBLISHED), "rl-fusion-gain.svg")
    fig.say("![gain of time-shared over separate cards, by batch and lengths](../images/rl-fusion-gain.svg)")
    fig.say()
    fig.head("lengths", "batch", "of the slots", "separate, as shipped", "separate, best split", "with prepare, best split",
             "switch together", "one by one", align="lrrrrrrr")
    for c in cells:
        fig.row(c.lengths, f"{c.batch} x {SIBLINGS}", fig.pct(filled(c)), fig.k(c.shipped), named(fig, c.plain),
                named(fig, c.prepared), fig.k(c.together), fig.k(c.one_by_one))
    fig.prose("Gains:")
    fig.say()
    fig.head("lengths", "batch", "together over shipped", "together over best", "one by one over shipped", "one by one over best",
             "one by one over prepare", "one by one over together", "closed form", align="lrrrrrrrr")
    for c in cells:
        fig.row(c.lengths, f"{c.batch} x {SIBLINGS}", *[f"{a / b:.2f}x" for a, b in (
            (c.together, c.shipped), (c.together, c.best), (c.one_by_one, c.shipped), (c.one_by_one, c.best),
            (c.one_by_one, c.best_prepared), (c.one_by_one, c.together), (c.closed_form, 1))])
    few = {c.batch: c for c in cells if c.lengths == "7000:32768:8"}
    many = {batch: gain.Cell(fig, "7000:32768:8", batch, 0, 10) for batch in (512, 2048)}
    change = max(abs(of(many[b]) / of(few[b]) - 1) for b in many for *_, of in gain.LINES)
    fig.prose(f"""
- **Against separate cards as published frameworks run them**, with the best split, cards that switch together gain {span([c.together / c.best for c in cells])} and one by one {span([c.one_by_one / c.best for c in cells])}. With the split as shipped, it is {span([c.together / c.shipped for c in cells])} and {span([c.one_by_one / c.shipped for c in cells])}. Published are {PUBLISHED:.2f}x and a doubled utilization, without batch, lengths and split. A batch of 2048 x 16 that switches together gains {span([c.together / c.best for c in cells if c.batch == 2048])}; nothing here is fitted to it.
- **Against separate cards that prepare gradients**, one by one gains {span([c.one_by_one / c.best_prepared for c in cells])}. Much of what sharing cards gains in a synchronous run can be had without sharing them.
- **Against the co-located synchronous baseline**, one by one gains {span([c.one_by_one / c.together for c in cells])}.

Three steps are enough: at 7000:32768:8, ten steps change no gain at 512 x 16 and 2048 x 16 by more than {fig.pct(change, 1)}.""")


PLACEMENTS = {"separate": (gain.SEPARATE, ""), "switch together": (CONFIG, ""), "one by one": (CONFIG, ONE_BY_ONE)}


def placed(fig, name, batch, bound, more=""):
    config, sets = PLACEMENTS[name]
    return fig.run(f"{config} algorithm.groups_per_update={batch} staleness.bound={bound} steps={3 * (bound + 1)}{sets}{more}")


@figures("exact", "slow")
def tails(fig):
    fig.head("batch", "bound", *[cell for name in PLACEMENTS for cell in (name, "tail", "of it idle")], align="rr" + "rrr" * len(PLACEMENTS))
    shares = {}
    for batch in (512, 1024, 2048):
        for bound in (0, 1):
            cells = []
            for name in PLACEMENTS:
                run = placed(fig, name, batch, bound)
                tail = run.tail
                shares[name, batch, bound] = tail.share
                cells += [fig.k(run.tokens.trained_per_s), fig.pct(tail.share), fig.pct(tail.waits_s / (tail.waits_s + tail.decode_s)) if tail.share > 0.005 else "-"]
            fig.row(f"{batch} x {SIBLINGS}", bound, *cells)
    cells = [(batch, bound) for batch in (512, 1024, 2048) for bound in (0, 1)]
    fig.holds(all(shares[("one by one", *cell)] < shares[("switch together", *cell)] for cell in cells), "shorter one by one")
    fig.holds(all(shares["separate", batch, 1] < 0.06 for batch in (512, 1024, 2048)), "a bound of 1 ends most of it on separate cards")


@figures("exact", "slow")
def predicted_lengths(fig):
    fig.head("correlation", "batch", "bound", *[cell for name in PLACEMENTS for cell in (name, "predicted")], align="rrr" + "rr" * len(PLACEMENTS))
    gains = {}

    def change(name, batch, bound, correlation, seed=1):
        sets = f" simulation.response.sibling_correlation={correlation} seed={seed} stragglers.predict_length="
        a, b = (placed(fig, name, batch, bound, sets + on).tokens.trained_per_s for on in ("false", "true"))
        return a, b / a

    for correlation in (0, 0.5, 0.9):
        for batch, bound in ((512, 0), (512, 1), (512, 2), (1024, 0), (1024, 1)):
            cells = []
            for name in PLACEMENTS:
                a, ratio = change(name, batch, bound, correlation)
                gains.setdefault((name, correlation), []).append(ratio)
                cells += [fig.k(a), fig.gain(ratio)]
            fig.row(correlation, f"{batch} x {SIBLINGS}", bound, *cells)
    every = [ratio for ratios in gains.values() for ratio in ratios]
    fig.holds(min(every) > 0.98, "costs at most 2 %")
    seeds = " and ".join(fig.gain(change("one by one", 1024, 0, 0.9, seed)[1]) for seed in (2, 3))
    fig.prose(f"""
Prediction changes the speed by {fig.gain(min(every))} to {fig.gain(max(every))}. The largest gain is chance: seeds 2 and 3 give {seeds} in that cell.""")


OWN_SWITCH = 10  # Seconds of a step: an example of a measurement.
PUBLISHED_SWITCH = 35.7  # Seconds of a step: Ascend report of DeepSeek-R1 on 128 cards, reports/simulated-supernode.md.


def switch_seconds(run, *states):
    """Seconds of a step in which shared cards switch roles: of all states of a switch, or of some."""
    return sum(s.count * s.mean_s for name, s in run.switches.states.items() if not states or name in states) / run.steps


def published_link_share(fig):
    """The share of the links at which the published step switches as slowly as published."""
    config = "configs/a3_128_r1_671b.yaml simulation.publication.link_share="
    ideal = fig.run(config + "1")
    beside = switch_seconds(ideal, "bind", "allocate_kv")  # Not on the links.
    share = round((switch_seconds(ideal) - beside) / (PUBLISHED_SWITCH - beside), 4)
    fig.holds(abs(switch_seconds(fig.run(f"{config}{share}")) - PUBLISHED_SWITCH) < 0.5, "the published seconds")
    return share


@figures("exact", "slow")
def framework_time(fig):
    published = published_link_share(fig)
    fig.head("switches", "link_share", "batch", "switches of a step, together", "one by one", "separate, best split", "switch together",
             "one by one", "together over best", "one by one over best", align="llrrrrrrrr")
    speeds, seconds = {}, {}
    rows = [("ideal", 1, "false", "ideal"), ("ideal, shared host links", 1, "true", "ideal"), ("own, measured at 10 s", None, "false", "ideal"),
            ("as published", published, "false", "ideal")] + [(f"`{name}`", 1, "false", name) for name in FRAMEWORKS]
    for name, share, links, framework in rows:
        share = share or round((seconds["ideal"] - beside) / (OWN_SWITCH - beside), 4)
        for batch in (512, 2048):
            sets = (f" algorithm.groups_per_update={batch} staleness.bound=0 steps=3 simulation.publication.link_share={share}"
                    f" simulation.shared_host_links={links} simulation.framework={framework}")
            best = max(fig.run(f"{gain.SEPARATE}{sets} {split}").tokens.trained_per_s for split in gain.SPLITS.values())
            together, apart = fig.run(gain.SHARED + sets), fig.run(gain.SHARED + sets + gain.ONE_BY_ONE)
            a, b = together.tokens.trained_per_s, apart.tokens.trained_per_s
            fig.row(name, share, f"{batch} x {SIBLINGS}", f"{switch_seconds(together):.1f} s", f"{switch_seconds(apart):.0f} s", fig.k(best),
                    fig.k(a), fig.k(b), f"{a / best:.2f}x", f"{b / best:.2f}x")
            speeds[name, batch] = (a, b)
            seconds[name], beside = switch_seconds(together), switch_seconds(together, "bind", "allocate_kv")
    def lost(name):
        return [1 - min(speeds[name, batch][way] / speeds["ideal", batch][way] for batch in (512, 2048)) for way in (0, 1)]
    slow, shared = lost("as published"), lost("ideal, shared host links")
    most = [max(lost(f"`{name}`")[way] for name in FRAMEWORKS) for way in (0, 1)]
    fig.prose(f"""
"As published" is the share at which the step of DeepSeek-R1 on 128 cards ([supernode](simulated-supernode.md)) switches for {PUBLISHED_SWITCH} s, as published. It costs
cards that switch together at most {fig.pct(slow[0], 1)} of their speed, and one by one, which switches many times in a step, at most {fig.pct(slow[1], 1)}.

"Own" is a framework whose switches of a step were measured at {OWN_SWITCH} s. "Shared host links" is `simulation.shared_host_links=true`: the 16 dies of a node have 640 GB/s to their
hosts together, 40 GB/s each, and not 151 GB/s each. That costs at most {fig.pct(shared[0], 1)} and {fig.pct(shared[1], 1)}.

The last rows have the stages of a framework (`simulation.framework`). They cost cards that switch together at most {fig.pct(most[0], 1)}, and one by one at most
{fig.pct(most[1], 1)}. Each has only the half that its rows tell: the publications of the first three and the moves of `cann-recipes`; the other half takes the time of the links.""")


# Built-in descriptions in configs/frameworks. Their stages are fitted here, on published rows: name, rows, seconds, request, and whether the
# seconds have copies from the trainer in them that `temper cost` knows.
NEMO = "model=deepseek-v3 from_pp=16 from_dp=16 from_ep=16 to_tp=32 to_dp=8 to_ep=32 cards=512 hardware="
FITS = (
    ("nemo-rl", "tensors", "us", (
        ("RS024, RS025", (0.74 + 1.0) / 2, "cards=32 hardware=nvidia-h100 model=qwen3-30b-a3b from_pp=2 from_dp=8 from_ep=8 to_tp=8 to_dp=2 to_ep=8", True),
        ("RS028, RS029", (2.39 + 2.83) / 2, NEMO + "nvidia-h100", True),
        ("RS032, RS033", (1.93 + 2.59) / 2, NEMO + "nvidia-gb200", True))),
    ("checkpoint-engine", "version", "GB/s", (
        ("RS039 + RS040", 0.12 + 3.47, "cards=16 hardware=nvidia-h800 model=glm-4.5-air to_tp=8 to_ep=8", False),
        ("RS051 + RS052", 0.8 + 11.33, "cards=256 hardware=nvidia-h20 model=deepseek-v3 bytes_per_parameter=1 to_tp=16 to_ep=16", False))),
    ("verl", "tensors", "us", (
        ("RS016", 0.12, "cards=8 hardware=nvidia-h20 model=qwen2.5-7b", False),
        ("RS018", 15.76, "cards=32 hardware=nvidia-h20 model=qwen3-30b-a3b", False))),
)
# Rows of other ways to publish with the same frameworks, which no fit has used.
CHECKS = {"checkpoint-engine": (("RS039 + RS041, point to point", 0.12 + 4.12, 0), ("RS051 + RS053, point to point", 0.8 + 11.81, 1)),
          "verl": (("RS017, checkpoint engine on", 0.02, 0), ("RS019, checkpoint engine on", 4.38, 1))}
FRAMEWORKS = [name for name, *_ in FITS] + ["cann-recipes"]
SWITCH_ROW = 24.45  # RL014: offload and the rest of a switch of configs/a3_128_r1_671b.yaml, seconds of a step.
MOVES = ("offload_optimizer", "onload_optimizer", "offload_reference", "onload_reference")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


@figures("exact", "cheap")
def framework_fits(fig):
    def cost(request, framework="ideal"):
        metrics = {m.name: m.value for m in fig.json(f"temper cost --json kind=reshard framework={framework} {request}").metrics}
        return metrics["time"], metrics

    fig.head("framework", "rows", "published", "links", "fitted", "error", "left out", "error", "fitted on all", align="llrrrrrrr")
    left_out = {}

    def of_others(values):
        return [geometric_mean(values[:i] + values[i + 1:]) for i in range(len(values))]

    for name, amount, unit, rows in FITS:
        links = [cost(request)[0] if counted else 0 for _, _, request, counted in rows]
        amounts = [cost(request)[1][amount] for _, _, request, _ in rows]
        rates = [(seconds - link) / n for (_, seconds, _, _), link, n in zip(rows, links, amounts)]
        fitted = geometric_mean(rates)
        shown = f"{fitted * 1e6:.3g} us per tensor" if unit == "us" else f"{1e-9 / fitted:.3g} GB/s of the version"
        for i, (ids, seconds, request, _) in enumerate(rows):
            both = [links[i] + rate * amounts[i] for rate in (fitted, of_others(rates)[i])]
            left_out.setdefault(name, []).append(abs(both[1] / seconds - 1))
            fig.row(f"`{name}`", ids, f"{seconds:.2f} s", f"{links[i]:.2f} s" if links[i] else "-", f"{both[0]:.2f} s", fig.gain(both[0] / seconds, 0),
                    f"{both[1]:.2f} s", fig.gain(both[1] / seconds, 0), shown)
            shipped = (cost(request, name)[0] - cost(request)[0]) / amounts[i]
            fig.holds(abs(shipped / fitted - 1) < 0.005, f"the description of {name} has what is fitted here")
        if all(links):  # Another form, fitted in the same way.
            slower = of_others([seconds / link for (_, seconds, _, _), link in zip(rows, links)])
            share = sum(abs(link * s / seconds - 1) for link, s, (_, seconds, _, _) in zip(links, slower, rows)) / len(rows)
        for ids, seconds, of in CHECKS.get(name, ()):
            predicted = fitted * amounts[of]
            fig.row(f"`{name}`", ids, f"{seconds:.2f} s", "-", "not fitted", "", f"{predicted:.2f} s", fig.gain(predicted / seconds, 0), shown)
    run = fig.run("configs/a3_128_r1_671b.yaml simulation.framework=cann-recipes")
    alone = fig.run("configs/a3_128_r1_671b.yaml")
    moves, links = switch_seconds(run, *MOVES), switch_seconds(alone, *MOVES)
    fig.holds(abs(moves - SWITCH_ROW) < 0.1, "the published seconds")
    fig.row("`cann-recipes`", "RL014", f"{SWITCH_ROW:.2f} s", f"{links:.2f} s", f"{moves:.2f} s", fig.gain(moves / SWITCH_ROW, 0), "-", "one row", "3.33 GB/s of a die")
    mean = {name: fig.pct(sum(errors) / len(errors)) for name, errors in left_out.items()}
    fig.prose(f"""
Mean error of a row that is left out: {mean['nemo-rl']} for `nemo-rl`, {mean['checkpoint-engine']} for `checkpoint-engine`, {mean['verl']} for `verl`. "Fitted" has every row of its
framework, so its error says how well one constant follows them, and nothing about other rows. Instead of a time per tensor, a share of the links for `nemo-rl` would miss
a row that is left out by {fig.pct(share)} on average.""")


def named(fig, speeds):
    split = max(speeds, key=speeds.get)
    return f"{fig.k(speeds[split])} ({split})"
