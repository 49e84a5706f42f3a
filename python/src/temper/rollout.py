"""The rollout actor: runs the user's Engine, checks its completions, and handles its messages."""

from __future__ import annotations

import collections
import operator
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import messages as m
from .activity import ActivityLog
from .errors import RoleError, one_line
from .messages import CardState, FinishReason, Segment, SwitchAction
from .roles import Completion, Engine, Request
from .stores import StoreError, open_store
from .switching import perform_switch
from .tensors import TensorWriter
from .values import list_of, shown
from .weights import Assembler, Weights, open_shared
from .wire import no_f4, no_i4, no_u1

#: Seconds to advance the generator before messages are handled.
_SLICE = 0.01
#: Maximum number of completions per message.
_AT_ONCE = 256


class RolloutActor:
    def __init__(self, engine: Engine, activity: ActivityLog, send: Callable[[Any], None]) -> None:
        self._engine = engine
        self._activity = activity
        self._send = send
        settings = engine.role.settings
        self._longest: int = settings.sampling.max_new_tokens
        self._batch = engine.batch or settings.concurrency
        self._waiting: dict[int, Request] = {}
        self._running: dict[int, Request] = {}
        self._void: set[int] = set()  # cancelled requests that the engine may still answer
        self._results: Iterator[Completion | None] | None = None
        self._version: int | None = None
        self._staged: tuple[int, Weights] | None = None
        self._pieces: Assembler | None = None
        self._deferred: collections.deque[Any] = collections.deque()
        welcome = engine.role.welcome
        self._tensors = TensorWriter(open_store(welcome.role.tensors), welcome.name)

    # --- Messages

    def start(self) -> None:
        pass

    def on_message(self, message: Any) -> None:
        """Handles messages in order. One that must wait for the current generate() delays all later ones."""
        if isinstance(message, m.Cancel):
            self._cancel(message.responses)
        elif self._deferred or self._must_wait(message):
            self._deferred.append(message)
            if isinstance(message, m.Switch):  # an interruption, which ends the current generate()
                self._interrupt()
                self._handle_deferred()
        else:
            self._handle(message)

    def _must_wait(self, message: Any) -> bool:
        return (
            isinstance(message, m.CommitWeights)
            and self._results is not None
            and not self._engine.loads_while_generating
        )

    def _handle_deferred(self) -> None:
        while self._deferred and not self._must_wait(self._deferred[0]):
            self._handle(self._deferred.popleft())

    def _handle(self, message: Any) -> None:
        if isinstance(message, m.Generate):
            for item in message.items:
                left = self._longest - item.prefix.size
                self._waiting[item.response] = Request(
                    item.response, message.prompt, item.prefix, left, message.lease, message.greedy
                )
        elif isinstance(message, m.Withdraw):
            self._withdraw(message.responses)
        elif isinstance(message, m.StageWeights):
            self._stage(message.weights)
        elif isinstance(message, m.WeightsChunk):
            self._add_piece(message)
        elif isinstance(message, m.CommitWeights):
            self._commit(message.version)
        elif isinstance(message, m.Switch):
            self._switch(message.action)

    def stop(self) -> None:
        self._activity.flush(self._send)

    # --- Work

    def work(self) -> bool:
        if self._results is None and self._waiting:
            self._begin()
        if self._results is not None:
            with self._activity.span(CardState.DECODE):
                self._advance(self._results)
        if self._results is None:
            self._handle_deferred()
        self._activity.report(self._send)
        return self._results is not None or bool(self._waiting)

    def _begin(self) -> None:
        if self._version is None:
            raise RoleError("received a generate request before any weights were committed")
        ids = list(self._waiting)[: self._batch]
        self._running = {i: self._waiting.pop(i) for i in ids}
        self._void.clear()
        results = self._engine.generate(list(self._running.values()))
        if results is None or not hasattr(results, "__iter__"):
            raise RoleError(
                f"{self._name()}.generate(): expected an iterable of completions, found "
                f"{type(results).__name__}"
            )
        self._results = iter(results)

    def _advance(self, results: Iterator[Completion | None]) -> None:
        items: list[m.GeneratedItem] = []
        until = time.monotonic() + _SLICE
        for result in results:
            if result is not None:
                item = self._checked(result, "generate()")
                if item is not None and item.finish is FinishReason.INTERRUPTED:
                    raise RoleError(
                        f"{self._name()}.generate() returned response {item.response} as "
                        "interrupted: only interrupt() may do so"
                    )
                if item is not None:
                    items.append(item)
            if result is None or len(items) >= _AT_ONCE or time.monotonic() >= until:
                break
        else:
            self._results = None
            if self._running:
                raise RoleError(
                    f"{self._name()}.generate() ended without answering {len(self._running)} of its "
                    f"requests, such as response {next(iter(self._running))}"
                )
        if items:
            self._send(m.Generated(items))

    def _name(self) -> str:
        return type(self._engine).__name__

    def _checked(self, done: Any, method: str) -> m.GeneratedItem | None:
        """The message item of a completion. Raises RoleError if the engine's answer is invalid."""
        if not isinstance(done, Completion):
            raise RoleError(
                f"{self._name()}.{method}: expected request.done(...), found {type(done).__name__}"
            )
        request = done.request
        if not isinstance(request, Request):
            raise RoleError(
                f"{self._name()}.{method}: a completion's request: expected a temper.Request, found "
                f"{shown(request)}"
            )
        if self._running.pop(request.id, None) is None:
            if request.id in self._void:
                return None
            raise RoleError(f"{self._name()}.{method} answered response {request.id} twice")
        return self._item(done)

    def _item(self, done: Completion) -> m.GeneratedItem:
        """Converts a completion unchanged.

        The orchestrator checks the values of all engines in the same way: an invalid value fails the
        response, not the worker.
        """
        request = done.request
        what = f"{self._name()}, response {request.id}"
        tokens = _vector(what, "tokens", done.tokens, np.int32)
        logprobs = _vector(what, "logprobs", done.logprobs, np.float32)
        mask = no_u1() if done.mask is None else _vector(what, "mask", done.mask, np.uint8)
        rewards = (
            no_f4() if done.rewards is None else _vector(what, "rewards", done.rewards, np.float32)
        )
        item = m.GeneratedItem(
            request.lease,
            request.id,
            tokens,
            logprobs,
            self._segments(what, done, tokens.size),
            _finish(what, done.finish),
            mask,
            rewards,
            _reason(what, done.why),
        )
        if done.tensors is not None and item.finish in (FinishReason.END, FinishReason.LENGTH):
            try:
                item.tensors = self._tensors.write(done.tensors)
                self._activity.count_tensors(stored=sum(t.bytes for t in item.tensors))
            except RoleError as error:
                raise RoleError(f"{what}: tensors: {error}") from error
            except StoreError as error:
                item.finish = FinishReason.FAILED
                item.failure = f"its tensors: {error}"
        return item

    def _segments(self, what: str, done: Completion, size: int) -> list[Segment]:
        if done.segments is None:
            return [Segment(self._version or 0, size)] if size else []
        where = f"{what}: segments"
        return [
            _segment(where, given)
            for given in list_of(where, done.segments, "a list of pairs (version, tokens)")
        ]

    # --- Cancellation and interruption

    def _cancel(self, ids: list[int]) -> None:
        for i in ids:
            self._waiting.pop(i, None)
        running = [i for i in ids if self._running.pop(i, None) is not None]
        self._void.update(running)
        for message in self._deferred:  # requests that arrived meanwhile
            if isinstance(message, m.Generate):
                message.items = [x for x in message.items if x.response not in ids]
        if running:
            self._engine.cancel(running)
        if self._results is not None and not self._running:
            self._close()

    def _withdraw(self, ids: list[int]) -> None:
        """Returns waiting requests at once; running ones finish."""
        self._return([r for i in ids if (r := self._waiting.pop(i, None)) is not None])

    def _interrupt(self) -> None:
        items = []
        for done in self._interrupted() if self._results is not None else ():
            if isinstance(done, Completion):
                done.finish = FinishReason.INTERRUPTED
            item = self._checked(done, "interrupt()")
            if item is not None:
                items.append(item)
        if items:
            self._send(m.Generated(items))
        self._return([*self._running.values(), *self._waiting.values()])
        self._waiting.clear()
        self._close()

    def _interrupted(self) -> list[Any]:
        where = f"{self._name()}.interrupt()"
        return list_of(where, self._engine.interrupt(), "a list of completions")

    def _close(self) -> None:
        close = getattr(self._results, "close", None)
        self._results = None
        self._running.clear()
        if close is not None:
            close()

    def _return(self, requests: list[Request]) -> None:
        if requests:
            self._send(
                m.Generated(
                    [
                        m.GeneratedItem(
                            r.lease, r.id, no_i4(), no_f4(), [], FinishReason.INTERRUPTED
                        )
                        for r in requests
                    ]
                )
            )

    # --- Weights

    def _stage(self, handle: m.WeightsHandle) -> None:
        self._pieces = None
        if handle.fd < 0 and not handle.path:
            self._pieces = Assembler(handle)
            if not self._pieces.complete():
                return
        self._finish_staging(handle)

    def _add_piece(self, piece: m.WeightsChunk) -> None:
        if self._pieces is None or piece.version != self._pieces.handle.version:
            return  # of an announcement that was replaced
        try:
            self._pieces.add(piece)
        except ValueError as error:
            self._pieces = None
            self._send(m.WeightsStaged(piece.version, str(error)))
            return
        if self._pieces.complete():
            self._finish_staging(self._pieces.handle)

    def _finish_staging(self, handle: m.WeightsHandle) -> None:
        error = ""
        try:
            image = self._pieces.take() if self._pieces is not None else open_shared(handle)
            weights = Weights(image)
            self._engine.stage(handle.version, weights)
            self._staged = (handle.version, weights)
        except Exception as failure:
            error = one_line(failure)
        self._pieces = None
        self._send(m.WeightsStaged(handle.version, error))

    def _commit(self, version: int) -> None:
        error = ""
        with self._activity.span(CardState.WEIGHT_SYNC):
            if self._staged is None or self._staged[0] != version:
                error = f"version {version} was not staged"
            elif self._version is not None and version < self._version:
                error = f"commit of version {version}: the engine is already at {self._version}"
            else:
                self._engine.load(*self._staged)
                self._version = version
                self._staged = None
        self._send(m.WeightsCommitted(version, error))

    # --- Role switch

    def _switch(self, action: SwitchAction) -> None:
        perform_switch(
            action,
            {
                SwitchAction.INTERRUPT: self._interrupt,
                SwitchAction.FREE_KV: self._engine.free_kv,
                SwitchAction.ALLOCATE_KV: self._engine.allocate_kv,
                SwitchAction.FREE_WEIGHTS: self._engine.free_weights,
            },
            self._engine.memory,
            self._activity,
            self._send,
        )


def _finish(what: str, given: Any) -> FinishReason:
    if not isinstance(given, FinishReason):
        known = ", ".join(name.lower() for name in FinishReason.__members__)
        raise RoleError(f"{what}: finish: found {shown(given)}; expected one of {known}")
    return given


def _reason(what: str, given: Any) -> str:
    if isinstance(given, BaseException):
        return one_line(given)
    if given is not None and not isinstance(given, str):
        raise RoleError(f"{what}: why: found {shown(given)}; expected a text or an exception")
    return given or ""


def _segment(where: str, given: Any) -> Segment:
    try:
        pair = (given.version, given.tokens) if isinstance(given, Segment) else given
        version, tokens = (operator.index(x) for x in pair)
    except Exception:  # of any array library
        raise RoleError(
            f"{where}: found {shown(given)}; expected a pair of integers (version, tokens)"
        ) from None
    return Segment(version % 2**64, max(-(2**62), min(2**62, tokens)))


def _vector(what: str, name: str, values: Any, dtype: type) -> Any:
    floats = dtype == np.float32
    try:
        array = np.asarray(values)
    except Exception as error:  # ragged lists, and tensors on a device or with a gradient
        found = f"{type(values).__name__} ({one_line(error.with_traceback(None))})"
    else:
        if array.size == 0:
            return np.empty(0, dtype)
        if array.ndim == 1 and array.dtype.kind in ("fiub" if floats else "iub"):
            return _cast(array, dtype)
        of = f"{type(values).__name__}, shape {array.shape} of {array.dtype}"
        found = of if array.ndim else shown(values)
    expected = f"a list of {'numbers' if floats else 'integers'}"
    raise RoleError(f"{what}: {name}: found {found}; expected {expected}")


def _cast(array: Any, dtype: type) -> Any:
    """A copy: an engine may use its own array for the next response before this one is sent."""
    if array.dtype == dtype:
        return array.copy()
    if dtype == np.float32:
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    cast = array.astype(dtype)
    # An integer outside the type becomes its largest value, which the orchestrator refuses; wrapping
    # could produce a valid value.
    return (
        cast if np.array_equal(cast, array) else np.where(cast == array, cast, np.iinfo(dtype).max)
    )
