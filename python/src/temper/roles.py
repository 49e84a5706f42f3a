"""Base classes of roles: subclass one of them and implement its methods.

The worker creates the object with the keyword arguments of `with:` in the YAML. `self.role` is set
before `__init__` runs and has the configuration of the run. All methods are called on one thread, one
at a time. An exception ends the worker with its message; the orchestrator restarts the actor and the
run continues.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .messages import FinishReason, Segment
from .role_types import Arrays, Batch, Memory, Role, Row
from .weights import Weights
from .wire import Int32Array

# --- Rollout


@dataclasses.dataclass(slots=True)
class Completion:
    """The result of a request; create it with `Request.done()`.

    Attributes:
        request: The request.
        tokens: Newly sampled token ids without the prefix, shape [new tokens].
        logprobs: Log-probability (nats) of each new token, shape [new tokens].
        finish: Why generation ended.
        segments: Consecutive tokens with the version that sampled them; None if the current one did.
        mask: 0 where a token was not sampled by the policy, shape [new tokens]; None: all sampled.
        rewards: Per-token rewards, shape [new tokens]; None: none.
        why: The reason if `finish` is FAILED; None or an empty text: none.
        tensors: Arrays for the trainer, by name; None if there are none.
    """

    request: Request
    tokens: Any
    logprobs: Any
    finish: FinishReason = FinishReason.END
    segments: Sequence[Segment | tuple[int, int]] | None = None
    mask: Any = None
    rewards: Any = None
    why: str | BaseException | None = ""
    tensors: Mapping[str, Any] | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Request:
    """One response to generate. It continues after `prompt` and `prefix`.

    Attributes:
        id: Number of the response in the run.
        prompt: Token ids, shape [prompt tokens].
        prefix: Response tokens that were sampled before an interruption, shape [prefix tokens].
        max_new_tokens: Maximum number of tokens to sample now.
        lease: Internal id of the assignment.
        greedy: Always take the most likely token; used for evaluations.
    """

    id: int
    prompt: Int32Array
    prefix: Int32Array
    max_new_tokens: int
    lease: int = 0
    greedy: bool = False

    @property
    def tokens(self) -> Int32Array:
        """Prompt and prefix, shape [prompt tokens + prefix tokens]."""
        return np.concatenate([self.prompt, self.prefix]) if self.prefix.size else self.prompt

    def done(
        self,
        tokens: Any,
        logprobs: Any,
        finish: str | FinishReason = "end",
        *,
        segments: Sequence[Segment | tuple[int, int]] | None = None,
        mask: Any = None,
        rewards: Any = None,
        why: str | BaseException | None = "",
        tensors: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Creates the completion of this request. The worker checks it when generate() gives it back.

        Args:
            tokens: Newly sampled token ids without the prefix, shape [new tokens]. A response with
                no token at all fails.
            logprobs: Log-probability (nats) of each new token, shape [new tokens].
            finish: `end` (the last token is an end token), `length` or `failed`. Interrupted
                requests are returned by `Engine.interrupt()` only.
            segments: Consecutive tokens with the version that sampled them, as `temper.Segment` or
                pairs (version, number of tokens); None if the current version sampled all.
            mask: 0 where a token was not sampled by the policy, shape [new tokens].
            rewards: Per-token rewards, shape [new tokens].
            why: The reason if `finish` is `failed`: a text or an exception.
            tensors: Arrays of numpy (or torch, in host memory) for the trainer, by name, about the
                whole response with its prefix. They are in the run's store until the response was
                trained; the trainer finds them in `Row.tensors`. At most 16.

        Returns:
            The completion, for `generate()` to yield or return.
        """
        reason: Any = finish
        if isinstance(finish, str):
            reason = FinishReason.__members__.get(finish.upper(), finish)
        return Completion(self, tokens, logprobs, reason, segments, mask, rewards, why, tensors)


class Engine:
    """Base class of a rollout engine. Only `generate` is required.

    Attributes:
        role: Configuration of the run.
        batch: Maximum number of requests per call of generate(); None: `rollout.concurrency`.
        loads_while_generating: Whether load() may be called between two yields of generate(). If so,
            completions must name their segments.
    """

    role: Role
    batch: int | None = None
    loads_while_generating: ClassVar[bool] = False

    def generate(self, requests: list[Request]) -> Iterable[Completion | None]:
        """Generates responses.

        Args:
            requests: The requests; each must be answered exactly once, in any order.

        Returns:
            The completions. A generator may yield them as they finish, and yield None to let the
            worker handle messages, such as cancellations and interruptions.
        """
        raise NotImplementedError

    def load(self, version: int, weights: Weights) -> None:
        """Loads the weights to generate with from now on. Called before the first generate().

        Args:
            version: Policy version of the weights.
            weights: The tensors, read-only.
        """

    def stage(self, version: int, weights: Weights) -> None:
        """Prepares weights that load() will receive soon. Optional.

        Args:
            version: Policy version of the weights.
            weights: The tensors, read-only.
        """

    def interrupt(self) -> Iterable[Completion]:
        """Returns the partial results of running requests, which will continue elsewhere.

        Returns:
            A completion per request that has tokens. Requests without one keep no tokens. The
            generator of generate() is closed afterwards.
        """
        return ()

    def cancel(self, ids: list[int]) -> None:
        """Cancels requests of the current generate(). Answers to them are ignored.

        Args:
            ids: Ids of the requests.
        """

    def free_kv(self) -> None:
        """Time-shared cards: frees the KV cache. No request is running."""

    def allocate_kv(self) -> None:
        """Time-shared cards: allocates the KV cache before generation continues."""

    def free_weights(self) -> None:
        """Time-shared cards: drops the weights; load() is called before the next generate()."""

    def memory(self) -> Memory:
        """Returns the memory that the engine holds, in bytes."""
        return Memory()


# --- Trainer


class Trainer:
    """Base class of a trainer.

    `update` and `publish` are required; `save` and `load` are needed to resume a run or to survive a
    crash of the trainer.

    Alternatively, write a loop in a script that the YAML names (`kind: command, command: [python3,
    train.py]`):

        for batch in temper.Trainer(publish=model.state_dict, save=save, load=load):
            ...
            batch.publish(model.state_dict(), {"loss": loss})

    Args:
        publish: Replaces the method `publish`.
        save: Replaces the method `save`.
        load: Replaces the method `load`.
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
        """Yields one batch per step until the run ends."""
        # Imported here: it loads the transport, which the class form does not need.
        from .loop import batches

        return batches(self)

    def update(self, batch: Batch) -> Mapping[str, float] | None:
        """Trains one step.

        Args:
            batch: The responses of the step.

        Returns:
            Metrics by the names of UpdateMetrics, such as `loss`, or None.
        """
        raise NotImplementedError

    def publish(self) -> Mapping[str, Any] | bytes:
        """Returns the current weights. Called after the start, load() and each update().

        Returns:
            Tensors of numpy or torch by name, or a safetensors image.
        """
        raise NotImplementedError

    def save(self, folder: pathlib.Path) -> None:
        """Writes the state that load() needs.

        Args:
            folder: An existing folder.
        """
        raise NotImplementedError

    def load(self, folder: pathlib.Path) -> None:
        """Restores the state from a folder that save() wrote.

        Args:
            folder: The checkpoint folder.
        """
        raise NotImplementedError

    def offload(self) -> None:
        """Time-shared cards: moves the optimizer state to host memory."""

    def onload(self) -> None:
        """Time-shared cards: moves the optimizer state back before training continues."""

    def memory(self) -> Memory:
        """Returns the memory that the trainer holds, in bytes."""
        return Memory()


# --- Reference and reward


@dataclasses.dataclass(slots=True)
class Scored:
    """A response to score by the reference.

    Attributes:
        prompt: Token ids, shape [prompt tokens].
        response: Token ids, shape [response tokens].
    """

    prompt: Int32Array
    response: Int32Array


@dataclasses.dataclass(slots=True)
class Scores:
    """What a reference returns for a response if `algorithm.distillation_top_k` is set.

    Attributes:
        logprobs: Log-probability (nats) of each response token, shape [response tokens].
        top_ids: The most likely tokens at each response token, shape [response tokens,
            `distillation_top_k`].
        top_logprobs: Their log-probabilities (nats), of the same shape.
    """

    logprobs: Any
    top_ids: Any
    top_logprobs: Any


class Reference:
    """Base class of a reference, which scores responses under fixed weights."""

    role: Role

    def score(self, items: list[Scored]) -> Sequence[Any]:
        """Computes log-probabilities.

        Args:
            items: The responses to score.

        Returns:
            Per item, the log-probability (nats) of each response token, shape [response tokens];
            or Scores, which `algorithm.distillation_top_k` requires
            (`self.role.settings.algorithm.distillation_top_k`).
        """
        raise NotImplementedError

    def offload(self) -> None:
        """Time-shared cards: moves the weights to host memory."""

    def onload(self) -> None:
        """Time-shared cards: moves the weights back before scoring continues."""

    def memory(self) -> Memory:
        """Returns the memory that the reference holds, in bytes."""
        return Memory()


@dataclasses.dataclass(slots=True)
class Sample:
    """A response to reward.

    Attributes:
        prompt: Text of the prompt.
        answer: Expected answer.
        response: Text of the response.
        tokens: Token ids of the response, shape [response tokens].
        columns: Other columns of the prompt's row in the task file.
    """

    prompt: str
    answer: str
    response: str
    tokens: Int32Array
    columns: dict[str, Any]


@dataclasses.dataclass(slots=True)
class Verdict:
    """A reward and its parts, for `Reward.judge()` to return.

    Attributes:
        reward: The reward.
        terms: Its parts by name, before their weights. They are shown beside it: as `terms/NAME` in
            the metrics and with each sample. A name has 1 to 100 letters, digits and `_ - . :`; a
            part is a number from -1e18 to 1e18, or NaN if it does not apply. The responses of one
            call may have 100 different names. With other terms, the response fails.
    """

    reward: float
    terms: Mapping[str, float] = dataclasses.field(default_factory=dict)


class Reward:
    """Base class of a reward."""

    role: Role

    def judge(self, samples: list[Sample]) -> Sequence[float | Verdict | Exception | None]:
        """Computes rewards.

        Args:
            samples: The responses.

        Returns:
            Per sample its reward, or a `temper.Verdict` that has its parts as well. None or an
            exception fails this response only.
        """
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
    "Scores",
    "Trainer",
    "Verdict",
    "Weights",
]
