"""`python -m temper.worker`: runs one actor of a run with a user's class.

The orchestrator starts this program and assigns its role at registration.
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
from .errors import PERMANENT_EXIT, OrchestratorGone, RoleError, is_permanent, one_line
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
            f'engine.use "{welcome.role.engine.use}": expected a subclass of '
            f"temper.{base.__name__}"
        )
    user: Any = cls.__new__(cls)
    user.role = role  # set before __init__, which may use it
    user.__init__(**role.arguments)
    return actor(user, ActivityLog(welcome.epoch_monotonic_ns), send)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m temper.worker", description=__doc__)
    parser.add_argument(
        "--connect",
        default=os.environ.get("TEMPER_ENDPOINT"),
        help="address of the orchestrator, or RUN_DIR/endpoint",
    )
    parser.add_argument("--name", default=os.environ.get("TEMPER_NAME"), help="actor slot")
    parser.add_argument("--parent", type=int, default=0, help="end when this process (pid) ends")
    parser.add_argument("--credentials", help="file with the run's secret and keys")
    parser.add_argument("--key", help="attach with this key file from `temper keys make`")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--role", help="attach to any free slot of this role")
    place.add_argument("--slot", help="attach to this slot, e.g. rollout-3")
    place.add_argument("--rank", type=int, help="attach to the attached slot with this number, from 0")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for the run")
    arguments = parser.parse_args()
    attaches = arguments.key is not None
    if not arguments.connect or not (arguments.name or attaches):
        parser.error("expected --connect and --name (from the orchestrator), or --connect and --key")
    if arguments.parent:
        die_with_parent(arguments.parent)
    if not attaches:
        name_process(arguments.name)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.setswitchinterval(0.001)  # the I/O thread must not wait long for the role's thread
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
        registered = True  # from now on actor.failed has more detail than the exit code
        run(connection, welcome, lambda w, send: make_actor(w, arguments.name, send))
    except Exception as error:
        if isinstance(error, OrchestratorGone):
            print(f"temper.worker: {error}", file=sys.stderr)
        else:
            print(f"temper.worker: {one_line(error)}", file=sys.stderr)
        return PERMANENT_EXIT if not registered and is_permanent(error) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
