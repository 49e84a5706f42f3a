"""The quickstart's policy in plain numpy: a rollout, a trainer and a reference for the same weights as the
built-in engines.

    rollout: {engine: {kind: python, use: "numpy_policy:NumpyEngine"}}
    trainer: {engine: {kind: python, use: "numpy_policy:NumpyTrainer"}}
    reference: {engine: {kind: python, use: "numpy_policy:NumpyReference"}}

A transformer (LlamaForCausalLM) with RMSNorm, rotary positions, grouped-query attention and SwiGLU.
Matrices with the same input are fused. With d = hidden, h = d / heads and f = ffn, the tensors are
    embedding.weight [V, d]            head.weight [V, d]            norm.weight [d]
    layers.I.attention_norm.weight [d], layers.I.ffn_norm.weight [d]
    layers.I.attention.qkv.weight [(heads + 2 kv_heads) h, d], layers.I.attention.out.weight [d, d]
    layers.I.ffn.gate_up.weight [2 f, d], layers.I.ffn.down.weight [d, f]
Files use Hugging Face names (docs/how-to/your-model.md); fused() and stored() convert.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import temper
from temper.messages import ModelConfig

Array = np.ndarray
Tensors = dict[str, Array]


# --- Names

#: The tensors of a layer, and the Hugging Face tensors of their rows, in order.
PARTS = {
    "attention_norm": ["input_layernorm"],
    "attention.qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    "attention.out": ["self_attn.o_proj"],
    "ffn_norm": ["post_attention_layernorm"],
    "ffn.gate_up": ["mlp.gate_proj", "mlp.up_proj"],
    "ffn.down": ["mlp.down_proj"],
}
WHOLE = {"embedding": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}


def parts_of(name: str) -> list[str]:
    """The Hugging Face names of a tensor's rows, in order."""
    own = name.removesuffix(".weight")
    if own in WHOLE:
        return [WHOLE[own] + ".weight"]
    _, layer, rest = own.split(".", 2)
    return [f"model.layers.{layer}.{part}.weight" for part in PARTS[rest]]


def fused(model: ModelConfig, weights: Mapping[str, Array]) -> Tensors:
    names = ["embedding", "norm", "head"]
    names += [f"layers.{i}.{part}" for i in range(model.layers) for part in PARTS]
    return {
        name + ".weight": np.concatenate([weights[part] for part in parts_of(name)])
        for name in names
    }


def stored(model: ModelConfig, tensors: Tensors) -> Tensors:
    width = model.hidden // model.heads
    rows = {3: [model.heads * width, (model.heads + model.kv_heads) * width], 2: 2, 1: 1}
    out: Tensors = {}
    for name, tensor in tensors.items():
        parts = parts_of(name)
        out.update(zip(parts, np.split(tensor, rows[len(parts)])))
    return out


def base_of(role: Any) -> Tensors:
    """The initial weights of the run, from a model folder with one weight file."""
    image = (role.base_weights / "model.safetensors").read_bytes()
    return fused(role.model, temper.Weights(image))


# --- The network


def normalise(x: Array, w: Array) -> tuple[Array, Array, Array]:
    inverse = 1.0 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    unit = x * inverse
    return unit * w, unit, inverse


def normalise_back(dy: Array, w: Array, unit: Array, inverse: Array) -> tuple[Array, Array]:
    d_unit = dy * w
    dx = inverse * (d_unit - unit * (d_unit * unit).mean(-1, keepdims=True))
    return dx, (dy * unit).reshape(-1, w.size).sum(0)


class Network:
    """Forward and backward passes over rows of equal length, with causal attention."""

    def __init__(self, model: ModelConfig) -> None:
        self.model = model
        self.size = model.hidden // model.heads
        self.group = model.heads // model.kv_heads
        wave = model.rope_base ** (-np.arange(self.size // 2) * 2.0 / self.size)
        angles = np.arange(model.context)[:, None] * wave
        self.cos, self.sin = np.cos(angles).astype("f4"), np.sin(angles).astype("f4")

    def rotate(self, x: Array, first: int, back: bool = False) -> Array:
        """Rotates x [.., T, h] at positions `first` to `first + T - 1`."""
        last = first + x.shape[-2]
        cos, sin = self.cos[first:last], self.sin[first:last]
        if back:
            sin = -sin
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def heads(self, qkv: Array, first: int) -> tuple[Array, Array, Array]:
        """Queries [B, kv, group, T, h], keys and values [B, kv, 1, T, h]."""
        b, t, _ = qkv.shape
        m = self.model
        split = qkv.reshape(b, t, m.heads + 2 * m.kv_heads, self.size).transpose(0, 2, 1, 3)
        q = split[:, : m.heads].reshape(b, m.kv_heads, self.group, t, self.size)
        k = split[:, m.heads : m.heads + m.kv_heads, None]
        v = split[:, m.heads + m.kv_heads :, None]
        return self.rotate(q, first), self.rotate(k, first), v

    def merged(self, mixed: Array) -> Array:
        b, _, _, t, _ = mixed.shape
        return (
            mixed.reshape(b, self.model.heads, t, self.size).transpose(0, 2, 1, 3).reshape(b, t, -1)
        )

    def forward(
        self,
        w: Tensors,
        tokens: Array,
        cache: list[Any] | None = None,
        tape: list[Any] | None = None,
    ) -> Array:
        """Outputs [B, T, d] before the head. `cache` has the keys and values per layer and is extended.
        `tape` receives the intermediate values for backward()."""
        x = w["embedding.weight"][tokens]
        first = 0 if not cache else cache[0][0].shape[-2]
        t = tokens.shape[1]
        hidden = np.triu(np.full((t, first + t), -np.inf, "f4"), first + 1)
        for i in range(self.model.layers):
            name = f"layers.{i}."
            n1, u1, i1 = normalise(x, w[name + "attention_norm.weight"])
            q, k, v = self.heads(n1 @ w[name + "attention.qkv.weight"].T, first)
            if cache is not None:
                if first:
                    k = np.concatenate([cache[i][0], k], axis=-2)
                    v = np.concatenate([cache[i][1], v], axis=-2)
                    cache[i] = (k, v)
                else:
                    cache.append((k, v))
            scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(self.size)) + hidden
            p = np.exp(scores - scores.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            mixed = self.merged(p @ v)
            x2 = x + mixed @ w[name + "attention.out.weight"].T
            n2, u2, i2 = normalise(x2, w[name + "ffn_norm.weight"])
            gate, up = np.split(n2 @ w[name + "ffn.gate_up.weight"].T, 2, axis=-1)
            sigmoid = 1.0 / (1.0 + np.exp(-gate))
            inner = gate * sigmoid * up
            if tape is not None:
                tape.append((n1, u1, i1, q, k, v, p, mixed, n2, u2, i2, gate, up, sigmoid, inner))
            x = x2 + inner @ w[name + "ffn.down.weight"].T
        out, unit, inverse = normalise(x, w["norm.weight"])
        if tape is not None:
            tape.append((unit, inverse))
        return out

    def backward(self, w: Tensors, tokens: Array, d_out: Array, tape: list[Any]) -> Tensors:
        """Gradients of all tensors except the head, from the gradients of the outputs."""
        g: Tensors = {}
        d = self.model.hidden

        def linear(name: str, dy: Array, x: Array) -> Array:
            flat = dy.reshape(-1, dy.shape[-1])
            g[name] = flat.T @ x.reshape(-1, x.shape[-1])
            return dy @ w[name]

        dx, g["norm.weight"] = normalise_back(d_out, w["norm.weight"], *tape[-1])
        for i in reversed(range(self.model.layers)):
            name = f"layers.{i}."
            n1, u1, i1, q, k, v, p, mixed, n2, u2, i2, gate, up, sigmoid, inner = tape[i]
            d_inner = linear(name + "ffn.down.weight", dx, inner)
            d_gate = d_inner * up * sigmoid * (1 + gate * (1 - sigmoid))
            d_gate_up = np.concatenate([d_gate, d_inner * gate * sigmoid], axis=-1)
            d_n2 = linear(name + "ffn.gate_up.weight", d_gate_up, n2)
            d_x2, g[name + "ffn_norm.weight"] = normalise_back(
                d_n2, w[name + "ffn_norm.weight"], u2, i2
            )
            dx = dx + d_x2
            d_mixed = linear(name + "attention.out.weight", dx, mixed)
            b, t, _ = d_mixed.shape
            d_heads = d_mixed.reshape(b, t, self.model.heads, self.size).transpose(0, 2, 1, 3)
            d_heads = d_heads.reshape(b, self.model.kv_heads, self.group, t, self.size)
            d_v = (p.swapaxes(-1, -2) @ d_heads).sum(2, keepdims=True)
            d_p = d_heads @ v.swapaxes(-1, -2)
            d_s = p * (d_p - (d_p * p).sum(-1, keepdims=True)) / np.float32(np.sqrt(self.size))
            d_q = self.rotate(d_s @ k, 0, back=True)
            d_k = self.rotate((d_s.swapaxes(-1, -2) @ q).sum(2, keepdims=True), 0, back=True)
            joined = [d_q.reshape(b, -1, t, self.size), d_k[:, :, 0], d_v[:, :, 0]]
            d_qkv = np.concatenate(joined, axis=1).transpose(0, 2, 1, 3).reshape(b, t, -1)
            d_n1 = linear(name + "attention.qkv.weight", d_qkv, n1)
            d_x, g[name + "attention_norm.weight"] = normalise_back(
                d_n1, w[name + "attention_norm.weight"], u1, i1
            )
            dx = dx + d_x
        g["embedding.weight"] = np.zeros_like(w["embedding.weight"])
        np.add.at(g["embedding.weight"], tokens.ravel(), dx.reshape(-1, d))
        return g


def log_softmax(logits: Array) -> Array:
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


# --- The roles


class NumpyEngine(temper.Engine):
    """Generates requests of equal length together, one token of each at a time."""

    batch = 128

    def __init__(self) -> None:
        self.network = Network(self.role.model)
        self.random = np.random.default_rng([self.role.seed, hash(self.role.name) & 0xFFFF])
        self.temperature = np.float32(self.role.settings.sampling.temperature)
        self.end = self.role.vocabulary.end

    def load(self, version: int, weights: temper.Weights) -> None:
        self.weights = fused(self.role.model, weights)

    def generate(self, requests: list[temper.Request]) -> Iterator[temper.Completion | None]:
        by_length: dict[int, list[temper.Request]] = {}
        for request in requests:
            by_length.setdefault(request.tokens.size, []).append(request)
        for some in by_length.values():
            yield from self.together(some)

    def together(self, requests: list[temper.Request]) -> Iterator[temper.Completion | None]:
        feed = np.stack([r.tokens for r in requests])
        cache: list[Any] = []
        tokens: list[list[int]] = [[] for _ in requests]
        logprobs: list[list[float]] = [[] for _ in requests]
        running = list(range(len(requests)))
        while running:
            out = self.network.forward(self.weights, feed, cache)[:, -1]
            scores = log_softmax(out @ self.weights["head.weight"].T / self.temperature)
            noise = self.random.gumbel(size=scores.shape)
            chosen = np.argmax(scores + noise, axis=-1)
            still = []
            for row, i in enumerate(running):
                tokens[i].append(int(chosen[row]))
                logprobs[i].append(float(scores[row, chosen[row]]))
                ended = chosen[row] == self.end
                if ended or len(tokens[i]) == requests[i].max_new_tokens:
                    finish = "end" if ended else "length"
                    yield requests[i].done(tokens[i], logprobs[i], finish)
                else:
                    still.append(row)
            if len(still) < len(running):
                cache = [(k[still], v[still]) for k, v in cache]
                running = [running[row] for row in still]
            feed = chosen[still][:, None]
            yield None


class NumpyReference(temper.Reference):
    """Log-probs under the base checkpoint."""

    def __init__(self) -> None:
        self.network = Network(self.role.model)
        self.weights = base_of(self.role)
        self.temperature = np.float32(self.role.settings.temperature)

    def score(self, items: list[temper.Scored]) -> list[Array]:
        longest = max(i.prompt.size + i.response.size for i in items)
        tokens = np.zeros((len(items), longest), np.int32)
        for row, item in zip(tokens, items):
            row[: item.prompt.size] = item.prompt
            row[item.prompt.size : item.prompt.size + item.response.size] = item.response
        out = self.network.forward(self.weights, tokens[:, :-1])
        scores = log_softmax(out @ self.weights["head.weight"].T / self.temperature)
        logprobs = np.take_along_axis(scores, tokens[:, 1:, None], -1)[..., 0]
        first = [i.prompt.size - 1 for i in items]  # the position that predicts the first token
        return [row[f : f + i.response.size] for row, f, i in zip(logprobs, first, items)]


class NumpyTrainer(temper.Trainer):
    """GRPO: group-relative advantages, clipped importance ratio, AdamW."""

    def __init__(self, rows: int = 128) -> None:
        self.rows = rows  # rows per forward and backward pass
        self.config = self.role.settings.algorithm
        if self.config.distillation:
            raise temper.RoleError(
                "algorithm.distillation: expected 0, because this example learns from rewards, "
                f"found {self.config.distillation:g}"
            )
        self.temperature = np.float32(self.role.settings.temperature)
        self.network = Network(self.role.model)
        self.weights = base_of(self.role)
        self.first = {k: np.zeros_like(v) for k, v in self.weights.items()}
        self.second = {k: np.zeros_like(v) for k, v in self.weights.items()}
        self.updates = 0

    def update(self, batch: temper.Batch) -> dict[str, float]:
        arrays = batch.arrays()
        advantages = batch.advantages()
        gradients = {k: np.zeros_like(v) for k, v in self.weights.items()}
        sums = np.zeros(6)
        trained = float(arrays.mask.sum())
        for begin in range(0, len(batch), self.rows):
            part = slice(begin, begin + self.rows)
            sums += self.add_pass(arrays, advantages, part, trained, gradients)
        norm = float(np.sqrt(sum(np.vdot(g, g) for g in gradients.values())))
        self.step(gradients, norm)
        loss, clipped, ratio, entropy, log_ratio, kl = (float(x) for x in sums / trained)
        return {
            "loss": loss,
            "clip_fraction": clipped,
            "ratio_mean": ratio,
            "entropy": entropy,
            "log_ratio": log_ratio,
            "kl": kl,
            "gradient_norm": norm,
            "micro_batches": -(-len(batch) // self.rows),
        }

    def add_pass(
        self, a: temper.Arrays, advantages: Array, part: slice, trained: float, gradients: Tensors
    ) -> Array:
        """Adds the gradients of some rows. Returns sums of statistics over their tokens."""
        longest = int(a.lengths[part].max())
        inputs, targets = a.tokens[part, : longest - 1], a.tokens[part, 1:longest]
        mask, sampled = a.mask[part, 1:longest], a.logprobs[part, 1:longest]
        reference = a.reference[part, 1:longest]
        tape: list[Any] = []
        out = self.network.forward(self.weights, inputs, tape=tape)
        scores = log_softmax(out @ self.weights["head.weight"].T / self.temperature)
        logprobs = np.take_along_axis(scores, targets[..., None], -1)[..., 0]
        advantage = advantages[part, None]
        low, high = 1 - self.clip(self.config.clip_low), 1 + self.clip(self.config.clip_high)
        log_ratio = np.where(mask > 0, logprobs - sampled, 0.0)
        ratio = np.exp(log_ratio)
        plain, clipped = ratio * advantage, np.clip(ratio, low, high) * advantage
        cut = clipped < plain
        scored = a.reference.any()  # otherwise all are 0
        gap = np.where(mask > 0, reference - logprobs, 0.0) if scored else 0.0 * ratio
        kl = np.exp(gap) - 1 - gap
        loss = -np.minimum(plain, clipped) + self.config.kl * kl
        d_logprob = np.where(cut, 0.0, -plain) + self.config.kl * (1 - np.exp(gap))
        d_logprob = (d_logprob * mask / trained).astype("f4")
        d_scores = -np.exp(scores) * d_logprob[..., None]
        at = targets[..., None]
        np.put_along_axis(
            d_scores, at, np.take_along_axis(d_scores, at, -1) + d_logprob[..., None], -1
        )
        d_scores /= self.temperature
        flat = d_scores.reshape(-1, d_scores.shape[-1])
        gradients["head.weight"] += flat.T @ out.reshape(-1, out.shape[-1])
        rest = self.network.backward(
            self.weights, inputs, d_scores @ self.weights["head.weight"], tape
        )
        for name, gradient in rest.items():
            gradients[name] += gradient
        of = [loss, cut, ratio, -logprobs, np.abs(log_ratio), kl]
        return np.array([float((x * mask).sum()) for x in of])

    @staticmethod
    def clip(given: float | None) -> float:
        return 0.2 if given is None else given

    def step(self, gradients: Tensors, norm: float) -> None:
        c = self.config
        self.updates += 1
        scale = min(1.0, c.gradient_clip / (norm + 1e-6))
        for name, weight in self.weights.items():
            g = gradients[name] * np.float32(scale)
            m, v = self.first[name], self.second[name]
            m += np.float32(1 - c.beta1) * (g - m)
            v += np.float32(1 - c.beta2) * (g * g - v)
            m_hat = m / (1 - c.beta1**self.updates)
            v_hat = v / (1 - c.beta2**self.updates)
            weight -= (
                c.learning_rate
                * (m_hat / (np.sqrt(v_hat) + c.adam_epsilon) + c.weight_decay * weight)
            ).astype("f4")

    def publish(self) -> Tensors:
        return stored(self.role.model, self.weights)

    def save(self, folder: pathlib.Path) -> None:
        # `temper export` reads this file.
        (folder / "model.safetensors").write_bytes(temper.make_image(self.publish()))
        of = {"weights": self.weights, "first": self.first, "second": self.second}
        arrays = {f"{kind}/{k}": v for kind, tensors in of.items() for k, v in tensors.items()}
        np.savez(folder / "trainer.npz", updates=self.updates, **arrays)

    def load(self, folder: pathlib.Path) -> None:
        with np.load(folder / "trainer.npz") as stored:
            self.updates = int(stored["updates"])
            for kind, tensors in (
                ("weights", self.weights),
                ("first", self.first),
                ("second", self.second),
            ):
                for name in tensors:
                    tensors[name] = stored[f"{kind}/{name}"]
