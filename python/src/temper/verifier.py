"""The reward actor of verifiers that need Python: the weighted sum of its terms.

Functions run in pools of processes (`rewards`), judges and classifiers here (`judge`, `classifier`), and
the verifiers of temper-worker in a process of that program (`native`). Requests to judges and passes of
classifiers run at the same time as the functions.
"""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from . import messages as m
from .classifier import Classifier, import_packages
from .errors import BrokenReward
from .judge import Judge
from .messages import VerifierKind, VerifierTerm
from .native import Native
from .rewards import Functions
from .roles import Reward, Sample, Verdict

Rewards = list[dict[str, float] | Exception]


class _Part(Protocol):
    """Judges one or several terms."""

    def judge(self, samples: list[Sample]) -> Rewards: ...
    def close(self) -> None: ...


class _OneTerm:
    """A judge or a classifier."""

    def __init__(self, term: str, inner: Any) -> None:
        self._term = term
        self.inner = inner

    def judge(self, samples: list[Sample]) -> Rewards:
        return [
            r if isinstance(r, Exception) else {self._term: r} for r in self.inner.judge(samples)
        ]

    def close(self) -> None:
        if hasattr(self.inner, "close"):
            self.inner.close()


class Verifier(Reward):
    """The reward of a response is the sum of its terms by their weights.

    A term without a reward for a response (None of a function) does not count. A response fails if a
    term fails, or if it has no reward at all.
    """

    def __init__(self) -> None:
        terms: Mapping[str, VerifierTerm] = self.role.verifier.terms
        self._weights = {name: term.weight for name, term in terms.items()}
        self._parts: list[_Part] = []
        self._threads = concurrent.futures.ThreadPoolExecutor(max(1, len(terms)))
        try:
            for make in _makers(terms, self.role.cards):
                self._parts.append(make())
        except BaseException:
            self.close()
            raise
        # Those without processes, which must be started by the thread that lives as long as this one.
        self._elsewhere = [p for p in self._parts if isinstance(p, _OneTerm)]
        self._here = [p for p in self._parts if not isinstance(p, _OneTerm)]

    def judge(self, samples: list[Sample]) -> list[Verdict | Exception | None]:
        futures = [self._threads.submit(part.judge, samples) for part in self._elsewhere]
        judging: list[Callable[[], Rewards]] = [
            functools.partial(part.judge, samples) for part in self._here
        ]
        judging += [future.result for future in futures]
        found: list[Rewards] = []
        broken: BrokenReward | None = None
        for judge in judging:
            try:
                found.append(judge())
            except BrokenReward as error:
                broken = broken or error
        if broken is not None:
            raise broken
        return [self._sum([rewards[i] for rewards in found]) for i in range(len(samples))]

    def take_usage(self) -> m.JudgeUsage | None:
        """Returns the work of the judges since the last call, or None if there was none."""
        total: m.JudgeUsage | None = None
        for part in self._parts:
            take = getattr(getattr(part, "inner", None), "take_usage", None)
            used = take() if take is not None else None
            if used is not None:
                total = used if total is None else _added(total, used)
        return total

    def close(self) -> None:
        for part in self._parts:
            part.close()
        self._threads.shutdown(wait=False)

    def _sum(self, of_parts: list[dict[str, float] | Exception]) -> Verdict | Exception | None:
        rewards: dict[str, float] = {}
        for of_part in of_parts:
            if isinstance(of_part, Exception):
                return of_part
            rewards.update(of_part)
        if not rewards:
            return None
        reward = sum(self._weights[term] * rewards[term] for term in sorted(rewards))
        return Verdict(reward, rewards if len(self._weights) > 1 else {})


def _added(a: m.JudgeUsage, b: m.JudgeUsage) -> m.JudgeUsage:
    return m.JudgeUsage(
        a.requests + b.requests,
        a.cached + b.cached,
        a.retries + b.retries,
        a.input_tokens + b.input_tokens,
        a.output_tokens + b.output_tokens,
        a.cost + b.cost,
    )


def _makers(terms: Mapping[str, VerifierTerm], cards: list[int]) -> list[Callable[[], _Part]]:
    """Functions with equal pool and deadline share one pool; the terms of temper-worker share one."""
    makers: list[Callable[[], _Part]] = []
    functions: dict[tuple[int, float], dict[str, str]] = {}
    native: dict[str, VerifierTerm] = {}
    for name, term in sorted(terms.items()):
        if term.kind == VerifierKind.PYTHON:
            functions.setdefault((term.pool, term.deadline / 1e9), {})[name] = term.function
        elif term.kind == VerifierKind.JUDGE:
            makers.append(functools.partial(_judge, name, term))
        elif term.kind == VerifierKind.MODEL:
            makers.append(functools.partial(_classifier, name, term, cards))
        else:
            native[name] = term
    for (pool, deadline), named in functions.items():
        makers.append(functools.partial(Functions, named, pool, deadline))
    if native:
        makers.append(functools.partial(Native, native))
    return makers


def _judge(name: str, term: VerifierTerm) -> _Part:
    return _OneTerm(name, Judge(term.judge, term.pool, term.deadline / 1e9, name))


def _classifier(name: str, term: VerifierTerm, cards: list[int]) -> _Part:
    torch, _ = import_packages()
    if cards:  # on hosts without accelerators, cards are cores
        torch.set_num_threads(len(cards))
    return _OneTerm(name, Classifier(term.model, name))
