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

from ..balance import balanced
from ..errors import NotFinite, RoleError
from ..messages import AlgorithmConfig, LoraConfig, Proximal
from ..randomness import Random
from ..roles import Memory, Row
from . import checkpoint, fetch
from .algorithm import (
    Tokens,
    advantages,
    check_written_out,
    interpolated_proximal,
    learning_rate_share,
    needs_proximal,
    needs_reference,
    token_losses,
    token_weight,
)
from .critic import (
    Estimates,
    ValueModel,
    estimates,
    explained_variance,
    has_critic,
    response_values,
    value_losses,
)
from .lora import add_adapters, load_first_adapter
from .model import (
    candidate_logprobs,
    choose_device,
    choose_dtype,
    context_of,
    named_tensors,
    open_model,
    packed,
    response_logprobs,
)
from .network import Network
from .routes import ROUTES, Replay, Routes
from .shards import shard
from .sums import SUMS, add_sums, ratio_metrics, token_ages


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

    responses: int  #: Number of all responses.
    tokens: int  #: Number of trained tokens.
    passes: list[tuple[list[int], bool]]  #: This rank's, as (indices of rows, whether they count).


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
            f"{what}: found no reference log-probs, which algorithm.kl, .distillation and .critic.kl require"
        )
    if row.top_ids.size != row.response.size * a.distillation_top_k:
        raise RoleError(
            f"{what}: expected {a.distillation_top_k} most likely tokens of the teacher at each of "
            f"{row.response.size} tokens (algorithm.distillation_top_k), found {row.top_ids.size}"
        )
    if row.rewards.any() and not has_critic(a):
        raise RoleError(
            f"{what}: found per-token rewards, which temper.torch supports with a critic only (algorithm.name: "
            "ppo_critic); use it or your own trainer"
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
            load_first_adapter(self._model, settings.folder)
        self._context = context_of(self._model)
        self._replay = Replay(self._model) if settings.replay_routes else None
        self.reads = fetch.RankReads(rank, world)
        self._prepare(self._model, self._model)
        self._policy = Network(
            self._model, named_tensors(self._model), self._a, self._a.learning_rate, world
        )
        self._parameters, self._optimizer = self._policy.parameters, self._policy.optimizer
        self._critic: Network | None = None
        if has_critic(self._a):
            self._critic = self._make_critic()
        self._updates = 0
        self._away = False

    def _prepare(self, model: Any, language_model: Any) -> None:
        """Turns on recomputation of activations in a model around a language model, and shards it, as configured."""
        if self._settings.checkpointing:
            enable = getattr(
                language_model, "activation_checkpointing_enable", None
            )  # its name since 5.2x
            (enable or language_model.gradient_checkpointing_enable)({"use_reentrant": False})
            model.train()
        if self._world > 1:
            shard(model, self._device, self._dtype)

    def _make_critic(self) -> Network:
        """A critic that starts from the base weights. Published nowhere."""
        base = open_model(self._settings.folder, torch.float32, self._device)
        model = ValueModel(base)
        self._prepare(model, base)
        rate = self._a.critic.learning_rate
        rate = self._a.learning_rate if rate is None else rate
        return Network(model, dict(model.named_parameters()), self._a, rate, self._world)

    def _networks(self) -> list[Network]:
        return [self._policy] if self._critic is None else [self._policy, self._critic]

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
        self._routes: dict[int, Routes | None] = {}  # of this rank's rows, by index
        self._trained = [row.mask.astype(bool) for row in rows]
        self._ages = [token_ages(row, version) for row in rows]
        if not sum(int(t.sum()) for t in self._trained):
            raise RoleError("update: expected at least one trained token in the batch, found none")
        self._largest = (-math.inf, "no response of this rank")
        minibatches = self._minibatches()
        found = self._estimate(minibatches) if self._critic else []
        self._advantages = (
            [e.advantages for e in found] if found else self._advantages_of_responses(rows)
        )
        trains_policy = not self._critic or self._updates >= self._a.critic.warm_up_steps
        recomputes = needs_proximal(self._a) and self._a.proximal == Proximal.RECOMPUTED
        proximal = self._proximal(minibatches[1:]) if recomputes else {}
        schedule, untrained = self._a.learning_rate_schedule, self._a.critic.warm_up_steps
        share = learning_rate_share(schedule, self._updates, untrained if self._critic else 0)
        sums = dict.fromkeys(SUMS, 0.0)
        metrics = {"micro_batches": 0.0, "gradient_norm": 0.0}
        for number, minibatch in enumerate(minibatches):
            self._policy.zero_gradients()
            self._fetch([minibatch])
            with torch.set_grad_enabled(trains_policy):
                metrics["micro_batches"] += self._backward(minibatch, proximal, sums)
            if number == 0:
                metrics |= ratio_metrics(self._over_ranks(sums))
            norm = self._check_step(sums["loss"])
            metrics["gradient_norm"] += norm
            if trains_policy:
                by_samples = self._a.scale_by_effective_samples
                scale = math.sqrt(metrics["effective_samples"]) if by_samples else 1.0
                self._policy.step(norm, share * scale)
                metrics["learning_rate"] = self._a.learning_rate * share * scale
            if self._critic:
                own = learning_rate_share(schedule, self._updates)
                self._train_critic(self._critic, minibatch, found, sums, own)
        for network in self._networks():
            network.zero_gradients()
        self._policy.check_weights(f"step {self._updates}: the new weights")
        if self._critic:
            self._critic.check_weights(f"step {self._updates}: the new weights of the critic")
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
        if found:
            metrics["critic_loss"] = total["critic_loss"] / len(minibatches)
            metrics["critic_clip_fraction"] = total["critic_clipped"] / total["tokens"]
            metrics["critic_value_mean"] = float(np.concatenate([e.values for e in found]).mean())
            metrics["critic_explained_variance"] = explained_variance(found)
        del self._rows, self._trained, self._ages, self._advantages
        return metrics

    def _advantages_of_responses(self, rows: list[Row]) -> list[np.ndarray]:
        """By row, those of its trained tokens, which are all the same."""
        found = advantages(rows, self._a, self._settings.longest_response)
        return [np.full(int(t.sum()), a) for a, t in zip(found, self._trained)]

    def _minibatches(self) -> list[Minibatch]:
        """The minibatches with at least one trained token."""
        groups = [row.group for row in self._rows]
        found = []
        for part in split_minibatches(
            groups, self._a.minibatches, self._settings.seed, self._updates
        ):
            rows = [i for i in part if self._trained[i].any()]
            if rows:
                tokens = sum(int(self._trained[i].sum()) for i in rows)
                found.append(Minibatch(len(part), tokens, self._passes(rows)))
        return found

    def _passes(self, rows: list[int]) -> list[tuple[list[int], bool]]:
        """This rank's passes over rows of a minibatch. All ranks have the same number of passes.

        Each rank gets about the same number of tokens. A rank with fewer passes repeats a row in passes that do not
        count: the passes of all ranks gather weights together.
        """
        pairs = [(row.prompt, row.response) for row in self._rows]
        sizes = [pairs[i][0].size + pairs[i][1].size for i in rows]
        of_ranks = [
            packed(pairs, [rows[at] for at in part], self._a.micro_batch_tokens)
            for part in balanced(sizes, self._world)
        ]
        own = [(chosen, True) for chosen in of_ranks[self._rank]]
        repeated = own[0][0][:1] if own else rows[:1]
        return own + [(repeated, False)] * (max(map(len, of_ranks)) - len(own))

    def _fetch(self, minibatches: list[Minibatch]) -> None:
        """Reads the routes of this rank's rows, if they are replayed. A collective."""
        replay = self._replay
        if replay is None:
            return
        passes = [chosen for one in minibatches for chosen, counts in one.passes if counts]
        missing = [i for chosen in passes for i in chosen if i not in self._routes]
        self._routes |= self.reads.together(
            lambda: {i: replay.routes_of(self._rows[i]) for i in missing},
            fetch.reader_of(self._rows),
        )

    def _release(self, rows: list[int]) -> None:
        """Frees the routes of rows that were trained."""
        for i in rows:
            self._routes.pop(i, None)
            fetch.release(self._rows[i], ROUTES)

    def _logprobs(self, chosen: list[int]) -> torch.Tensor:
        """Log-probs (nats) of the trained tokens of these rows, concatenated, float64."""
        return self._all_logprobs(chosen)[:, 0]

    def _all_logprobs(self, chosen: list[int]) -> torch.Tensor:
        """The same, and those of the teacher's most likely tokens, shape [tokens, 1 + top_k]."""
        rows = [self._rows[i] for i in chosen]
        pairs = [(row.prompt, row.response) for row in rows]
        if self._replay is not None:
            self._replay.use(rows, [self._routes.get(i) for i in chosen])
        at = self._settings.temperature, self._device
        with self._computing():
            if self._a.distillation_top_k:
                ids = [row.top_ids for row in rows]
                logprobs = candidate_logprobs(self._model, pairs, ids, *at)
            else:
                logprobs = response_logprobs(self._model, pairs, *at)[:, :, None]
        return logprobs[self._mask(chosen, logprobs[:, :, 0])].double()

    def _computing(self) -> torch.autocast:
        return torch.autocast(self._device.type, self._dtype, enabled=self._dtype != torch.float32)

    def _mask(self, chosen: list[int], like: torch.Tensor) -> torch.Tensor:
        """Where the response tokens of these rows are trained."""
        mask = torch.zeros(like.shape, dtype=torch.bool)
        for place, i in zip(mask, chosen):
            place[: len(self._trained[i])] = torch.from_numpy(self._trained[i])
        return mask.to(self._device)

    def _values(self, critic: Network, chosen: list[int]) -> torch.Tensor:
        """Values of the trained tokens of these rows, concatenated, float64."""
        pairs = [(self._rows[i].prompt, self._rows[i].response) for i in chosen]
        with self._computing():
            values = response_values(critic.model, pairs, self._device)
        return values[self._mask(chosen, values)].double()

    def _estimate(self, minibatches: list[Minibatch]) -> list[Estimates]:
        """By row, advantages and returns from the values of the current critic. A collective."""
        assert self._critic is not None
        places = np.cumsum([0, *(int(t.sum()) for t in self._trained)])
        values = torch.zeros(int(places[-1]), dtype=torch.float64)
        with torch.no_grad():
            for minibatch in minibatches:
                for chosen, counts in minibatch.passes:
                    found = self._values(self._critic, chosen).cpu()
                    if not counts:
                        continue
                    parts = found.split([int(self._trained[i].sum()) for i in chosen])
                    for i, part in zip(chosen, parts):
                        values[places[i] : places[i + 1]] = part
        if self._world > 1:
            dist.all_reduce(values)
        of_rows = np.split(values.numpy(), places[1:-1])
        return estimates(self._rows, of_rows, self._a, self._settings.longest_response)

    def _train_critic(
        self,
        critic: Network,
        minibatch: Minibatch,
        found: list[Estimates],
        sums: dict[str, float],
        rate_share: float,
    ) -> None:
        """One step of the critic's optimizer, with this share of its learning rate."""
        critic.zero_gradients()
        whole = 0.0
        for chosen, counts in minibatch.passes:
            losses, clipped = value_losses(
                self._values(critic, chosen),
                self._flat([found[i].values for i in chosen]),
                self._flat([found[i].returns for i in chosen]),
                self._a.critic.value_clip,
            )
            loss = losses.sum() / minibatch.tokens
            (loss * (self._world if counts else 0)).backward()  # FSDP takes the mean over ranks
            if counts:
                whole += float(loss.detach())
                sums["critic_clipped"] += float(clipped.sum())
        sums["critic_loss"] += whole
        norm = critic.gradient_norm()
        if not math.isfinite(norm) or not math.isfinite(whole):
            raise NotFinite(
                f"step {self._updates}: critic: gradient norm {norm} and loss {whole} are not both finite"
            )
        critic.step(norm, rate_share)

    def _proximal(self, minibatches: list[Minibatch]) -> dict[int, torch.Tensor]:
        """Proximal log-probs by row, except for the first minibatch, whose own pass uses the same weights."""
        found: dict[int, torch.Tensor] = {}
        self._fetch(minibatches)
        with torch.no_grad():
            for minibatch in minibatches:
                for chosen, counts in minibatch.passes:
                    parts = self._logprobs(chosen).split(
                        [int(self._trained[i].sum()) for i in chosen]
                    )
                    if counts:
                        found.update(zip(chosen, parts))
        return found

    def _flat(self, arrays: list[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(arrays).astype(np.float64)).to(self._device)

    def _backward(
        self, minibatch: Minibatch, proximal: dict[int, torch.Tensor], sums: dict[str, float]
    ) -> int:
        """Adds the minibatch's gradients, and its tokens to the sums. Returns the number of passes."""
        trained = self._trained
        passes = minibatch.passes
        for chosen, counts in passes:
            every = self._all_logprobs(chosen)
            current = every[:, 0]
            rows = [self._rows[i] for i in chosen]
            n = [int(trained[i].sum()) for i in chosen]
            has_reference = all(row.reference.size for row in rows)
            behaviour = self._flat([row.logprobs[trained[i]] for i, row in zip(chosen, rows)])
            age = self._flat([self._ages[i][trained[i]] for i in chosen])
            if chosen[0] in proximal:
                before = torch.cat([proximal[i] for i in chosen])
            elif self._a.proximal == Proximal.INTERPOLATED:
                before = interpolated_proximal(current, behaviour, age)
            else:
                before = current.detach()
            tokens = Tokens(
                current=current,
                behaviour=behaviour,
                proximal=before,
                reference=self._flat([r.reference[trained[i]] for i, r in zip(chosen, rows)])
                if has_reference
                else None,
                advantage=self._flat([self._advantages[i] for i in chosen]),
                age=age,
                response=torch.from_numpy(np.repeat(np.arange(len(chosen)), n)).to(self._device),
                responses=len(chosen),
            )
            if self._a.distillation_top_k:
                tokens.top_current = every[:, 1:]
                tokens.top_reference = self._flat(
                    [row.top_logprobs[trained[i]] for i, row in zip(chosen, rows)]
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
            if loss.requires_grad:  # FSDP takes the mean over ranks
                (loss * (self._world if counts else 0)).backward()
            if counts:
                add_sums(sums, tokens, losses, float(loss.detach()))
                self._note_ratio(tokens, rows)
                self._release(chosen)
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

    def _check_step(self, loss: float) -> float:
        """The norm of the policy's gradients. Raises NotFinite."""
        norm = self._policy.gradient_norm()
        if not math.isfinite(norm) or not math.isfinite(loss):
            raise NotFinite(
                f"step {self._updates}: gradient norm {norm} and loss {loss} are not both finite; "
                f"the largest importance ratio is exp({self._largest[0]:.4g}), in {self._largest[1]}"
            )
        return norm

    def _over_ranks(self, sums: dict[str, float]) -> dict[str, float]:
        if self._world == 1:
            return dict(sums)
        values = torch.tensor([sums[name] for name in SUMS], dtype=torch.float64)
        dist.all_reduce(values)
        return dict(zip(SUMS, values.tolist()))

    # --- State

    def image(self) -> bytes:
        """A safetensors image of what is trained, float32. Empty on other ranks than 0."""
        tensors = self._policy.weights()
        if self._rank != 0:
            return b""
        return safetensors.torch.save(tensors, checkpoint.metadata(self._updates))

    def save(self, folder: pathlib.Path) -> None:
        critic = None
        if self._critic is not None:
            critic = checkpoint.CriticState(
                self._critic.weights(), self._critic.moments(), self._critic.steps
            )
        policy = self._policy
        state = checkpoint.State(
            policy.weights(), policy.moments(), self._updates, policy.steps, critic
        )
        if self._rank == 0:
            checkpoint.save(folder, state, self._settings.lora, self._settings.base)

    def load(self, folder: pathlib.Path) -> None:
        """Loads a checkpoint. Raises RoleError, which names the file, if it belongs to another model."""
        if self._away:
            raise RoleError("load: the optimizer is offloaded; onload() must come first")
        adapter = self._settings.lora is not None
        found = checkpoint.load(folder, adapter, self._critic is not None)
        self._policy.put(
            (folder / checkpoint.weights_file(adapter), found.weights),
            (folder / checkpoint.OPTIMIZER, found.moments),
            found.steps,
        )
        if self._critic and found.critic:
            self._critic.put(
                (folder / checkpoint.CRITIC, found.critic.weights),
                (folder / checkpoint.CRITIC_OPTIMIZER, found.critic.moments),
                found.critic.steps,
            )
        self._updates = found.updates

    def offload(self) -> None:
        for network in self._networks():
            network.offload(self._device)
        self._away = True

    def onload(self) -> None:
        for network in self._networks():
            network.move(self._device)
        self._away = False

    def memory(self) -> Memory:
        weights, gradients, moments = map(
            sum, zip(*(network.bytes() for network in self._networks()))
        )
        if not self._away:
            return Memory(device=weights + gradients + moments)
        if self._world == 1:
            return Memory(host=weights + moments)
        return Memory(device=weights, host=moments)
