"""The actors of a reference and a reward."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import messages as m
from .activity import ActivityLog
from .errors import BrokenReward, RoleError, one_line
from .messages import CardState, SwitchAction
from .roles import Reference, Reward, Sample, Scored, Verdict
from .switching import perform_switch


class ReferenceActor:
    def __init__(self, reference: Reference, activity: ActivityLog, send: Callable[[Any], None]):
        self._reference = reference
        self._activity = activity
        self._send = send
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
            scores = list(self._reference.score([Scored(i.prompt, i.response) for i in work.items]))
            if len(scores) != len(work.items):
                raise RoleError(
                    f"{name}.score(): expected {len(work.items)} results, one per response, found "
                    f"{len(scores)}"
                )
            logprobs = []
            for item, score in zip(work.items, scores):
                with np.errstate(over="ignore"):
                    array = np.asarray(score, np.float32)
                if array.ndim != 1:
                    raise RoleError(
                        f"{name}.score(): expected log-probs of shape [{item.response.size}], one per "
                        f"response token, found shape {list(array.shape)}"
                    )
                logprobs.append(array)  # the orchestrator checks the number and range of values
        self._send(m.ReferenceScored(work.lease, logprobs))


def reward_of(name: str, given: Any) -> float:
    """Converts a reward to a float; the orchestrator checks its range.

    Raises:
        RoleError: It is no number. The message has the function's name and the value.
    """
    if not isinstance(given, (str, bytes)):
        try:
            return float(given)
        except Exception:  # of any array library
            pass
    raise RoleError(f"{name} returned {shown(given)} as a reward: expected a number or None")


def shown(given: Any) -> str:
    """A short description of a value that a user's function returned."""
    return f"{reprlib.repr(given)} ({type(given).__name__})"


def verdict(name: str, given: Any) -> m.JudgedItem:
    """A reward, or the reason why there is none."""
    if isinstance(given, BaseException):
        return m.JudgedItem(0.0, one_line(given) or type(given).__name__)
    if isinstance(given, Verdict):
        given = given.reward
    if given is None:
        return m.JudgedItem(0.0, "no reward function applies: each one returned None")
    try:
        return m.JudgedItem(reward_of(name, given), "")
    except RoleError as error:
        return m.JudgedItem(0.0, one_line(error))


def terms_of(verdicts: Sequence[Any]) -> dict[str, list[float]]:
    """The parts of rewards by name, one per response; NaN where there is none."""
    parts = [v.terms if isinstance(v, Verdict) else {} for v in verdicts]
    names = sorted({name for of_response in parts for name in of_response})
    return {name: [float(p.get(name, math.nan)) for p in parts] for name in names}


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
        try:
            with self._activity.span(CardState.REWARD):
                rewards = list(self._reward.judge(samples))
        except BrokenReward as error:
            failed = m.JudgedItem(0.0, one_line(error))
            self._send(m.Judged(message.lease, [failed] * len(samples), True, usage=self._usage()))
            return
        if len(rewards) != len(samples):
            raise RoleError(
                f"{type(self._reward).__name__}.judge(): expected {len(samples)} rewards, one per "
                f"response, found {len(rewards)}"
            )
        name = f"{type(self._reward).__name__}.judge()"
        items = [verdict(name, r) for r in rewards]
        terms = terms_of(rewards)
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
