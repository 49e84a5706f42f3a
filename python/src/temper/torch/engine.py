"""A rollout engine for models of `transformers`, with one KV cache for a batch.

Like the C++ engine, it samples each token from the run's seed, the response and the position, so the order in which
responses run has no effect.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, cache_utils

from .. import roles
from ..errors import NotFinite, RoleError
from ..randomness import sampling_uniforms
from ..roles import Completion, Memory, Request
from ..weights import Weights
from .lora import add_adapters, restore_base
from .model import (
    bytes_of,
    choose_device,
    choose_dtype,
    context_of,
    drop_weights,
    load_weights,
    matched,
    model_folder,
    open_model,
    release,
    use_cores,
)
from .routes import ROUTES, Recorder

#: Rows of the cache are released once this share of them has finished.
_SHRINK = 0.25

#: The base class of cache layers with a recurrent state; older versions of transformers have none.
_RECURRENT = getattr(cache_utils, "LinearAttentionCacheLayerMixin", ())


@dataclasses.dataclass(eq=False)
class _ActiveRequest:
    request: Request
    limit: int
    tokens: list[int] = dataclasses.field(default_factory=list)
    logprobs: list[float] = dataclasses.field(default_factory=list)
    routes: list[np.ndarray] = dataclasses.field(default_factory=list)  # by step: [tokens, layers, experts]
    finish: str = ""  # empty while it runs


def draw(
    logits: torch.Tensor, uniforms: torch.Tensor, temperature: float, top_p: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples one token per row.

    Args:
        logits: Shape [rows, vocabulary].
        uniforms: Random numbers in [0, 1), shape [rows].
        temperature: Sampling temperature; 0 takes the most likely token, with log-prob 0.
        top_p: Nucleus sampling mass.

    Returns:
        Tokens and their log-probs (nats) under the sampled distribution, each of shape [rows].
    """
    if temperature == 0:
        tokens = logits.argmax(1)
        return tokens, torch.zeros_like(uniforms)
    p = (logits.float() / temperature).softmax(1)
    if top_p < 1:
        ordered, places = p.sort(dim=1, descending=True, stable=True)
        before = ordered.double().cumsum(1) - ordered
        p = torch.zeros_like(p).scatter(1, places, ordered.masked_fill(before >= top_p, 0))
    sums = p.double().cumsum(1)
    mass = sums[:, -1:]
    tokens = torch.searchsorted(sums, uniforms[:, None] * mass, right=True)[:, 0]
    last = p.shape[1] - 1 - (p > 0).flip(1).int().argmax(1)
    tokens = torch.minimum(tokens, last)
    return tokens, (p.double().gather(1, tokens[:, None]) / mass).log()[:, 0]


def check_cache(model: type[torch.nn.Module], config: Any) -> None:
    """Checks that every layer of a model has a KV cache, which is all that the engine keeps of a sequence.

    Args:
        model: The class of the model.
        config: Its configuration.

    Raises:
        RoleError: A layer keeps a recurrent state, which padded prompts would change.
    """
    cached = "past_key_values" in inspect.signature(model.forward).parameters
    layers = DynamicCache(config=config).layers if cached else []
    if not cached or any(isinstance(layer, _RECURRENT) for layer in layers):
        raise RoleError(
            f"{model.__name__}: expected a KV cache in every layer, found layers with a recurrent state; "
            "use an inference server or another engine"
        )


class Engine(roles.Engine):
    """A rollout engine; its arguments are set by `with:` in the YAML.

    Args:
        model: Model folder; None: the run's.
        device: `cpu`, `cuda` or `cuda:1`; None: a GPU if there is one.
        dtype: `float32` or `bfloat16`; None: bfloat16 on a GPU, else float32.
        batch: Number of responses generated at once; None: `rollout.concurrency`.
        record_routes: Attach the experts of every token to each response, for `replay_routes` of the trainer.
    """

    def __init__(
        self,
        model: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch: int | None = None,
        record_routes: bool = False,
    ) -> None:
        use_cores(self.role)
        self.batch = batch
        self._device = choose_device(device)
        self._dtype = choose_dtype(dtype, self._device)
        self._folder = model_folder(self.role, model)
        self._model = open_model(self._folder, self._dtype, self._device)
        self._lora = self.role.model.lora
        if self._lora is not None:
            add_adapters(self._model, self._lora, self.role.seed)
        self._recorder = Recorder(self._model) if record_routes else None
        self._dropped = False
        check_cache(type(self._model), self._model.config)
        self._context = context_of(self._model)
        vocabulary = self.role.vocabulary
        self._ends = {vocabulary.end, *vocabulary.ends.tolist()}
        self._rows: list[_ActiveRequest] = []
        self._cache: Any = None

    # --- Weights and memory

    def stage(self, version: int, weights: Weights) -> None:
        for _ in matched(self._model, weights):  # checks the names before any weight changes
            pass

    def load(self, version: int, weights: Weights) -> None:
        if self._dropped and self._lora is not None:
            restore_base(self._model, open_model(self._folder, self._dtype, self._device))
        load_weights(self._model, weights, self._device)
        self._dropped = False

    def free_kv(self) -> None:
        self._cache = None
        release(self._device)

    def free_weights(self) -> None:
        drop_weights(self._model)
        self._dropped = True

    def memory(self) -> Memory:
        held = bytes_of(self._model.parameters())
        for layer in self._cache.layers if self._cache is not None else ():
            held += bytes_of(t for t in (layer.keys, layer.values) if t is not None)
        return Memory(device=held)

    # --- Generation

    def generate(self, requests: list[Request]) -> Iterator[Completion | None]:
        self._rows = [_ActiveRequest(r, self._limit(r)) for r in requests]
        for row in [row for row in self._rows if row.limit <= 0]:
            row.finish = "length"
            yield self._done(row)
        self._rows = [row for row in self._rows if not row.finish]
        if self._rows:
            with torch.inference_mode():
                logits, mask = self._prefill()
            done = self._sample(logits)
            yield from done
            while True:
                yield None
                if not any(not row.finish for row in self._rows):
                    break
                with torch.inference_mode():
                    mask = self._shrink(mask)
                    logits, mask = self._decode(mask)
                yield from self._sample(logits)
        self._rows, self._cache = [], None

    def interrupt(self) -> Iterable[Completion]:
        running = [row for row in self._rows if not row.finish]
        self._rows, self._cache = [], None
        return [row.request.done(row.tokens, row.logprobs, "length") for row in running]

    def cancel(self, ids: list[int]) -> None:
        void = set(ids)
        for row in self._rows:
            if row.request.id in void and not row.finish:
                row.finish = "failed"

    def _limit(self, request: Request) -> int:
        return min(
            request.max_new_tokens, self._context - request.prompt.size - request.prefix.size
        )

    def _done(self, row: _ActiveRequest) -> Completion:
        tensors = {ROUTES: np.concatenate(row.routes)} if row.routes else None
        return row.request.done(row.tokens, row.logprobs, row.finish, tensors=tensors)

    def _note_routes(self, row_of: list[int], sizes: list[int]) -> None:
        """Adds the experts of the last `sizes` tokens of a pass to each row; `row_of`: its row in the pass."""
        if self._recorder is None:
            return
        routes = self._recorder.take(max(row_of) + 1)
        for row, place, size in zip(self._rows, row_of, sizes):
            row.routes.append(routes[place, routes.shape[1] - size :])

    def _prefill(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Prefills each distinct text once, then makes a cache row per response."""
        texts: dict[bytes, int] = {}
        distinct: list[np.ndarray] = []
        row_of: list[int] = []
        for row in self._rows:
            tokens = row.request.tokens
            place = texts.setdefault(tokens.tobytes(), len(texts))
            if place == len(distinct):
                distinct.append(tokens)
            row_of.append(place)
        longest = max(t.size for t in distinct)
        ids = np.zeros((len(distinct), longest), np.int64)
        there = np.zeros((len(distinct), longest), np.int64)
        for i, tokens in enumerate(distinct):
            ids[i, longest - tokens.size :] = tokens
            there[i, longest - tokens.size :] = 1
        mask = torch.from_numpy(there).to(self._device)
        self._cache = DynamicCache(config=self._model.config)
        logits = self._model(
            input_ids=torch.from_numpy(ids).to(self._device),
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        self._note_routes(row_of, [row.request.tokens.size for row in self._rows])
        select = torch.tensor(row_of, device=self._device)
        if len(distinct) < len(row_of) or row_of != list(range(len(row_of))):
            self._cache.batch_select_indices(select)
        return logits[select], mask[select]

    def _decode(self, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        last = torch.tensor([[row.tokens[-1]] for row in self._rows], device=self._device)
        mask = torch.cat([mask, mask.new_ones(mask.shape[0], 1)], 1)
        logits = self._model(
            input_ids=last,
            attention_mask=mask,
            position_ids=mask.sum(1, keepdim=True) - 1,
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        self._note_routes(list(range(len(self._rows))), [1] * len(self._rows))
        return logits, mask

    def _shrink(self, mask: torch.Tensor) -> torch.Tensor:
        """Releases cache rows of finished responses."""
        keep = [i for i, row in enumerate(self._rows) if not row.finish]
        if len(keep) > (1 - _SHRINK) * len(self._rows):
            return mask
        select = torch.tensor(keep, device=self._device)
        self._cache.batch_select_indices(select)
        self._rows = [self._rows[i] for i in keep]
        return mask[select]

    def _sample(self, logits: torch.Tensor) -> list[Completion]:
        """Samples one token per row. Returns the completions of rows that finish with it."""
        sampling = self.role.settings.sampling
        rows = self._rows
        uniforms = sampling_uniforms(
            self.role.seed,
            [row.request.id for row in rows],
            [row.request.prefix.size + len(row.tokens) for row in rows],
        )
        with torch.inference_mode():
            if not bool(torch.isfinite(logits).all()):
                raise NotFinite("the logits are not finite (NaN or infinity); check the weights and dtype")
            tokens, logprobs = draw(
                logits,
                torch.from_numpy(uniforms).to(logits.device),
                sampling.temperature,
                sampling.top_p,
            )
            if any(row.request.greedy for row in rows):
                greedy = torch.tensor([row.request.greedy for row in rows], device=logits.device)
                likeliest = logits.argmax(1)
                of_it = (logits.float() / (sampling.temperature or 1)).log_softmax(1)
                tokens = torch.where(greedy, likeliest, tokens)
                logprobs = torch.where(
                    greedy, of_it.gather(1, likeliest[:, None])[:, 0].to(logprobs.dtype), logprobs
                )
        done = []
        for row, token, logprob in zip(rows, tokens.tolist(), logprobs.tolist()):
            row.tokens.append(token)
            if row.finish:
                continue
            row.logprobs.append(logprob)
            if token in self._ends:
                row.finish = "end"
            elif len(row.tokens) >= row.limit:
                row.finish = "length"
            else:
                continue
            done.append(self._done(row))
        return done
