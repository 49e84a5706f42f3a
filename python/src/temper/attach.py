"""A worker that attaches to a run by itself.

It waits for the run's endpoint file and requests a slot. If the orchestrator is lost, it waits for the next one and builds its role again.
"""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import signal
import time
from collections.abc import Callable, Mapping

from . import messages as m
from .credentials import Credentials, scalars
from .errors import OrchestratorGone, RoleError
from .runtime import Actor, Applicant, OrchestratorLost, RunEnded, Send, register, run
from .transport import Connection

log = logging.getLogger("temper")

_LOOK = 0.2  # seconds between two checks for the file

#: Rank variables of launchers, each with a second variable that must be set, too. The innermost
#: launcher comes first: torchrun under srun, mpirun in an allocation.
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", ""),
    ("PMIX_RANK", ""),
    ("PMI_RANK", ""),
    ("SLURM_PROCID", ""),
    ("JOB_COMPLETION_INDEX", ""),
)


@dataclasses.dataclass(slots=True)
class Address:
    endpoint: str  #: Empty: the run has ended.
    run: str


def place_of(
    slot: str | None, role: str | None, rank: int | None, environment: Mapping[str, str]
) -> str:
    """The requested slot in the form of actor.hello: `rollout-3`, `rollout`, `#3` or `any`."""
    if slot or role:
        return slot or role or ""
    if rank is None:
        for name, beside in _RANKS:
            value = environment.get(name)
            if value is None or (beside and beside not in environment):
                continue
            if not value.isdecimal():
                raise RoleError(f"{name}: expected a rank (an integer >= 0), found {value}; give --role, --slot or --rank")
            rank = int(value)
            break
    return "any" if rank is None else f"#{rank}"


def read_address(path: pathlib.Path) -> Address | None:
    """Reads the endpoint file; None if it does not exist (yet)."""
    try:
        found = scalars(path.read_text())
    except FileNotFoundError:
        return None
    return Address(found.get("endpoint", ""), found.get("run", ""))


class _Finder:
    """Finds the current endpoint of the run."""

    def __init__(self, connect: str, proof: Credentials) -> None:
        self._file = None if "://" in connect else pathlib.Path(connect)
        self._proof = proof
        self.endpoint = connect

    def find(self, deadline: float) -> bool:
        """Waits for the endpoint until `deadline`. Returns False if the run has ended."""
        while self._file is not None:
            address = read_address(self._file)
            if address is not None:
                if not address.endpoint:
                    return False
                if address.run != self._proof.run:
                    raise RoleError(
                        f"the key {self._proof.name} belongs to run {self._proof.run}, but {self._file} "
                        f"belongs to run {address.run}; use a key of this run (`temper keys list`)"
                    )
                self.endpoint = address.endpoint
                return True
            if time.monotonic() >= deadline:
                raise OrchestratorGone(
                    f"{self._file} did not appear in time; check that the run has started and that "
                    "this host shares its file system"
                )
            time.sleep(_LOOK)
        return True

    def is_there(self) -> bool:
        address = None if self._file is None else read_address(self._file)
        return address is None or address.endpoint == self.endpoint


def serve(
    connect: str,
    proof: Credentials,
    place: str,
    patience: float,
    make: Callable[[m.Welcome, Send], Actor],
) -> None:
    """Works until the run stops this worker or ends. Other endings raise an exception."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Slurm's warning is for the orchestrator
    finder = _Finder(connect, proof)
    applicant = Applicant(attached=True, run=proof.run)
    deadline = time.monotonic() + patience
    while finder.find(deadline):
        connection = Connection(finder.endpoint, proof)
        try:
            left = max(0.0, deadline - time.monotonic())
            welcome = register(
                connection, place, proof.secret, applicant, left, still_there=finder.is_there
            )
            if welcome is None:
                connection.close(0)
                continue
            if welcome.incarnation < applicant.incarnation:
                raise RoleError(
                    f"orchestrator {welcome.incarnation} of the run is outdated: this worker knows "
                    f"orchestrator {applicant.incarnation}"
                )
            applicant.was, applicant.incarnation = welcome.name, welcome.incarnation
            # The orchestrator's clock may be on another host.
            welcome.epoch_monotonic_ns = time.monotonic_ns() - welcome.now
            grace = welcome.grace / 1e9
            run(connection, welcome, make, last=m.Left("stopped"))
            return
        except RunEnded:
            return
        except OrchestratorLost as lost:
            log.warning("waiting up to %g s for the run's next orchestrator: %s", grace, lost)
            deadline = time.monotonic() + grace
