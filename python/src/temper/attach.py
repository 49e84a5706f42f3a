"""A worker that nobody of its run started: it finds the run by its endpoint file, which may appear
late, and asks for a place. When the orchestrator is lost it looks for the next one, and its class is
made anew there."""

from __future__ import annotations

import dataclasses
import logging
import pathlib
import signal
import time
from collections.abc import Callable, Mapping

from . import messages as m
from .credentials import Credentials, scalars
from .errors import Gone, RoleError
from .runtime import Actor, Applicant, Ended, Lost, Send, register, run
from .transport import Connection

log = logging.getLogger("temper")

_LOOK = 0.2  # seconds between two looks for the file

#: What launchers number their processes by, and what must be set beside it. The launcher that is
#: nearest to the process comes first: torchrun under srun, mpirun in an allocation.
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
    """As actor.hello has it: `rollout-3`, `rollout`, `#3` or `any`."""
    if slot or role:
        return slot or role or ""
    if rank is None:
        for name, beside in _RANKS:
            value = environment.get(name)
            if value is None or (beside and beside not in environment):
                continue
            if not value.isdecimal():
                raise RoleError(f"{name}={value} is no rank; give --role, --slot or --rank")
            rank = int(value)
            break
    return "any" if rank is None else f"#{rank}"


def read_address(path: pathlib.Path) -> Address | None:
    """None: it is not there (yet)."""
    try:
        found = scalars(path.read_text())
    except FileNotFoundError:
        return None
    return Address(found.get("endpoint", ""), found.get("run", ""))


class _Finder:
    """Where the run is now."""

    def __init__(self, connect: str, proof: Credentials) -> None:
        self._file = None if "://" in connect else pathlib.Path(connect)
        self._proof = proof
        self.endpoint = connect

    def find(self, deadline: float) -> bool:
        """False: the run has ended."""
        while self._file is not None:
            address = read_address(self._file)
            if address is not None:
                if not address.endpoint:
                    return False
                if address.run != self._proof.run:
                    raise RoleError(
                        f"the key {self._proof.name} is of run {self._proof.run}, but {self._file} "
                        f"is of run {address.run}"
                    )
                self.endpoint = address.endpoint
                return True
            if time.monotonic() >= deadline:
                raise Gone(
                    f"{self._file} did not appear in time; is the run there, and on a file system "
                    "that this host sees?"
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
    """Works until the run stops it or has ended. Raises what ended it else."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # of a Slurm step: it is for the orchestrator
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
                raise RoleError(f"orchestrator {welcome.incarnation} of the run has been succeeded")
            applicant.was, applicant.incarnation = welcome.name, welcome.incarnation
            # Its clock is of another host.
            welcome.epoch_monotonic_ns = time.monotonic_ns() - welcome.now
            grace = welcome.grace / 1e9
            run(connection, welcome, make, last=m.Left("stopped"))
            return
        except Ended:
            return
        except Lost as lost:
            log.warning("looking for the run's next orchestrator for %g s: %s", grace, lost)
            deadline = time.monotonic() + grace
