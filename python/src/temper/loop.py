"""The loop form of a trainer: `for batch in temper.Trainer(...)`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from . import credentials
from . import messages as m
from .activity import ActivityLog
from .errors import RoleError
from .process import name_process, pin_to_cards
from .role_types import Batch, Role, TrainerMethods
from .runtime import IDLE, Session, register
from .training import TrainerActor
from .transport import Connection


def registered() -> tuple[Connection, m.Welcome, Role]:
    """Registers this program with the orchestrator that started it and pins it to its cores.

    Returns:
        The connection, the orchestrator's welcome message, and the role.

    Raises:
        RoleError: The orchestrator did not start this program.
    """
    endpoint, name = os.environ.get("TEMPER_ENDPOINT"), os.environ.get("TEMPER_NAME")
    if not endpoint or not name:
        raise RoleError(
            "TEMPER_ENDPOINT and TEMPER_NAME are not set. Let the orchestrator start this program: "
            "`trainer: {engine: {kind: command, command: [...]}}`, then `temper run CONFIG`"
        )
    name_process(name)
    proof = credentials.given()
    connection = Connection(endpoint, proof)
    welcome = register(connection, name, proof.secret)
    assert welcome is not None
    role = Role(welcome, name)
    pin_to_cards(role.cards)
    return connection, welcome, role


def batches(trainer: TrainerMethods) -> Iterator[Batch]:
    """Registers with the orchestrator and yields one batch per step until the run ends."""
    connection, welcome, trainer.role = registered()
    with Session(connection, welcome) as session:
        actor = TrainerActor(trainer, ActivityLog(welcome.epoch_monotonic_ns), session.send)
        session.built()
        session.send(m.Ready())
        actor.start()
        session.started()
        while True:
            for message in session.take(IDLE):
                if isinstance(message, m.Stop):
                    actor.stop()
                    return
                if isinstance(message, m.Train):
                    yield from _one(actor, message)
                else:
                    actor.on_message(message)
            actor.work()


def _one(actor: TrainerActor, work: m.Train) -> Iterator[Batch]:
    begin = actor.now()
    batch = actor.begin(work)

    def publish(weights: Any, metrics: Any) -> None:
        batch._publish = None  # once
        actor.finish(work, batch, begin, metrics, lambda: weights)

    batch._publish = publish
    yield batch
    if batch._publish is not None:
        raise RoleError(
            f"the loop took the next batch before batch.publish() for version {batch.version + 1}; "
            "call it once per batch"
        )
