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

from . import credentials
from . import messages as m
from .activity import ActivityLog
from .errors import Gone, RoleError, one_line
from .names import import_name
from .process import die_with_parent, name_process, pin_to_cores
from .roles import Engine, Reference, Reward, Role, Trainer
from .rollout import RolloutActor
from .runtime import Actor, register, run
from .scoring import ReferenceActor, RewardActor
from .training import TrainerActor
from .transport import Connection

Send = Callable[[Any], None]

_KINDS: dict[str, tuple[type, Callable[[Any, ActivityLog, Send], Actor]]] = {
    "rollout": (Engine, RolloutActor),
    "trainer": (Trainer, TrainerActor),
    "reference": (Reference, ReferenceActor),
    "reward": (Reward, RewardActor),
}


def make_actor(welcome: m.Welcome, name: str, send: Send) -> Actor:
    role = Role(welcome, name)
    pin_to_cores(role.cards)
    base, actor = _KINDS[role.kind]
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
    arguments = parser.parse_args()
    if not arguments.connect or not arguments.name:
        parser.error("--connect and --name are needed; the orchestrator gives them")
    if arguments.parent:
        die_with_parent(arguments.parent)
    name_process(arguments.name)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.setswitchinterval(0.001)  # the I/O thread is not to wait long for the role's
    try:
        proof = credentials.given(arguments.credentials)
        connection = Connection(arguments.connect, proof)
        welcome = register(connection, arguments.name, proof.secret)
        run(connection, welcome, lambda w, send: make_actor(w, arguments.name, send))
    except Exception as error:
        if isinstance(error, Gone):
            print(f"temper.worker: {error}", file=sys.stderr)
        else:
            print(f"temper.worker: {one_line(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
