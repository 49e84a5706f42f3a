"""`python -m temper.worker`: one actor of a run, whose work a class of the user's does.

The orchestrator starts it; what it is, it is told when it registers.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from . import attach, credentials
from . import messages as m
from .activity import ActivityLog
from .errors import PERMANENT_EXIT, Gone, RoleError, is_permanent, one_line
from .names import import_name
from .process import die_with_parent, name_process, pin_to_cards
from .roles import Engine, Reference, Reward, Role, Trainer
from .rollout import RolloutActor
from .runtime import Actor, Send, register, run
from .scoring import ReferenceActor, RewardActor
from .training import TrainerActor
from .transport import Connection

KINDS: dict[str, tuple[type, Callable[[Any, ActivityLog, Send], Actor]]] = {
    "rollout": (Engine, RolloutActor),
    "trainer": (Trainer, TrainerActor),
    "reference": (Reference, ReferenceActor),
    "reward": (Reward, RewardActor),
}


def make_actor(welcome: m.Welcome, name: str, send: Send) -> Actor:
    role = Role(welcome, name)
    pin_to_cards(role.cards)
    base, actor = KINDS[role.kind]
    cls = import_name("engine.use", welcome.role.engine.use)
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise RoleError(
            f'engine.use "{welcome.role.engine.use}": a {role.kind} derives from '
            f"temper.{base.__name__}"
        )
    user: Any = cls.__new__(cls)
    user.role = role  # before its __init__, which may look at it
    user.__init__(**role.arguments)
    return actor(user, ActivityLog(welcome.epoch_monotonic_ns), send)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m temper.worker", description=__doc__)
    parser.add_argument("--connect", default=os.environ.get("TEMPER_ENDPOINT"), help="endpoint")
    parser.add_argument("--name", default=os.environ.get("TEMPER_NAME"), help="actor slot")
    parser.add_argument("--parent", type=int, default=0, help="process to die with")
    parser.add_argument("--credentials", help="file with the secret of the run, and keys")
    parser.add_argument("--key", help="attach with this file of `temper keys make`")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--role", help="attach as any free actor of this role")
    place.add_argument("--slot", help="attach as this actor, e.g. rollout-3")
    place.add_argument("--rank", type=int, help="attach as the attached actor of this number")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for the run")
    arguments = parser.parse_args()
    attaches = arguments.key is not None
    if not arguments.connect or not (arguments.name or attaches):
        parser.error("--connect and --name are needed; the orchestrator gives them")
    if arguments.parent:
        die_with_parent(arguments.parent)
    if not attaches:
        name_process(arguments.name)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.setswitchinterval(0.001)  # the I/O thread is not to wait long for the role's
    registered = attaches
    try:
        if attaches:
            attach.serve(
                arguments.connect,
                credentials.read(arguments.key),
                attach.place_of(arguments.slot, arguments.role, arguments.rank, os.environ),
                arguments.patience,
                lambda w, send: make_actor(w, w.name, send),
            )
            return 0
        proof = credentials.given(arguments.credentials)
        connection = Connection(arguments.connect, proof)
        welcome = register(connection, arguments.name, proof.secret)
        assert welcome is not None
        registered = True  # from here on actor.failed tells more than the exit code
        run(connection, welcome, lambda w, send: make_actor(w, arguments.name, send))
    except Exception as error:
        if isinstance(error, Gone):
            print(f"temper.worker: {error}", file=sys.stderr)
        else:
            print(f"temper.worker: {one_line(error)}", file=sys.stderr)
        return PERMANENT_EXIT if not registered and is_permanent(error) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
