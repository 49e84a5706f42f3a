"""What a user writes: one of these classes, with the methods that say what the role does.

The worker makes the object with the keyword arguments of `with:` in the YAML. `self.role` is there
before `__init__` runs and says what the run is about. Methods are called on one thread, one at a
time. What they raise ends the worker with that message; the run replaces it and goes on.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from . import messages as m
from .errors import RoleError
from .messages import FinishReason, ModelConfig, Segment, TaskConfig, VerifierConfig, Vocabulary
from .text import Text, text_of
from .weights import Weights
from .wire import Float32Array, Int32Array, Uint8Array, unpack


class Role:
    """What a worker was told when it registered."""

    def __init__(self, welcome: m.Welcome, name: str) -> None:
        told = welcome.role
        self.name = name  #: Slot of the actor, such as `rollout-0`.
        self.kind = m.RoleKind(told.kind).name.lower()
        self.cards: list[int] = told.cards
        self.seed: int = told.seed
        self.model: ModelConfig = told.model
        self.task: TaskConfig = told.task
        self.verifier: VerifierConfig = told.verifier
        self.vocabulary: Vocabulary = told.vocabulary
        self.arguments = {k: _argument(v) for k, v in told.engine.with_.items()}
        #: Model folder that the run begins with; None where the run has none.
        self.base_weights = pathlib.Path(told.base_weights) if told.base_weights else None
        #: Checkpoint folder to go on from; None at the start of a run.
        self.resume_from = pathlib.Path(told.resume_from) if told.resume_from else None
        self.version: int = told.version
        read = m.SETTINGS.get(self.kind)
        #: RolloutSettings of a rollout, TrainerSettings of a trainer or reference, None of a reward.
        self.settings: Any = read(unpack(told.settings)) if read and told.settings else None
        self.welcome = welcome

    @functools.cached_property
    def _text(self) -> Text:
        return text_of(self.vocabulary)

    def decode(self, tokens: Iterable[int], *, to_end: bool = True) -> str:
        """Text of a response, up to its first end token; with `to_end=False`, of a prompt, which may
        hold such tokens. Raises RoleError where the model's tokenizer cannot be loaded."""
        ids = np.asarray(tokens).tolist()
        if to_end:
            ends = {self.vocabulary.end, *self.vocabulary.ends.tolist()}
            ids = list(itertools.takewhile(lambda token: token not in ends, ids))
        return self._text.decode(ids)

    def encode(self, text: str) -> Int32Array:
        """Tokens of a text, without the end token. Raises RoleError where it has none."""
        return np.array(self._text.encode(text), np.int32)


def _argument(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclasses.dataclass(slots=True)
class Memory:
    """Bytes that a role holds on its card, and parked on the host."""

    device: int = 0
    host: int = 0


# --- Rollout


@dataclasses.dataclass(slots=True)
class Completion:
    """What an engine made of a request. `tokens` are those sampled now, without the prefix."""

    request: Request
    tokens: Any
    logprobs: Any
    finish: FinishReason = FinishReason.END
    segments: Sequence[Segment] | None = None
    mask: Any = None
    rewards: Any = None
    why: str = ""


@dataclasses.dataclass(slots=True, eq=False)
class Request:
    """One response to generate: it goes on after `prompt` and `prefix`."""

    id: int
    prompt: Int32Array
    prefix: Int32Array
    #: Tokens that it may still get.
    max_new_tokens: int
    lease: int = 0
    #: Take the likeliest token each time: it is asked for an evaluation.
    greedy: bool = False

    @property
    def tokens(self) -> Int32Array:
        """Prompt and prefix."""
        return np.concatenate([self.prompt, self.prefix]) if self.prefix.size else self.prompt

    def done(
        self,
        tokens: Any,
        logprobs: Any,
        finish: str | FinishReason = "end",
        *,
        segments: Sequence[Segment] | None = None,
        mask: Any = None,
        rewards: Any = None,
        why: str = "",
    ) -> Completion:
        """`finish`: `end` (the last token is the end token), `length` or `failed`; an
        engine hands back only what it is asked for, by `interrupt()`. `mask`: 0 where a token was
        not sampled. `why`: the reason of `failed`. A response that has not one token fails."""
        if isinstance(finish, str):
            if finish.upper() not in FinishReason.__members__:
                known = ", ".join(name.lower() for name in FinishReason.__members__)
                raise RoleError(f'done(): no finish "{finish}"; there are {known}')
            finish = FinishReason[finish.upper()]
        return Completion(self, tokens, logprobs, finish, segments, mask, rewards, why)


class Engine:
    """A rollout. The one method that must be there is `generate`."""

    role: Role
    #: Requests given to one call of generate(); None: `rollout.concurrency` of the YAML.
    batch: int | None = None
    #: Weights may change between two yields of generate(); its completions then name their segments.
    loads_while_generating: ClassVar[bool] = False

    def generate(self, requests: list[Request]) -> Iterable[Completion | None]:
        """Answers each request once, in any order. A generator may yield completions as they come,
        and None where it may be looked at in between: for cancelled work, or to be interrupted."""
        raise NotImplementedError

    def load(self, version: int, weights: Weights) -> None:
        """Weights to generate with from now on. Called before the first generate()."""

    def stage(self, version: int, weights: Weights) -> None:
        """Weights that load() will be called with soon; may be prepared here."""

    def interrupt(self) -> Iterable[Completion]:
        """What running requests have so far, when they are called back; those not named have
        nothing. The generator is closed afterwards."""
        return ()

    def cancel(self, ids: list[int]) -> None:
        """These requests of the generate() under way are of no use any more; answering them does no
        harm."""

    def free_kv(self) -> None:
        """Co-located: the card is needed; nothing is running."""

    def allocate_kv(self) -> None:
        """Co-located: generation is about to go on."""

    def free_weights(self) -> None:
        """Co-located: drop the weights; load() will be called before the next generate()."""

    def memory(self) -> Memory:
        return Memory()


# --- Trainer


@dataclasses.dataclass(slots=True)
class Row:
    """One response of a batch. Arrays have one entry per token of the response."""

    group: int
    prompt: Int32Array
    response: Int32Array
    logprobs: Float32Array  #: As recorded when sampled.
    reference: Float32Array  #: Of the reference; empty where the run has none.
    reward: float
    mask: Uint8Array  #: 1 where the policy sampled the token, 0 where it is not to be trained.
    rewards: Float32Array  #: Rewards given at a token; all 0 where there are none.
    segments: list[Segment]  #: Policy version of each run of tokens.
    id: int = 0  #: Number of the response in the run.


@dataclasses.dataclass(slots=True)
class Arrays:
    """A batch as arrays [rows, longest], padded on the right; `mask` is 1 where a token is trained."""

    tokens: Int32Array
    mask: Float32Array
    logprobs: Float32Array
    reference: Float32Array
    rewards: Float32Array
    groups: Int32Array
    lengths: Int32Array


@dataclasses.dataclass(slots=True)
class Batch:
    """One update's responses, those of one group together."""

    version: int  #: That is being updated; the update makes version + 1.
    bound: int  #: Largest age of a group, certified.
    rows: list[Row]
    certificate: m.Certificate
    _publish: Callable[[Any, Any], None] | None = None

    def publish(
        self, weights: Mapping[str, Any] | bytes, metrics: Mapping[str, float] | None = None
    ) -> None:
        """`for batch in temper.Trainer(...)`: the update is done, and these are its weights."""
        if self._publish is None:
            raise RoleError("batch.publish() is for the loop form; else update() returns metrics")
        self._publish(weights, metrics)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def advantages(self, normalise: bool = True) -> Float32Array:
        """Per row: its reward less its group's mean, divided by the group's deviation."""
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
        """Position i of mask, logprobs and reference is about token i, which is 0 of the prompt's."""
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


class Trainer:
    """The trainer. `update` and `publish` must be there; `save` and `load` so that a run can be
    resumed and outlive the trainer's death.

    Or, in a script that the YAML names (`kind: command, command: [python3, train.py]`), a loop:

        for batch in temper.Trainer(publish=model.state_dict, save=save, load=load):
            ...
            batch.publish(model.state_dict(), {"loss": loss})
    """

    role: Role

    def __init__(
        self,
        publish: Callable[[], Mapping[str, Any] | bytes] | None = None,
        save: Callable[[pathlib.Path], None] | None = None,
        load: Callable[[pathlib.Path], None] | None = None,
    ) -> None:
        for name, given in (("publish", publish), ("save", save), ("load", load)):
            if given is not None:
                setattr(self, name, given)

    def __iter__(self) -> Iterator[Batch]:
        from .loop import batches  # which knows the roles

        return batches(self)

    def update(self, batch: Batch) -> Mapping[str, float] | None:
        """One policy update. The value: any of the metrics of UpdateMetrics, such as `loss`."""
        raise NotImplementedError

    def publish(self) -> Mapping[str, Any] | bytes:
        """The current weights: tensors of numpy or torch by name, or a safetensors image. Called
        after start, load() and each update()."""
        raise NotImplementedError

    def save(self, folder: pathlib.Path) -> None:
        """Writes all that load() needs into an existing folder."""
        raise NotImplementedError

    def load(self, folder: pathlib.Path) -> None:
        raise NotImplementedError

    def offload(self) -> None:
        """Co-located: the card is needed; move the optimizer to the host."""

    def onload(self) -> None:
        """Co-located: training is about to go on."""

    def memory(self) -> Memory:
        return Memory()


# --- Reference and reward


@dataclasses.dataclass(slots=True)
class Scored:
    """A response whose log-probs are asked for."""

    prompt: Int32Array
    response: Int32Array


class Reference:
    """Scores responses under fixed weights."""

    role: Role

    def score(self, items: list[Scored]) -> Sequence[Any]:
        """Per item, one log-prob per token of its response."""
        raise NotImplementedError

    def offload(self) -> None:
        """Co-located: the card is needed; move the weights to the host."""

    def onload(self) -> None:
        """Co-located: scoring is about to go on."""

    def memory(self) -> Memory:
        return Memory()


@dataclasses.dataclass(slots=True)
class Sample:
    """A response to judge."""

    prompt: str
    answer: str
    response: str  #: Its text.
    tokens: Int32Array
    columns: dict[str, Any]  #: What else the row of the prompt's file holds.


class Reward:
    """Judges responses."""

    role: Role

    def judge(self, samples: list[Sample]) -> Sequence[float | Exception | None]:
        """Per sample its reward; None or an exception: it cannot be judged, which fails this
        response alone."""
        raise NotImplementedError


__all__ = [
    "Arrays",
    "Batch",
    "Completion",
    "Engine",
    "Memory",
    "Reference",
    "Request",
    "Reward",
    "Role",
    "Row",
    "Sample",
    "Scored",
    "Trainer",
    "Weights",
]
