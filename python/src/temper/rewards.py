"""Reward functions in TRL's style, called in a pool of processes.

    def right_answer(prompts, completions, completion_ids, answer, **columns):
        return [1.0 if c.strip() == a else 0.0 for c, a in zip(completions, answer)]

A function receives lists of equal length by keyword: `prompts`, `completions` (texts),
`completion_ids` (lists of token ids), `answer`, and every other column of the task file. It returns a
list with a number per completion, or None where it does not apply; it may be `async`. In the YAML:

    verifier: {kind: python, function: "my_module:right_answer", pool: 4, deadline: 5s}

`temper.verifier` sums the rewards of functions and of other verifiers.

If a call exceeds the deadline or its process dies, its responses fail and the process is replaced. If a
function raises for a response, that response fails. A function that has never returned a reward ends
the run at its third failed call, with its error.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import math
import multiprocessing
import multiprocessing.connection
import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from .errors import BrokenReward, RoleError, one_line
from .names import import_name
from .process import die_with_parent, name_process
from .roles import Sample
from .values import reward_of, shown

#: Other arguments that TRL passes; here they do nothing.
_EXTRAS: dict[str, Any] = {
    "trainer_state": None,
    "log_extra": lambda *_: None,
    "log_metric": lambda *_: None,
}
#: Failures after which a verifier that has never returned a reward ends the run.
MOST_FAILURES = 3
#: Seconds that a process has to import the functions.
_START = 120.0

Columns = dict[str, list[Any]]


def columns_of(samples: Sequence[Sample]) -> Columns:
    names = dict.fromkeys(name for s in samples for name in s.columns)
    columns: Columns = {name: [s.columns.get(name) for s in samples] for name in names}
    columns["answer"] = [s.answer for s in samples]
    columns["prompts"] = [s.prompt for s in samples]
    columns["completions"] = [s.response for s in samples]
    columns["completion_ids"] = [s.tokens.tolist() for s in samples]
    return columns


def find_function(name: str) -> Callable[..., Any]:
    found = import_name("verifier.function", name)
    if not callable(found):
        raise RoleError(
            f'verifier.function "{name}": expected a function, found {type(found).__name__}'
        )
    return found  # type: ignore[no-any-return]


def call(name: str, function: Callable[..., Any], columns: Columns) -> list[float | None]:
    """Calls a function with the arguments that it accepts and checks its rewards.

    Raises:
        RoleError: The function does not return a number or None per completion.
    """
    parameters = inspect.signature(function).parameters.values()
    given = {**_EXTRAS, **columns}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        given = {p.name: given[p.name] for p in parameters if p.name in given}
    rewards = function(**given)
    if inspect.isawaitable(rewards):
        rewards = asyncio.run(_awaited(rewards))
    expected = len(columns["prompts"])
    if isinstance(rewards, (str, bytes, Mapping, Set)) or not hasattr(rewards, "__len__"):
        raise RoleError(
            f"{name} returned {shown(rewards)}: expected a list with a number for each completion"
        )
    if len(rewards) != expected:
        raise RoleError(
            f"{name}: expected {expected} rewards, one per completion, found {len(rewards)}"
        )
    checked: list[float | None] = []
    for reward in rewards:
        number = None if reward is None else reward_of(name, reward)
        if number is not None and not math.isfinite(number):  # the function's name is known here
            raise RoleError(f"{name}: expected a finite reward, found {number}")
        checked.append(number)
    return checked


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def call_all(
    columns: Columns, functions: list[tuple[str, str, Callable[..., Any]]]
) -> list[dict[str, float]]:
    """Per response the rewards that apply, by term."""
    rewards: list[dict[str, float]] = [{} for _ in columns["prompts"]]
    for term, name, function in functions:
        for of_response, reward in zip(rewards, call(name, function, columns)):
            if reward is not None:
                of_response[term] = reward
    return rewards


@dataclasses.dataclass(slots=True)
class RaisedError:
    """The error that a function raised for a response."""

    error: str


def _serve(pipe: multiprocessing.connection.Connection, terms: dict[str, str], parent: int) -> None:
    """A process of the pool: answers Columns with rewards until the pipe closes."""
    die_with_parent(parent)
    name_process("temper-reward")
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent has ended
        try:
            functions = [(term, name, find_function(name)) for term, name in terms.items()]
        except BaseException as error:
            pipe.send(RaisedError(one_line(error)))
            return
        pipe.send(None)
        while True:
            pipe.send(_judge(pipe.recv(), functions))


def _judge(
    columns: Columns, functions: list[tuple[str, str, Callable[..., Any]]]
) -> list[dict[str, float] | RaisedError]:
    try:
        return list(call_all(columns, functions))
    except Exception as error:
        count = len(columns["prompts"])
        if count == 1:
            return [RaisedError(one_line(error))]
    return [  # one by one, to find the responses for which it raises
        _judge({k: v[i : i + 1] for k, v in columns.items()}, functions)[0] for i in range(count)
    ]


class _Process:
    def __init__(self, terms: dict[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, terms, os.getpid()), daemon=True
        )
        self._process.start()
        theirs.close()
        self.shard: range | None = None
        self.deadline = time.monotonic() + _START
        self.ready = False

    def kill(self) -> str:
        """Kills the process and returns how it ended."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return f"exit code {self._process.exitcode}"

    def died(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        self.kill()
        return f"exit code {code}" if code is not None and code >= 0 else f"signal {-(code or 9)}"


class Functions:
    """Reward functions in a pool of processes.

    Args:
        terms: The function of each term.
        pool: Number of processes.
        deadline: Seconds of one call with its responses.
    """

    def __init__(self, terms: dict[str, str], pool: int, deadline: float) -> None:
        self._terms = terms
        self._names = ", ".join(terms.values())
        self._deadline = deadline
        self._proven = False
        self._bad_calls = 0
        self._pool = [_Process(terms) for _ in range(pool)]

    def judge(self, samples: list[Sample]) -> list[dict[str, float] | Exception]:
        """Per response the rewards that apply, by term, or why it failed.

        Raises:
            BrokenReward: The functions have failed several times and never returned a reward.
        """
        try:
            return self._judge_all(samples)
        except BrokenReward:
            self._bad_calls = 0
            self.close()
            self._pool = [_Process(self._terms) for _ in self._pool]
            raise

    def _judge_all(self, samples: list[Sample]) -> list[dict[str, float] | Exception]:
        verdicts: list[dict[str, float] | Exception] = [{} for _ in samples]
        size = max(1, math.ceil(len(samples) / len(self._pool)))
        shards = [range(i, min(i + size, len(samples))) for i in range(0, len(samples), size)]
        open_shards = len(shards)
        while open_shards:
            self._assign(shards, samples)
            for process in self._wait():
                done = self._answer(process)
                if done is not None:
                    shard, answers = done
                    open_shards -= 1
                    for i, answer in zip(shard, answers):
                        verdicts[i] = answer
        return verdicts

    def close(self) -> None:
        for process in self._pool:
            process.kill()

    def _assign(self, shards: list[range], samples: list[Sample]) -> None:
        for process in self._pool:
            if shards and process.ready and process.shard is None:
                process.shard = shards.pop()
                process.pipe.send(columns_of([samples[i] for i in process.shard]))
                process.deadline = time.monotonic() + self._deadline

    def _wait(self) -> list[_Process]:
        """Waits for processes with an answer or an expired deadline."""
        busy = [p for p in self._pool if p.shard is not None or not p.ready]
        left = min(p.deadline for p in busy) - time.monotonic()
        said = multiprocessing.connection.wait([p.pipe for p in busy], max(0.0, left))
        now = time.monotonic()
        return [p for p in busy if p.pipe in said or p.deadline <= now]

    def _answer(self, process: _Process) -> tuple[range, list[Any]] | None:
        """A shard and its rewards; None: the process has become ready."""
        try:
            if not process.pipe.poll(0):
                why = f"no answer within {self._deadline if process.ready else _START:g} s"
                process.kill()
                return self._lost(process, why)
            said = process.pipe.recv()
        except (EOFError, OSError):
            return self._lost(process, f"its process ended ({process.died()})")
        if not process.ready:
            if isinstance(said, RaisedError):
                raise self._cannot_judge(said.error)
            process.ready = True
            return None
        shard, process.shard = process.shard, None
        assert shard is not None
        raised = [a.error for a in said if isinstance(a, RaisedError)]
        if len(raised) < len(said):
            self._proven = True
        else:
            self._note_bad_calls(len(raised), raised[0])
        return shard, [RoleError(a.error) if isinstance(a, RaisedError) else a for a in said]

    def _cannot_judge(self, why: str) -> RoleError | BrokenReward:
        """The error if a process cannot start. The worker restarts if the functions have worked before."""
        return RoleError(why) if self._proven else BrokenReward(why)

    def _note_bad_calls(self, count: int, why: str) -> None:
        self._bad_calls += count
        if not self._proven and self._bad_calls >= MOST_FAILURES:
            raise BrokenReward(why)

    def _lost(self, process: _Process, why: str) -> tuple[range, list[Any]]:
        why = f"{self._names}: {why}"
        if process.shard is None:  # the process was starting
            raise self._cannot_judge(why)
        self._pool[self._pool.index(process)] = _Process(self._terms)
        self._note_bad_calls(1, why)
        return process.shard, [RoleError(why) for _ in process.shard]
