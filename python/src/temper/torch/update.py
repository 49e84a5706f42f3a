"""One training step on one rank: minibatches, passes, gradients, AdamW, and their state."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import safetensors.torch
import torch
import torch.distributed as dist

from ..errors import NotFinite, RoleError
from ..messages import AlgorithmConfig, LoraConfig
from ..randomness import Random
from ..roles import Memory, Row
from . import checkpoint
from .algorithm import (
    Losses,
    Tokens,
    advantages,
    check_written_out,
    needs_proximal,
    needs_reference,
    token_losses,
    token_weight,
)
from .lora import add_adapters
from .model import (
    bytes_of,
    choose_device,
    choose_dtype,
    context_of,
    named_tensors,
    open_model,
    packed,
    release,
    response_logprobs,
)
from .routes import Replay
from .shards import full_tensor, put_tensor, shard

_SUMS = (
    "ratio",
    "squared_ratio",
    "log_ratio",
    "stale_log_ratio",
    "stale",
    "loss",
    "kl",
    "clipped",
    "weight",
    "capped",
    "negative_logprob",
    "tokens",
)


@dataclasses.dataclass
class Settings:
    folder: pathlib.Path
    algorithm: AlgorithmConfig
    temperature: float
    longest_response: int
    seed: int
    device: str | None = None
    dtype: str | None = None
    checkpointing: bool = False
    replay_routes: bool = False
    cores: list[int] = dataclasses.field(default_factory=list)
    lora: LoraConfig | None = None
    base: str = ""  #: The base model, for adapter_config.json.


@dataclasses.dataclass
class Minibatch:
    """One optimizer update."""

    rows: list[int]  #: Indices of rows with trained tokens.
    responses: int  #: Number of all responses.
    tokens: int  #: Number of trained tokens.


def split_minibatches(groups: Sequence[int], count: int, seed: int, update: int) -> list[list[int]]:
    """Row indices per minibatch: whole groups, shuffled by (seed, update), evenly distributed like in the C++ trainer."""
    by_group: dict[int, list[int]] = {}
    for i, group in enumerate(groups):
        by_group.setdefault(group, []).append(i)
    dealt = [by_group[group] for group in sorted(by_group)]
    random = Random(seed, f"minibatches of update {update}")
    for i in range(len(dealt), 1, -1):
        j = random.below(i)
        dealt[i - 1], dealt[j] = dealt[j], dealt[i - 1]
    parts: list[list[int]] = [[] for _ in range(min(count, len(dealt)))]
    for i, rows in enumerate(dealt):
        parts[i * len(parts) // len(dealt)] += rows
    return parts


def check_row(row: Row, context: int, a: AlgorithmConfig) -> None:
    what = f"response {row.id} of group {row.group}"
    if row.prompt.size == 0 or row.prompt.size + row.response.size > context:
        raise RoleError(
            f"{what}: expected a prompt and at most {context} tokens (the context), found {row.prompt.size} prompt "
            f"tokens and {row.response.size} response tokens"
        )
    if row.reference.size == 0 and row.response.size and needs_reference(a):
        raise RoleError(
            f"{what}: found no reference log-probs, which algorithm.kl and .distillation require"
        )
    if row.rewards.any():
        raise RoleError(
            f"{what}: found per-token rewards, which temper.torch does not support; use your own trainer"
        )


class Update:
    """This rank's part of the model, its gradients and its optimizer."""

    def __init__(self, settings: Settings, rank: int, world: int) -> None:
        self._settings = settings
        self._a = check_written_out(settings.algorithm)
        self._rank, self._world = rank, world
        if settings.cores:
            torch.set_num_threads(max(1, len(settings.cores) // world))
        self._device = choose_device(settings.device, rank)
        self._dtype = choose_dtype(settings.dtype, self._device)
        lora = settings.lora
        self._model = open_model(
            settings.folder, torch.float32 if lora is None else self._dtype, self._device
        )
        if lora is not None:
            add_adapters(self._model, lora, settings.seed)
        self._context = context_of(self._model)
        if settings.checkpointing:
            enable = getattr(
                self._model, "activation_checkpointing_enable", None
            )  # its name since 5.2x
            (enable or self._model.gradient_checkpointing_enable)({"use_reentrant": False})
            self._model.train()
        self._replay = Replay(self._model) if settings.replay_routes else None
        if world > 1:
            shard(self._model, self._device, self._dtype)
        self._parameters = named_tensors(self._model)
        self._optimizer = self._make_optimizer()
        self._updates = 0
        self._steps = 0
        self._away = False

    def _make_optimizer(self) -> torch.optim.AdamW:
        a = self._a
        matrices = [p for p in self._parameters.values() if p.ndim > 1]
        vectors = [
            p for p in self._parameters.values() if p.ndim <= 1
        ]  # norms and biases do not decay
        groups = [
            {"params": matrices, "weight_decay": a.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=a.learning_rate,
            betas=(a.beta1, a.beta2),
            eps=a.adam_epsilon,
        )

    # --- A step

    def run(self, rows: list[Row], version: int) -> dict[str, float]:
        """Trains one step from `version` and returns its metrics.

        Raises:
            RoleError: A row cannot be trained, or a value is not finite. The state is then invalid; continue from the
                last checkpoint.
        """
        if self._away:
            raise RoleError("update: the optimizer is offloaded; onload() must come first")
        for row in rows:
            check_row(row, self._context, self._a)
        if self._replay is not None:
            self._replay.check(rows)
        self._rows = rows
        self._trained = [row.mask.astype(bool) for row in rows]
        self._stale = [stale_tokens(row, version) for row in rows]
        if not sum(int(t.sum()) for t in self._trained):
            raise RoleError("update: expected at least one trained token in the batch, found none")
        self._advantages = advantages(rows, self._a, self._settings.longest_response)
        self._largest = (-math.inf, "no response of this rank")
        minibatches = self._minibatches()
        proximal = self._proximal(minibatches[1:]) if needs_proximal(self._a) else {}
        sums = dict.fromkeys(_SUMS, 0.0)
        metrics = {"micro_batches": 0.0, "gradient_norm": 0.0}
        for number, minibatch in enumerate(minibatches):
            self._optimizer.zero_grad(set_to_none=True)
            metrics["micro_batches"] += self._backward(minibatch, proximal, sums)
            if number == 0:
                metrics |= ratio_metrics(self._over_ranks(sums))
            metrics["gradient_norm"] += self._step(sums["loss"], metrics["effective_samples"])
        self._optimizer.zero_grad(set_to_none=True)
        self._check_weights()
        self._updates += 1
        total = self._over_ranks(sums)
        metrics["gradient_norm"] /= len(minibatches)
        metrics["loss"] = total["loss"] / len(minibatches)
        for name, key in (
            ("kl", "kl"),
            ("clip_fraction", "clipped"),
            ("behaviour_weight", "weight"),
            ("capped_fraction", "capped"),
            ("entropy", "negative_logprob"),
        ):
            metrics[name] = total[key] / total["tokens"]
        del self._rows, self._trained, self._stale, self._advantages
        return metrics

    def _minibatches(self) -> list[Minibatch]:
        """The minibatches with at least one trained token."""
        groups = [row.group for row in self._rows]
        found = []
        for part in split_minibatches(
            groups, self._a.minibatches, self._settings.seed, self._updates
        ):
            rows = [i for i in part if self._trained[i].any()]
            if rows:
                found.append(
                    Minibatch(rows, len(part), sum(int(self._trained[i].sum()) for i in rows))
                )
        return found

    def _passes(self, minibatch: Minibatch) -> list[tuple[list[int], bool]]:
        """This rank's passes as (rows, whether they count). All ranks have the same number of passes."""
        pairs = [(row.prompt, row.response) for row in self._rows]
        passes = packed(pairs, minibatch.rows, self._a.micro_batch_tokens)
        own = [(chosen, True) for chosen in passes[self._rank :: self._world]]
        while len(own) < -(-len(passes) // self._world):
            own.append((passes[0][:1], False))
        return own

    def _logprobs(self, chosen: list[int]) -> torch.Tensor:
        """Log-probs (nats) of the trained tokens of these rows, concatenated, float64."""
        pairs = [(self._rows[i].prompt, self._rows[i].response) for i in chosen]
        if self._replay is not None:
            self._replay.use([self._rows[i] for i in chosen])
        computing = torch.autocast(
            self._device.type, self._dtype, enabled=self._dtype != torch.float32
        )
        with computing:
            logprobs = response_logprobs(
                self._model, pairs, self._settings.temperature, self._device
            )
        mask = torch.zeros(logprobs.shape, dtype=torch.bool)
        for place, i in zip(mask, chosen):
            place[: len(self._trained[i])] = torch.from_numpy(self._trained[i])
        return logprobs[mask.to(self._device)].double()

    def _proximal(self, minibatches: list[Minibatch]) -> dict[int, torch.Tensor]:
        """Proximal log-probs by row, except for the first minibatch, whose own pass uses the same weights."""
        found: dict[int, torch.Tensor] = {}
        with torch.no_grad():
            for minibatch in minibatches:
                for chosen, _ in self._passes(minibatch):
                    parts = self._logprobs(chosen).split(
                        [int(self._trained[i].sum()) for i in chosen]
                    )
                    found.update(zip(chosen, parts))
        return found

    def _flat(self, arrays: list[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(arrays).astype(np.float64)).to(self._device)

    def _backward(
        self, minibatch: Minibatch, proximal: dict[int, torch.Tensor], sums: dict[str, float]
    ) -> int:
        """Adds the minibatch's gradients, and its tokens to the sums. Returns the number of passes."""
        trained = self._trained
        passes = self._passes(minibatch)
        for chosen, counts in passes:
            current = self._logprobs(chosen)
            rows = [self._rows[i] for i in chosen]
            n = [int(trained[i].sum()) for i in chosen]
            has_reference = all(row.reference.size for row in rows)
            tokens = Tokens(
                current=current,
                behaviour=self._flat([row.logprobs[trained[i]] for i, row in zip(chosen, rows)]),
                proximal=torch.cat([proximal[i] for i in chosen])
                if chosen[0] in proximal
                else current.detach(),
                reference=self._flat([r.reference[trained[i]] for i, r in zip(chosen, rows)])
                if has_reference
                else None,
                advantage=self._flat([np.full(k, self._advantages[i]) for k, i in zip(n, chosen)]),
                stale=self._flat([self._stale[i][trained[i]] for i in chosen]),
                response=torch.from_numpy(np.repeat(np.arange(len(chosen)), n)).to(self._device),
                responses=len(chosen),
            )
            losses = token_losses(tokens, self._a)
            share = [
                token_weight(
                    self._a,
                    k,
                    minibatch.tokens,
                    minibatch.responses,
                    self._settings.longest_response,
                )
                for k in n
            ]
            weights = self._flat([np.full(k, w) for k, w in zip(n, share)])
            loss = (losses.loss * weights).sum()
            (loss * (self._world if counts else 0)).backward()  # FSDP takes the mean over ranks
            if counts:
                add_sums(sums, tokens, losses, float(loss.detach()))
                self._note_ratio(tokens, rows)
        return len(passes)

    def _note_ratio(self, tokens: Tokens, rows: list[Row]) -> None:
        """Notes the response with the largest importance ratio, to explain a loss that is not finite."""
        gap = tokens.current.detach() - tokens.behaviour
        if not gap.numel() or math.isnan(self._largest[0]):
            return
        at = int(gap.argmax())  # NaN counts as the largest
        if not float(gap[at]) <= self._largest[0]:
            row = rows[int(tokens.response[at])]
            self._largest = (float(gap[at]), f"response {row.id} of group {row.group}")

    def _step(self, loss: float, effective_samples: float) -> float:
        """Clips and applies the gradients. Returns their norm before clipping."""
        gradients = [p.grad for p in self._parameters.values() if p.grad is not None]
        local = [self._local(g) for g in gradients]
        squares = torch.stack([g.double().pow(2).sum() for g in local]).sum()
        if self._world > 1:
            dist.all_reduce(squares)
        norm = math.sqrt(float(squares))
        if not math.isfinite(norm) or not math.isfinite(loss):
            raise NotFinite(
                f"step {self._updates}: gradient norm {norm} and loss {loss} are not both finite; "
                f"the largest importance ratio is exp({self._largest[0]:.4g}), in {self._largest[1]}"
            )
        if norm > self._a.gradient_clip:
            torch._foreach_mul_(local, self._a.gradient_clip / norm)
        scale = math.sqrt(effective_samples) if self._a.scale_by_effective_samples else 1.0
        rates = [group["lr"] for group in self._optimizer.param_groups]
        for group, rate in zip(self._optimizer.param_groups, rates):
            group["lr"] = rate * scale
        self._optimizer.step()
        for group, rate in zip(self._optimizer.param_groups, rates):
            group["lr"] = rate
        self._steps += 1
        return norm

    def _over_ranks(self, sums: dict[str, float]) -> dict[str, float]:
        if self._world == 1:
            return dict(sums)
        values = torch.tensor([sums[name] for name in _SUMS], dtype=torch.float64)
        dist.all_reduce(values)
        return dict(zip(_SUMS, values.tolist()))

    def _check_weights(self) -> None:
        for name, p in self._parameters.items():
            if not bool(torch.isfinite(self._local(p.data)).all()):
                raise NotFinite(f"step {self._updates}: the new weights are not finite (tensor {name})")

    # --- State

    def _full(self) -> dict[str, torch.Tensor]:
        """The full weights in rank 0's host memory. A collective."""
        return {
            name: full_tensor(p.data).cpu().contiguous() for name, p in self._parameters.items()
        }

    def image(self) -> bytes:
        """A safetensors image of what is trained, float32. Empty on other ranks than 0."""
        tensors = self._full()
        if self._rank != 0:
            return b""
        return safetensors.torch.save(tensors, checkpoint.metadata(self._updates))

    def save(self, folder: pathlib.Path) -> None:
        weights, moments = self._full(), {}
        for name, p in self._parameters.items():
            state = self._optimizer.state.get(p, {})
            for key, prefix in (("exp_avg", "m."), ("exp_avg_sq", "v.")):
                moment = (
                    full_tensor(state[key]).cpu()
                    if key in state
                    else torch.zeros_like(weights[name])
                )
                moments[prefix + name] = moment.contiguous()
        if self._rank == 0:
            state = checkpoint.State(weights, moments, self._updates, self._steps)
            checkpoint.save(folder, state, self._settings.lora, self._settings.base)

    def load(self, folder: pathlib.Path) -> None:
        """Loads a checkpoint. Raises RoleError, which names the file, if it belongs to another model."""
        if self._away:
            raise RoleError("load: the optimizer is offloaded; onload() must come first")
        adapter = self._settings.lora is not None
        found = checkpoint.load(folder, adapter)
        weights, moments = found.weights, found.moments
        for name, p in self._parameters.items():
            for file, tensors, key in (
                (checkpoint.weights_file(adapter), weights, name),
                (checkpoint.OPTIMIZER, moments, "m." + name),
                (checkpoint.OPTIMIZER, moments, "v." + name),
            ):
                if key not in tensors or tensors[key].shape != p.shape:
                    raise RoleError(
                        f"{folder / file}: expected a tensor {key} of shape {tuple(p.shape)}"
                    )
            put_tensor(p.data, weights[name])
            first, second = torch.zeros_like(p.data), torch.zeros_like(p.data)
            put_tensor(first, moments["m." + name])
            put_tensor(second, moments["v." + name])
            steps = torch.tensor(float(found.steps))
            self._optimizer.state[p] = {"step": steps, "exp_avg": first, "exp_avg_sq": second}
        self._updates, self._steps = found.updates, found.steps

    def _move(self, device: torch.device) -> None:
        for p in self._parameters.values():
            state = self._optimizer.state.get(p, {})
            for key in ("exp_avg", "exp_avg_sq"):
                if key in state:
                    state[key] = state[key].to(device)
        if self._world == 1:  # FSDP keeps its own shards
            self._model.to(device)

    def offload(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        self._move(torch.device("cpu"))
        release(self._device)
        self._away = True

    def onload(self) -> None:
        self._move(self._device)
        self._away = False

    def memory(self) -> Memory:
        weights = bytes_of(self._local(p.data) for p in self._model.parameters())
        gradients = bytes_of(
            self._local(p.grad) for p in self._parameters.values() if p.grad is not None
        )
        moments = bytes_of(
            self._local(t)
            for s in self._optimizer.state.values()
            for k, t in s.items()
            if k != "step"
        )
        if not self._away:
            return Memory(device=weights + gradients + moments)
        if self._world == 1:
            return Memory(host=weights + moments)
        return Memory(device=weights, host=moments)

    @staticmethod
    def _local(tensor: Any) -> torch.Tensor:
        return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def stale_tokens(row: Row, version: int) -> np.ndarray[Any, Any]:
    """1 for each response token that an older version than `version` sampled, else 0."""
    stale = [float(s.version < version) for s in row.segments for _ in range(s.tokens)]
    return np.array(stale, np.float64)


def ratio_metrics(sums: dict[str, float]) -> dict[str, float]:
    """The metrics about importance ratios, from the sums of the first minibatch."""
    tokens, stale = sums["tokens"], sums["stale"]
    squared = sums["squared_ratio"]
    effective = sums["ratio"] ** 2 / (squared * tokens) if math.isfinite(squared) else 1 / tokens
    fresh = tokens - stale
    of_fresh = sums["log_ratio"] - sums["stale_log_ratio"]
    return {
        "ratio_mean": sums["ratio"] / tokens,
        "log_ratio": sums["log_ratio"] / tokens,
        "effective_samples": effective,
        "mismatch": of_fresh / fresh if fresh else 0.0,
        "stale_ratio": sums["stale_log_ratio"] / stale if stale else 0.0,
        "stale_tokens": stale / tokens,
    }


def add_sums(sums: dict[str, float], tokens: Tokens, losses: Losses, loss: float) -> None:
    current = tokens.current.detach()
    gap = current - tokens.behaviour
    sums["ratio"] += float(gap.exp().sum())
    sums["squared_ratio"] += float((2 * gap).exp().sum())
    sums["log_ratio"] += float(gap.abs().sum())
    sums["stale_log_ratio"] += float((gap.abs() * tokens.stale).sum())
    sums["stale"] += float(tokens.stale.sum())
    sums["loss"] += loss
    sums["kl"] += float(losses.kl.sum())
    sums["clipped"] += float(losses.clipped.sum())
    sums["weight"] += float(losses.weight.sum())
    sums["capped"] += float(losses.capped.sum())
    sums["negative_logprob"] -= float(current.sum())
    sums["tokens"] += current.numel()
