"""The actors of a reference and a reward."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import messages as m
from .activity import ActivityLog
from .errors import BrokenReward, RoleError, one_line
from .messages import CardState, SwitchAction
from .roles import Reference, Reward, Sample, Scored, Scores, Verdict
from .switching import perform_switch
from .values import MOST_TERMS, list_of, reward_of, shown, terms_of


def _array(given: Any, expected: str, dtype: Any, dimensions: int) -> np.ndarray[Any, Any]:
    """Converts an array of any library. The orchestrator checks the number and range of values.

    Raises:
        RoleError: It has another number of dimensions than expected, or is no array of numbers.
    """
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(given)
            array = found.astype(dtype)
            if dtype == np.int32 and not np.array_equal(array, found):
                raise ValueError("not integers of 32 bits")
    except Exception as error:  # of any array library
        raise RoleError(f"{expected}, found {shown(given)}: {error}") from None
    if array.ndim != dimensions:
        raise RoleError(f"{expected}, found shape {list(array.shape)}")
    return array


class ReferenceActor:
    def __init__(self, reference: Reference, activity: ActivityLog, send: Callable[[Any], None]):
        self._reference = reference
        self._activity = activity
        self._send = send
        settings = reference.role.settings
        self._top_k = settings.algorithm.distillation_top_k if settings is not None else 0
        if reference.role.welcome.role.takes_turns:
            reference.offload()

    def start(self) -> None:
        pass

    def on_message(self, message: Any) -> None:
        if isinstance(message, m.ScoreReference):
            self._score(message)
        elif isinstance(message, m.Switch):
            perform_switch(
                message.action,
                {
                    SwitchAction.OFFLOAD_REFERENCE: self._reference.offload,
                    SwitchAction.ONLOAD_REFERENCE: self._reference.onload,
                },
                self._reference.memory,
                self._activity,
                self._send,
            )

    def work(self) -> bool:
        self._activity.report(self._send)
        return False

    def stop(self) -> None:
        self._activity.flush(self._send)

    def _score(self, work: m.ScoreReference) -> None:
        name = type(self._reference).__name__
        with self._activity.span(CardState.REFERENCE):
            scores = list_of(
                f"{name}.score()",
                self._reference.score([Scored(i.prompt, i.response) for i in work.items]),
                "a list of log-probs, an array per response",
            )
            if len(scores) != len(work.items):
                raise RoleError(
                    f"{name}.score(): expected {len(work.items)} results, one per response, found "
                    f"{len(scores)}"
                )
            message = m.ReferenceScored(work.lease, top=[] if self._top_k else None)
            for i, (item, score) in enumerate(zip(work.items, scores)):
                where, size = f"{name}.score(): result {i}", item.response.size
                if message.top is not None:
                    message.top.append(self._top_of(where, score, size))
                logprobs = score.logprobs if isinstance(score, Scores) else score
                expected = f"{where}: expected log-probs of shape [{size}], one per response token"
                message.logprobs.append(_array(logprobs, expected, np.float32, 1))
        self._send(message)

    def _top_of(self, where: str, score: Any, size: int) -> m.TopTokens:
        """Raises RoleError: no array of ids or log-probs. The orchestrator checks shapes and values."""
        if not isinstance(score, Scores):
            raise RoleError(
                f"{where}: expected temper.Scores, because algorithm.distillation_top_k is "
                f"{self._top_k}, found {shown(score)}"
            )
        shape = f"of shape [{size}, {self._top_k}]"
        ids = _array(score.top_ids, f"{where}: expected top_ids {shape}", np.int32, 2)
        logprobs = _array(
            score.top_logprobs, f"{where}: expected top_logprobs {shape}", np.float32, 2
        )
        return m.TopTokens(ids.ravel(), logprobs.ravel())


def verdict(where: str, given: Any) -> tuple[m.JudgedItem, dict[str, float]]:
    """A reward with its terms, or the reason why there is none."""
    if isinstance(given, BaseException):
        return _failed(given), {}
    reward, terms = (given.reward, given.terms) if isinstance(given, Verdict) else (given, {})
    if reward is None:
        return m.JudgedItem(0.0, "no reward function applies: each one returned None"), {}
    try:
        return m.JudgedItem(reward_of(where, reward), ""), terms_of(where, terms)
    except Exception as error:  # also of a user's mapping
        return _failed(error), {}


def _failed(error: BaseException) -> m.JudgedItem:
    return m.JudgedItem(0.0, one_line(error))


def verdicts(where: str, given: Sequence[Any]) -> tuple[list[m.JudgedItem], dict[str, list[float]]]:
    """The verdicts of all responses, and each term's rewards; NaN where a response has none."""
    items: list[m.JudgedItem] = []
    rows: list[dict[str, float]] = []
    names: set[str] = set()
    for of_response in given:
        item, terms = verdict(where, of_response)
        if len(names | terms.keys()) > MOST_TERMS:
            new = min(terms.keys() - names)
            item = _failed(
                RoleError(
                    f'{where}: term "{new}": found {len(names | terms.keys())} different terms in '
                    f"one call; expected at most {MOST_TERMS}"
                )
            )
            terms = {}
        names |= terms.keys()
        items.append(item)
        rows.append(terms)
    return items, {name: [row.get(name, math.nan) for row in rows] for name in sorted(names)}


class RewardActor:
    def __init__(self, reward: Reward, activity: ActivityLog, send: Callable[[Any], None]) -> None:
        self._reward = reward
        self._activity = activity
        self._send = send

    def start(self) -> None:
        pass

    def on_message(self, message: Any) -> None:
        if not isinstance(message, m.Judge):
            return
        decode = self._reward.role.decode
        samples = [
            Sample(
                i.prompt,
                i.answer,
                decode(i.response),
                i.response,
                json.loads(i.columns) if i.columns else {},
            )
            for i in message.items
        ]
        where = f"{type(self._reward).__name__}.judge()"
        try:
            with self._activity.span(CardState.REWARD):
                rewards = list_of(
                    where, self._reward.judge(samples), "a list of rewards, one per response"
                )
        except BrokenReward as error:
            items = [_failed(error)] * len(samples)
            self._send(m.Judged(message.lease, items, True, usage=self._usage()))
            return
        if len(rewards) != len(samples):
            raise RoleError(
                f"{where}: expected {len(samples)} rewards, one per response, found {len(rewards)}"
            )
        items, terms = verdicts(where, rewards)
        self._send(m.Judged(message.lease, items, terms=terms, usage=self._usage()))

    def _usage(self) -> m.JudgeUsage | None:
        take = getattr(self._reward, "take_usage", None)
        usage: m.JudgeUsage | None = take() if take is not None else None
        return usage

    def work(self) -> bool:
        self._activity.report(self._send)
        return False

    def stop(self) -> None:
        close = getattr(self._reward, "close", None)
        if close is not None:
            close()
        self._activity.flush(self._send)
