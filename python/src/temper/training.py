"""The trainer actor: checks the certificate of each batch, runs the user's Trainer, publishes."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import messages as m
from .activity import ActivityLog
from .errors import NotFinite, RoleError, one_line
from .messages import CardState, SwitchAction
from .role_types import Batch, Row, TrainerMethods
from .stores import open_store
from .switching import perform_switch
from .tensors import TensorReader, Tensors
from .values import LARGEST_COUNT, number_of, shown
from .weights import Publisher, make_image

_METRICS = [f.name for f in dataclasses.fields(m.UpdateMetrics)]


def check_certificate(work: m.Train, version: int) -> None:
    """Verifies the orchestrator's staleness bound again before training.

    Raises:
        RoleError: A group exceeds the bound, or batch and certificate differ.
    """
    c = work.certificate
    if c.step != version:
        raise RoleError(f"expected a batch for version {version}, found one for version {c.step}")
    dispatched: dict[int, int] = {}
    for entry in c.groups:
        begin = entry.dispatched if entry.counted_from is None else entry.counted_from
        if begin > c.step or c.step - begin > c.bound:
            raise RoleError(
                f"group {entry.group} was dispatched with version {begin}, which exceeds the bound "
                f"{c.bound} at version {c.step}"
            )
        if entry.group in dispatched:
            raise RoleError(f"group {entry.group} appears twice in the certificate")
        dispatched[entry.group] = entry.dispatched
    seen = set()
    for item in work.items:
        if item.group not in dispatched:
            raise RoleError(f"group {item.group} is not in the certificate")
        if not item.response.size:
            raise RoleError(f"response {item.id} of group {item.group} has no tokens")
        if not dispatched[item.group] <= item.first_version <= c.step:
            raise RoleError(
                f"a response of group {item.group} was started with version {item.first_version}, "
                f"expected {dispatched[item.group]} to {c.step}"
            )
        seen.add(item.group)
    if missing := set(dispatched) - seen:
        raise RoleError(f"group {min(missing)} is in the certificate but not in the batch")


def row_of(item: m.TrainItem, reader: TensorReader) -> Row:
    size = item.response.size
    top = item.top or m.TopTokens()
    per_token = (size, top.ids.size // max(1, size))
    return Row(
        item.group,
        item.prompt,
        item.response,
        item.logprobs,
        item.reference,
        item.reward,
        item.mask if item.mask.size else np.ones(size, np.uint8),
        item.rewards if item.rewards.size else np.zeros(size, np.float32),
        item.segments or [m.Segment(item.first_version, size)],
        item.id,
        Tensors(item.tensors, item.id, reader),
        top.ids.reshape(per_token),
        top.logprobs.reshape(per_token),
    )


def _metric(where: str, key: str, given: Any) -> float:
    number = number_of(given)
    if number is None:
        raise RoleError(f"{where}: {key}: expected a finite number, found {shown(given)}")
    if not math.isfinite(number):
        raise NotFinite(f"{where}: {key}: expected a finite number, found {number}")
    if not isinstance(getattr(m.UpdateMetrics(), key), int):
        return number
    if not 0 <= number <= LARGEST_COUNT:
        raise RoleError(f"{where}: {key}: expected 0 to {LARGEST_COUNT}, found {shown(given)}")
    return int(number)


def metrics_of(where: str, given: Any, batch: Batch) -> m.UpdateMetrics:
    """The metrics that a user's code gave at `where`, completed with those of the batch.

    Raises:
        RoleError: `given` is not a mapping of known names to finite numbers.
    """
    if given is not None and not hasattr(given, "items"):
        raise RoleError(
            f"{where}: expected a mapping of metrics by name, found {type(given).__name__}"
        )
    metrics = m.UpdateMetrics(
        reward_mean=sum(r.reward for r in batch.rows) / max(1, len(batch.rows)),
        micro_batches=1,
        ratio_mean=1.0,
        tokens=sum(r.prompt.size + r.response.size for r in batch.rows),
    )
    for key, value in (given or {}).items():
        if key not in _METRICS:
            raise RoleError(
                f'{where}: unknown metric "{key}"; known metrics: {", ".join(_METRICS)}'
            )
        setattr(metrics, key, _metric(where, key, value))
    return metrics


class TrainerActor:
    def __init__(
        self, trainer: TrainerMethods, activity: ActivityLog, send: Callable[[Any], None]
    ) -> None:
        self._trainer = trainer
        self._activity = activity
        self._send = send
        role = trainer.role
        self._version = role.version
        self._publisher = Publisher(role.welcome.role.shared_memory)
        self._store = open_store(role.welcome.role.tensors)
        if role.resume_from is not None:
            trainer.load(role.resume_from)

    def start(self) -> None:
        image = make_image(self._trainer.publish())
        self._announce(image, lambda handle: self._send(m.TrainerReady(handle)))

    def on_message(self, message: Any) -> None:
        if isinstance(message, m.Train):
            self._train(message)
        elif isinstance(message, m.SaveState):
            self._save(message)
        elif isinstance(message, m.Switch):
            perform_switch(
                message.action,
                {
                    SwitchAction.OFFLOAD_OPTIMIZER: self._trainer.offload,
                    SwitchAction.ONLOAD_OPTIMIZER: self._trainer.onload,
                },
                self._trainer.memory,
                self._activity,
                self._send,
            )

    def work(self) -> bool:
        self._activity.report(self._send)
        return False

    def stop(self) -> None:
        close = getattr(self._trainer, "close", None)
        if close is not None:
            close()
        self._activity.flush(self._send)

    def _train(self, work: m.Train) -> None:
        begin = self._activity.now()
        batch = self.begin(work)
        given = self._trainer.update(batch)
        where = f"{type(self._trainer).__name__}.update()"
        self.finish(work, batch, begin, given, self._trainer.publish, where)

    def begin(self, work: m.Train) -> Batch:
        try:
            check_certificate(work, self._version)
        except RoleError as error:
            raise RoleError(f"certificate refused: {error}") from None
        reader = TensorReader(self._store, self._activity)
        rows = [row_of(item, reader) for item in work.items]
        return Batch(self._version, work.certificate.bound, rows, work.certificate)

    def now(self) -> int:
        return self._activity.now()

    def finish(
        self,
        work: m.Train,
        batch: Batch,
        begin: int,
        given: Any,
        publish: Callable[[], Any],
        where: str = "batch.publish()",
    ) -> None:
        """Completes the step that started at `begin` (ns): sends its metrics, then its weights.

        `where` is the user's method that gave the metrics, for errors.
        """
        metrics = metrics_of(where, given, batch)
        self._activity.add(CardState.TRAIN, begin)
        self._version += 1
        groups = [entry.group for entry in work.certificate.groups]
        with self._activity.span(CardState.WEIGHT_SYNC):
            image = make_image(publish())
            self._announce(image, lambda h: self._send(m.Trained(work.lease, groups, metrics, h)))

    def _announce(self, image: bytes, announce: Callable[[m.WeightsHandle], None]) -> None:
        self._publisher.publish(self._version, image, announce, self._send)

    def _save(self, work: m.SaveState) -> None:
        error = ""
        with self._activity.span(CardState.WEIGHT_SYNC):
            if work.version != self._version:
                error = f"cannot save version {work.version}: the trainer is at {self._version}"
            else:
                try:
                    self._trainer.save(pathlib.Path(work.folder))
                except Exception as failure:
                    error = one_line(failure)
        self._send(m.StateSaved(work.version, error))
