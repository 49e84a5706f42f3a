#!/usr/bin/env python3
"""Measures a card with PyTorch: rows for `temper calibrate`, of the same kinds as configs/validation/h200.csv.

    python3 bench/gpu/measure_card.py --hardware my-h100 --out my-h100.csv
    python3 bench/gpu/measure_card.py --hardware my-h100 --out my-h100.csv --kinds gemm,decode_step --models qwen2.5-7b
    python3 bench/gpu/measure_card.py --device cpu --sizes tiny --hardware test --out test.csv

Needs only torch. Weights and inputs are random and have the models' shapes, so nothing is downloaded. A time is the
median of repetitions after a warm-up, each timed by device events (on a CPU by its clock). Cases that exceed the card's
memory are reported and skipped. Rows of an existing file are kept and not measured again.

| kind | work |
|---|---|
| gemm | y = x W^T in bf16, operands rotated over buffers so that caches do not serve them, as part of a captured graph |
| attention_prefill, attention_decode | causal attention over `seq`; one query over `context` keys; torch's fused kernel |
| device_copy, host_to_device, device_to_host | copies; host memory is pinned |
| kernel_launch_eager | a one-element kernel, back to back |
| decode_step | one token for `batch` sequences, whole model and sampling; a captured graph, or op by op |
| prefill, logprob_pass | forward of every token; logits of the last ones, or log-probs of all in chunks of 4096 |
| train_step | forward, backward and AdamW with states in bf16; every layer checkpointed, or none |
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

COLUMNS = ("hardware", "cards", "kind", "params", "metric", "unit", "value")


@dataclasses.dataclass(frozen=True)
class Shape:
    """Dimensions of a dense model, like the description of the same name in configs/models."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int


MODELS = {
    "qwen2.5-0.5b": Shape(24, 896, 14, 2, 64, 4864, 151936),
    "qwen2.5-7b": Shape(28, 3584, 28, 4, 128, 18944, 152064),
}


def shape_of(name: str) -> Shape:
    """Returns the shape for a name in MODELS, or for the config.json of a dense model."""
    if name in MODELS:
        return MODELS[name]
    path = pathlib.Path(name)
    if path.suffix != ".json" or not path.exists():
        raise SystemExit(f"unknown model {name}; expected one of {', '.join(MODELS)}, or the path of a config.json")
    c = json.loads(path.read_text())
    if any(key in c for key in ("num_experts", "n_routed_experts", "num_local_experts", "kv_lora_rank")):
        raise SystemExit(f"{name}: only dense models with grouped-query attention can be measured")
    heads = c["num_attention_heads"]
    return Shape(c["num_hidden_layers"], c["hidden_size"], heads, c.get("num_key_value_heads") or heads,
                 c.get("head_dim") or c["hidden_size"] // heads, c["intermediate_size"], c["vocab_size"])


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Cases to measure for each kind."""

    gemm_m: tuple[int, ...]
    gemm_nk: tuple[tuple[int, int], ...]
    attention: tuple[tuple[int, int, int], ...]  #: heads, kv_heads, head_dim
    prefill: tuple[tuple[int, int], ...]  #: batch, seq
    decode: tuple[tuple[int, int], ...]  #: batch, context
    train: tuple[tuple[int, int], ...]
    copies: tuple[int, ...]
    models: tuple[str, ...]
    repeats: int = 20


SIZES = {
    "card": Sizes(
        gemm_m=(1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
        gemm_nk=((4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944), (1536, 7168), (8192, 8192)),
        attention=((28, 4, 128), (14, 2, 64)),
        prefill=((1, 512), (1, 2048), (4, 2048), (16, 512), (1, 8192)),
        decode=((1, 512), (1, 2048), (1, 8192), (8, 2048), (32, 512), (32, 2048), (128, 512), (128, 2048), (256, 512), (256, 2048)),
        train=((1, 1024), (2, 2048), (4, 1024)),
        copies=(1 << 20, 1 << 24, 1 << 28, 1 << 31),
        models=("qwen2.5-0.5b", "qwen2.5-7b"),
    ),
    "tiny": Sizes(
        gemm_m=(1, 64), gemm_nk=((64, 64),), attention=((4, 2, 16),), prefill=((1, 32), (2, 16)), decode=((1, 16), (2, 32)),
        train=((1, 16),), copies=(1 << 12,), models=(), repeats=3,
    ),
}


# --- Timing


class Card:
    """The device that runs the work, and its timer."""

    def __init__(self, device: str, repeats: int) -> None:
        self.device = torch.device(device)
        self.repeats = repeats
        self.gpu = self.device.type == "cuda"

    def synchronize(self) -> None:
        if self.gpu:
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], object], inner: int = 1) -> float:
        """Returns the median seconds of one `work`, over repetitions of `inner` each."""
        for _ in range(3):
            work()
        self.synchronize()
        times = []
        for _ in range(self.repeats):
            if self.gpu:
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                for _ in range(inner):
                    work()
                end.record()
                torch.cuda.synchronize()
                times.append(begin.elapsed_time(end) / 1e3 / inner)
            else:
                at = time.perf_counter()
                for _ in range(inner):
                    work()
                times.append((time.perf_counter() - at) / inner)
        return statistics.median(times)

    def graphed(self, work: Callable[[], object]) -> Callable[[], object]:
        """The same as one captured graph; on a CPU, without a graph."""
        if not self.gpu:
            return work
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=self.device, dtype=torch.bfloat16)


# --- The model: decoder-only, grouped-query attention, SwiGLU, as transformers has Qwen2


class Norm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        whole = x.float()
        return self.weight * (whole * torch.rsqrt(whole.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        self.before, self.after = Norm(s.hidden), Norm(s.hidden)
        self.qkv = nn.Linear(s.hidden, (s.heads + 2 * s.kv_heads) * s.head_dim)
        self.out = nn.Linear(s.heads * s.head_dim, s.hidden, bias=False)
        self.gate_up = nn.Linear(s.hidden, 2 * s.ffn, bias=False)
        self.down = nn.Linear(s.ffn, s.hidden, bias=False)

    def split(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns queries, keys and values as [batch, heads, tokens, head_dim]."""
        s = self.s
        parts = self.qkv(self.before(x)).unflatten(-1, (-1, s.head_dim)).transpose(1, 2)
        q, k, v = parts.split((s.heads, s.kv_heads, s.kv_heads), dim=1)
        return rotated(q, cos, sin), rotated(k, cos, sin), v

    def rest(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.after(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        q, k, v = self.split(x, cos, sin)
        return self.rest(x, F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))


class Model(nn.Module):
    def __init__(self, s: Shape, card: Card) -> None:
        super().__init__()
        self.s = s
        with torch.device("meta"):
            self.embedding = nn.Embedding(s.vocabulary, s.hidden)
            self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
            self.norm = Norm(s.hidden)
            self.head = nn.Linear(s.hidden, s.vocabulary, bias=False)
        self.to(torch.bfloat16).to_empty(device=card.device)
        with torch.no_grad():
            for p in self.parameters():
                p.normal_(std=0.02) if p.dim() > 1 else p.fill_(1.0)

    def positions(self, begin: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        half = torch.arange(0, self.s.head_dim, 2, device=self.norm.weight.device, dtype=torch.float32)
        angles = torch.outer(torch.arange(begin, begin + tokens, device=half.device), 1e6 ** (-half / self.s.head_dim))
        both = torch.cat((angles, angles), dim=-1)
        return both.cos().to(torch.bfloat16), both.sin().to(torch.bfloat16)

    def trunk(self, ids: torch.Tensor, recompute: bool = False) -> torch.Tensor:
        x = self.embedding(ids)
        cos, sin = self.positions(0, ids.shape[1])
        for layer in self.layers:
            x = checkpoint(layer, x, cos, sin, use_reentrant=False) if recompute else layer(x, cos, sin)
        return self.norm(x)


def log_probs(model: Model, states: torch.Tensor, ids: torch.Tensor, chunk: int = 4096) -> torch.Tensor:
    """Log-probs of each token given its predecessors, in chunks that are recomputed in the backward pass."""

    def of(part: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return -F.cross_entropy(model.head(part).float(), targets, reduction="none")

    states, ids = states.flatten(0, 1), ids.flatten()
    parts = zip(states.split(chunk), ids.split(chunk), strict=True)
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(of, s, i, use_reentrant=False) for s, i in parts])
    return torch.cat([of(s, i) for s, i in parts])


# --- Kinds: each yields parameters, metric, unit and a function that measures


@dataclasses.dataclass(frozen=True)
class Case:
    params: str
    metric: str
    unit: str
    measure: Callable[[], float]


def gemm(card: Card, sizes: Sizes) -> Iterator[Case]:
    def time_of(m: int, n: int, k: int) -> float:
        buffers = 4 if (m * k + n * k) * 2 < 1 << 30 else 2
        xs, ws = [card.normal(m, k) for _ in range(buffers)], [card.normal(n, k) for _ in range(buffers)]

        def work() -> None:
            for x, w in zip(xs, ws, strict=True):
                F.linear(x, w)

        return card.seconds(card.graphed(work)) / buffers * 1e6

    for n, k in sizes.gemm_nk:
        for m in sizes.gemm_m:
            yield Case(f"m={m};n={n};k={k};dtype=bf16", "time", "us", lambda m=m, n=n, k=k: time_of(m, n, k))


def attention_prefill(card: Card, sizes: Sizes) -> Iterator[Case]:
    def time_of(batch: int, heads: int, kv_heads: int, dim: int, seq: int) -> float:
        q, k, v = card.normal(batch, heads, seq, dim), card.normal(batch, kv_heads, seq, dim), card.normal(batch, kv_heads, seq, dim)
        return card.seconds(card.graphed(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))) * 1e6

    for heads, kv_heads, dim in sizes.attention:
        for batch, seq in sizes.prefill:
            params = f"batch={batch};heads={heads};kv_heads={kv_heads};head_dim={dim};seq={seq}"
            yield Case(params, "time", "us", lambda a=(batch, heads, kv_heads, dim, seq): time_of(*a))


def attention_decode(card: Card, sizes: Sizes) -> Iterator[Case]:
    def time_of(batch: int, heads: int, kv_heads: int, dim: int, context: int) -> float:
        q = card.normal(batch, heads, 1, dim)
        k, v = card.normal(batch, kv_heads, context, dim), card.normal(batch, kv_heads, context, dim)
        return card.seconds(card.graphed(lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))) * 1e6

    for heads, kv_heads, dim in sizes.attention:
        for batch, context in sizes.decode:
            params = f"batch={batch};heads={heads};kv_heads={kv_heads};head_dim={dim};context={context}"
            yield Case(params, "time", "us", lambda a=(batch, heads, kv_heads, dim, context): time_of(*a))


def device_copy(card: Card, sizes: Sizes) -> Iterator[Case]:
    def rate_of(size: int) -> float:
        source = torch.empty(size, dtype=torch.uint8, device=card.device)
        target = torch.empty_like(source)
        return 2 * size / card.seconds(lambda: target.copy_(source)) / 1e9

    for size in sizes.copies[-1:]:
        yield Case(f"bytes={size};counts=read+write", "bandwidth", "GB/s", lambda size=size: rate_of(size))


def host_copies(card: Card, sizes: Sizes, to_device: bool) -> Iterator[Case]:
    def rate_of(size: int) -> float:
        host = torch.empty(size, dtype=torch.uint8, pin_memory=card.gpu)
        device = torch.empty(size, dtype=torch.uint8, device=card.device)
        source, target = (host, device) if to_device else (device, host)
        return size / card.seconds(lambda: target.copy_(source, non_blocking=True)) / 1e9

    for size in sizes.copies:
        yield Case(f"bytes={size}", "bandwidth", "GB/s", lambda size=size: rate_of(size))


def kernel_launch_eager(card: Card, sizes: Sizes) -> Iterator[Case]:
    one = torch.zeros(1, device=card.device)
    yield Case("", "time", "us", lambda: card.seconds(lambda: one.add_(1), inner=200) * 1e6)


def decode_step(card: Card, sizes: Sizes, name: str, model: Model) -> Iterator[Case]:
    def time_of(batch: int, context: int, launch: str) -> float:
        s = model.s
        caches = [(card.normal(batch, s.kv_heads, context, s.head_dim), card.normal(batch, s.kv_heads, context, s.head_dim))
                  for _ in range(s.layers)]
        ids = torch.zeros(batch, 1, dtype=torch.long, device=card.device)
        cos, sin = model.positions(context - 1, 1)
        noise = torch.empty(batch, s.vocabulary, device=card.device).exponential_()

        def work() -> torch.Tensor:
            x = model.embedding(ids)
            for layer, (keys, values) in zip(model.layers, caches, strict=True):
                q, k, v = layer.split(x, cos, sin)
                keys[:, :, -1:].copy_(k)
                values[:, :, -1:].copy_(v)
                x = layer.rest(x, F.scaled_dot_product_attention(q, keys, values, enable_gqa=True))
            logits = model.head(model.norm(x[:, -1])).float()
            return (logits.softmax(-1) / noise).argmax(-1)

        with torch.no_grad():
            return card.seconds(card.graphed(work) if launch == "graph" else work) * 1e3

    for batch, context in sizes.decode:
        yield Case(f"model={name};batch={batch};context={context};launch=graph", "time", "ms",
                   lambda a=(batch, context, "graph"): time_of(*a))
    batch, context = sizes.decode[len(sizes.decode) // 2 - 1]
    yield Case(f"model={name};batch={batch};context={context};launch=eager", "time", "ms",
               lambda: time_of(batch, context, "eager"))


def prefill(card: Card, sizes: Sizes, name: str, model: Model) -> Iterator[Case]:
    def time_of(batch: int, seq: int) -> float:
        ids = torch.zeros(batch, seq, dtype=torch.long, device=card.device)
        with torch.no_grad():
            return card.seconds(lambda: model.head(model.trunk(ids)[:, -1])) * 1e3

    for batch, seq in sizes.prefill:
        yield Case(f"model={name};batch={batch};seq={seq}", "time", "ms", lambda a=(batch, seq): time_of(*a))


def logprob_pass(card: Card, sizes: Sizes, name: str, model: Model) -> Iterator[Case]:
    def time_of(batch: int, seq: int) -> float:
        ids = torch.zeros(batch, seq, dtype=torch.long, device=card.device)
        with torch.no_grad():
            return card.seconds(lambda: log_probs(model, model.trunk(ids), ids)) * 1e3

    for batch, seq in sizes.prefill:
        yield Case(f"model={name};batch={batch};seq={seq}", "time", "ms", lambda a=(batch, seq): time_of(*a))


def train_step(card: Card, sizes: Sizes, name: str, model: Model) -> Iterator[Case]:
    def time_of(batch: int, seq: int, recompute: str) -> float:
        ids = torch.zeros(batch, seq, dtype=torch.long, device=card.device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=card.gpu)

        def work() -> None:
            optimizer.zero_grad(set_to_none=True)
            (-log_probs(model, model.trunk(ids, recompute == "full"), ids).mean()).backward()
            optimizer.step()

        try:
            return card.seconds(work) * 1e3
        finally:
            optimizer.zero_grad(set_to_none=True)

    for recompute in ("none", "full"):
        for batch, seq in sizes.train:
            yield Case(f"model={name};batch={batch};seq={seq};recompute={recompute};optimizer=adamw;states=bf16", "time", "ms",
                       lambda a=(batch, seq, recompute): time_of(*a))


OPERATORS: dict[str, Callable[[Card, Sizes], Iterator[Case]]] = {
    "gemm": gemm,
    "attention_prefill": attention_prefill,
    "attention_decode": attention_decode,
    "device_copy": device_copy,
    "host_to_device": lambda card, sizes: host_copies(card, sizes, True),
    "device_to_host": lambda card, sizes: host_copies(card, sizes, False),
    "kernel_launch_eager": kernel_launch_eager,
}
STEPS: dict[str, Callable[[Card, Sizes, str, Model], Iterator[Case]]] = {
    "decode_step": decode_step,
    "prefill": prefill,
    "logprob_pass": logprob_pass,
    "train_step": train_step,
}


# --- The file


class Rows:
    """Rows of the CSV file, written after every row so that no measurement is lost."""

    def __init__(self, path: pathlib.Path, hardware: str) -> None:
        self.path, self.hardware = path, hardware
        self.rows: list[list[str]] = []
        if path.exists():
            with path.open() as file:
                lines = list(csv.reader(file))
            if not lines or tuple(lines[0]) != COLUMNS:
                raise SystemExit(f"{path}: expected a file of rows, whose first line is {','.join(COLUMNS)}")
            self.rows = lines[1:]

    def has(self, kind: str, case: Case) -> bool:
        return any(row[:5] == [self.hardware, "1", kind, case.params, case.metric] for row in self.rows)

    def add(self, kind: str, case: Case, value: float) -> None:
        self.rows.append([self.hardware, "1", kind, case.params, case.metric, case.unit, f"{value:.6g}"])
        with self.path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *self.rows])


def measure(kind: str, cases: Iterator[Case], rows: Rows, card: Card) -> int:
    """Returns the number of rows that were skipped."""
    left_out = 0
    for case in cases:
        if rows.has(kind, case):
            continue
        try:
            value = case.measure()
        except (torch.OutOfMemoryError, MemoryError):
            left_out += 1
            print(f"{kind} {case.params}: skipped, it does not fit the memory", file=sys.stderr, flush=True)
            continue
        finally:
            if card.gpu:
                torch.cuda.empty_cache()
        rows.add(kind, case, value)
        print(f"{kind} {case.params}: {value:.4g} {case.unit}", file=sys.stderr, flush=True)
    return left_out


@contextlib.contextmanager
def model_of(shape: Shape, card: Card) -> Iterator[Model]:
    model = Model(shape, card)
    yield model
    del model
    if card.gpu:
        torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hardware", required=True, help="`name` in the hardware YAML")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="CSV file to write or to extend")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, cpu")
    parser.add_argument("--sizes", choices=SIZES, default="card", help="tiny: a quick test of the script")
    parser.add_argument("--kinds", default=",".join([*OPERATORS, *STEPS]))
    parser.add_argument("--models", help=f"comma-separated, from {', '.join(MODELS)}, or paths of config.json files")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    for kind in kinds:
        if kind not in OPERATORS and kind not in STEPS:
            parser.error(f"unknown kind {kind}; expected one of {', '.join([*OPERATORS, *STEPS])}")
    sizes = SIZES[options.sizes]
    models = options.models.split(",") if options.models else sizes.models
    shapes = {name: shape_of(name) for name in models}
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("torch finds no GPU; test the script with --device cpu --sizes tiny")
    torch.manual_seed(1)
    if options.device == "cpu":
        torch.set_num_threads(1)  # times are those of one core
    card = Card(options.device, sizes.repeats)
    rows = Rows(options.out, options.hardware)
    left_out = 0
    for kind in kinds:
        if kind in OPERATORS:
            left_out += measure(kind, OPERATORS[kind](card, sizes), rows, card)
    steps = [kind for kind in kinds if kind in STEPS]
    for name, shape in shapes.items() if steps else ():
        with model_of(shape, card) as model:
            for kind in steps:
                left_out += measure(kind, STEPS[kind](card, sizes, name, model), rows, card)
    print(f"{len(rows.rows)} rows in {options.out}; {left_out} skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
