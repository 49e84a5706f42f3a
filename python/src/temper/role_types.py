"""Types that roles and the actors that run them share: `Role`, `Memory`, and a trainer's batch.

This module imports no role and no actor, so that `loop`, `roles`, `switching` and `training` can all
import it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from . import messages as m
from .errors import RoleError
from .messages import ModelConfig, Segment, TaskConfig, VerifierConfig, Vocabulary
from .text import Text, text_of
from .wire import Float32Array, Int32Array, Uint8Array, unpack


class Role:
    """The configuration that the orchestrator sends to a worker when it registers.

    Attributes:
        name: Slot of the actor, such as `rollout-0`.
        kind: `rollout`, `trainer`, `reference` or `reward`.
        cards: Ids of the actor's devices.
        seed: Seed of the run.
        model: Model section of the configuration.
        task: Task section of the configuration.
        verifier: Verifier section of the configuration.
        vocabulary: Special tokens and tokenizer of the run.
        arguments: Keyword arguments from `with:` in the YAML.
        base_weights: Model folder with the initial weights; None if the run has none.
        resume_from: Checkpoint folder to resume from; None at the start of a run.
        version: Current policy version, which is the number of completed steps.
        settings: RolloutSettings of a rollout, TrainerSettings of a trainer or reference, None of a
            reward.
        welcome: The message from which all other attributes are read.
    """

    def __init__(self, welcome: m.Welcome, name: str) -> None:
        told = welcome.role
        self.name = name
        self.kind = m.RoleKind(told.kind).name.lower()
        self.cards: list[int] = told.cards
        self.seed: int = told.seed
        self.model: ModelConfig = told.model
        self.task: TaskConfig = told.task
        self.verifier: VerifierConfig = told.verifier
        self.vocabulary: Vocabulary = told.vocabulary
        self.arguments = {k: _argument(v) for k, v in told.engine.with_.items()}
        self.base_weights = pathlib.Path(told.base_weights) if told.base_weights else None
        self.resume_from = pathlib.Path(told.resume_from) if told.resume_from else None
        self.version: int = told.version
        read = m.SETTINGS.get(self.kind)
        self.settings: Any = read(unpack(told.settings)) if read and told.settings else None
        self.welcome = welcome

    @functools.cached_property
    def _text(self) -> Text:
        return text_of(self.vocabulary)

    def decode(self, tokens: Iterable[int], *, to_end: bool = True) -> str:
        """Decodes tokens to text.

        Args:
            tokens: Token ids.
            to_end: Stop at the first end token, as for a response. A prompt may contain end tokens,
                so decode it with False.

        Returns:
            The text without special tokens.

        Raises:
            RoleError: The model's tokenizer cannot be loaded.
        """
        ids = np.asarray(tokens).tolist()
        if to_end:
            ends = {self.vocabulary.end, *self.vocabulary.ends.tolist()}
            ids = list(itertools.takewhile(lambda token: token not in ends, ids))
        return self._text.decode(ids)

    def encode(self, text: str) -> Int32Array:
        """Encodes text.

        Args:
            text: The text.

        Returns:
            Token ids, shape [tokens], without an end token.

        Raises:
            RoleError: The run has no tokenizer, or it cannot encode the text.
        """
        return np.array(self._text.encode(text), np.int32)


def _argument(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclasses.dataclass(slots=True)
class Memory:
    """Memory of a role.

    Attributes:
        device: Bytes on its device.
        host: Bytes offloaded to host memory.
    """

    device: int = 0
    host: int = 0


@dataclasses.dataclass(slots=True)
class Row:
    """One response of a batch. Per-token arrays have shape [response tokens].

    Attributes:
        group: Id of the group (all responses to one prompt).
        prompt: Token ids, shape [prompt tokens].
        response: Token ids, shape [response tokens].
        logprobs: Per-token log-probabilities (nats) recorded at sampling time.
        reference: Per-token log-probabilities (nats) of the reference; empty if the run has none.
        reward: Reward of the whole response.
        mask: 1 where the policy sampled the token, 0 where the token must not be trained.
        rewards: Per-token rewards; all 0 if there are none.
        segments: Consecutive tokens with the policy version that sampled them.
        id: Number of the response in the run.
        tensors: Arrays that its engine attached, by name. A mapping that reads each when it is
            first used.
        top_ids: Token ids that the reference finds most likely at each response token, shape
            [response tokens, `algorithm.distillation_top_k`].
        top_logprobs: Their log-probabilities (nats), of the same shape.
    """

    group: int
    prompt: Int32Array
    response: Int32Array
    logprobs: Float32Array
    reference: Float32Array
    reward: float
    mask: Uint8Array
    rewards: Float32Array
    segments: list[Segment]
    id: int = 0
    tensors: Mapping[str, np.ndarray[Any, Any]] = dataclasses.field(default_factory=dict)
    top_ids: Int32Array = dataclasses.field(default_factory=lambda: np.zeros((0, 0), np.int32))
    top_logprobs: Float32Array = dataclasses.field(
        default_factory=lambda: np.zeros((0, 0), np.float32)
    )


@dataclasses.dataclass(slots=True)
class Arrays:
    """A batch as arrays, padded on the right to the longest row.

    Attributes:
        tokens: Prompt and response token ids, shape [rows, longest].
        mask: 1 where a token is trained, shape [rows, longest].
        logprobs: Log-probabilities (nats) at sampling time, shape [rows, longest].
        reference: Log-probabilities (nats) of the reference, shape [rows, longest].
        rewards: Reward of each response, shape [rows].
        groups: Group id of each response, shape [rows].
        lengths: Tokens of prompt and response together, shape [rows].
    """

    tokens: Int32Array
    mask: Float32Array
    logprobs: Float32Array
    reference: Float32Array
    rewards: Float32Array
    groups: Int32Array
    lengths: Int32Array


@dataclasses.dataclass(slots=True)
class Batch:
    """The responses of one step. Responses of one group are adjacent.

    Attributes:
        version: Policy version before the step; the step produces `version + 1`.
        bound: Staleness bound in steps, which the certificate guarantees for every group.
        rows: The responses.
        certificate: The orchestrator's statement of which versions generated each group.
    """

    version: int
    bound: int
    rows: list[Row]
    certificate: m.Certificate
    _publish: Callable[[Any, Any], None] | None = None

    def publish(
        self, weights: Mapping[str, Any] | bytes, metrics: Mapping[str, float] | None = None
    ) -> None:
        """Completes the step in the loop form (`for batch in temper.Trainer(...)`).

        Args:
            weights: The new weights: tensors of numpy or torch by name, or a safetensors image.
            metrics: Metrics by the names of UpdateMetrics, such as `loss`.

        Raises:
            RoleError: Called a second time, or outside the loop form.
        """
        if self._publish is None:
            raise RoleError(
                "batch.publish(): expected one call per batch in the loop form; in the class form, "
                "update() returns the metrics"
            )
        self._publish(weights, metrics)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def advantages(self, normalise: bool = True) -> Float32Array:
        """Group-relative advantages.

        Args:
            normalise: Divide by the standard deviation of the group's rewards.

        Returns:
            Per row, its reward minus the mean of its group, shape [rows].
        """
        rewards = np.array([r.reward for r in self.rows], np.float64)
        groups = np.array([r.group for r in self.rows])
        out = np.zeros(len(rewards))
        for group in np.unique(groups):
            of = groups == group
            centred = rewards[of] - rewards[of].mean()
            deviation = rewards[of].std(ddof=1) if normalise and of.sum() > 1 else 1.0
            out[of] = centred / (deviation + 1e-6 if normalise else 1.0)
        return out.astype(np.float32)

    def arrays(self, pad: int = 0) -> Arrays:
        """The batch as padded arrays.

        Args:
            pad: Token id for padding.

        Returns:
            Arrays in which position i of mask, logprobs and reference belongs to token i. They are 0
            at prompt tokens and padding.
        """
        n = len(self.rows)
        lengths = np.array([r.prompt.size + r.response.size for r in self.rows], np.int32)
        longest = int(lengths.max(initial=0))
        tokens = np.full((n, longest), pad, np.int32)
        mask, logprobs, reference = (np.zeros((n, longest), np.float32) for _ in range(3))
        for i, row in enumerate(self.rows):
            begin, end = row.prompt.size, lengths[i]
            tokens[i, :begin] = row.prompt
            tokens[i, begin:end] = row.response
            mask[i, begin:end] = row.mask
            logprobs[i, begin:end] = row.logprobs
            if row.reference.size:
                reference[i, begin:end] = row.reference
        rewards = np.array([r.reward for r in self.rows], np.float32)
        groups = np.array([r.group for r in self.rows], np.int32)
        return Arrays(tokens, mask, logprobs, reference, rewards, groups, lengths)


class TrainerMethods(Protocol):
    """The methods of `roles.Trainer` that its actor calls."""

    role: Role

    def update(self, batch: Batch) -> Mapping[str, float] | None: ...

    def publish(self) -> Mapping[str, Any] | bytes: ...

    def save(self, folder: pathlib.Path) -> None: ...

    def load(self, folder: pathlib.Path) -> None: ...

    def offload(self) -> None: ...

    def onload(self) -> None: ...

    def memory(self) -> Memory: ...
