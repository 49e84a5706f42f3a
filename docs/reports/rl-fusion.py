"""Figures of docs/reports/rl-fusion.md. `./x figures` runs these functions (docs/figures.py)."""
import math

import figures_limit
from figures_recipe import figures

CONFIG = "configs/cm384_pangu_fused.yaml"
ONE_BY_ONE = " placement.switching=one_by_one stragglers.prepare=true"
BATCHES = (512, 1024, 2048, 4096)
BOUNDS = (0, 1, 2, 4)
# Of the configuration: engines, attention replicas of each, tokens that their KV cache holds, responses of a group.
ENGINES, REPLICAS, SIBLINGS = 12, 16, 16
LENGTHS = {"mean": 7000, "p99_over_median": 8, "cap": 32768}
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
    whole = fig.run(f"{CONFIG} staleness.bound=0 steps=2")
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


@figures("exact", "slow")
def batch_and_bound(fig):
    fig.head("batch", "bound", "cards switch together", "one by one", "gain", "limit", "of the limit", align="rrrrrrr")
    _, _, seconds, _ = ceiling(fig)
    replicas = decoding(fig)
    computed = (seconds["train"] + seconds["reference"]) / 512
    for batch in BATCHES:
        for bound in BOUNDS:
            sets = f"{CONFIG} algorithm.groups_per_update={batch} staleness.bound={bound} steps={30 if batch == 512 else 5}"
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
    for batch, bound, steps in ((512, 1, 30), (2048, 0, 5), (2048, 2, 5)):
        for seed in (2, 3):
            sets = f"{CONFIG} algorithm.groups_per_update={batch} staleness.bound={bound} steps={steps} seed={seed}"
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
            sets = f"{config} algorithm.groups_per_update={batch} staleness.bound={bound} steps={10 if batch < 1024 else 5}"
            a, b = (fig.run(sets + x).tokens.trained_per_s for x in ("", ONE_BY_ONE))
            fig.row(name, f"{batch} x {SIBLINGS}", bound, fig.k(a), fig.k(b), fig.gain(b / a))


@figures("exact", "sampled")
def cache_and_slots(fig):
    held = cache_tokens(fig) / 20000
    fig.prose(f"""
An attention replica has {2048 // REPLICAS} slots, but its cache holds {held:.0f} responses of 20,000 tokens, {100 * held * REPLICAS / 2048:.0f} % of them.""")


@figures("exact", "slow")
def against_separate_cards(fig):
    fig.head("lengths", "batch", "separate, as shipped", "separate, best split", "with prepare, best split", "switch together",
             "one by one", "together over best", "one by one over best", "one by one over prepare", "closed form",
             align="lrrrrrrrrrr")
    splits = {"288 + 32 + 64": "placement.rollout_cards=288 rollout.replicas=9 simulation.trainer.ep=16",
              "256 + 32 + 96": "placement.rollout_cards=256 rollout.replicas=8 simulation.trainer.pp=6",
              "224 + 32 + 128": "",
              "192 + 32 + 160": "placement.rollout_cards=192 rollout.replicas=6 simulation.trainer.pp=10",
              "160 + 32 + 192": "placement.rollout_cards=160 rollout.replicas=5 simulation.trainer.ep=16",
              "128 + 32 + 224": "placement.rollout_cards=128 rollout.replicas=4 simulation.trainer.ep=8",
              "96 + 32 + 256": "placement.rollout_cards=96 rollout.replicas=3"}
    response = "simulation.response."
    lengths = {"mean 7,000, p99 8 times the median, cap 32,768": "",
               "mean 2,000, p99 8 times the median, cap 8,192": f"{response}mean=2000 {response}cap=8192",
               "mean 8,000, p99 3 times the median, cap 32,768": f"{response}mean=8000 {response}p99_over_median=3"}
    for name, sets in lengths.items():
        for batch in BATCHES:
            cell = f"{sets} algorithm.groups_per_update={batch} staleness.bound=0 steps=3"

            def separate(more):
                return {split: fig.run(f"configs/cm384_pangu.yaml {cell} {of_split}{more}").tokens.trained_per_s
                        for split, of_split in splits.items()}

            def named(speeds):
                split = max(speeds, key=speeds.get)
                return f"{fig.k(speeds[split])} ({split})"

            plain, prepared = separate(""), separate(" stragglers.prepare=true")
            together = fig.run(f"{CONFIG} {cell}")
            fused = fig.run(f"{CONFIG} {cell}{ONE_BY_ONE}").tokens.trained_per_s
            states = together.utilization.states
            generation = states["decode"] + states["prefill"]
            training = states["train"] + states["reference"]
            closed = (math.sqrt(generation) + math.sqrt(training)) ** 2 / (generation + training)
            turns, best = together.tokens.trained_per_s, max(plain.values())
            fig.row(name, f"{batch} x {SIBLINGS}", fig.k(plain["224 + 32 + 128"]), named(plain), named(prepared), fig.k(turns),
                    fig.k(fused), f"{turns / best:.2f}x", f"{fused / best:.2f}x", f"{fused / max(prepared.values()):.2f}x",
                    f"{closed:.2f}x")
