"""Several ranks of a trainer on one machine.

Rank 0 is the worker: it owns the socket, starts the other ranks (`python -m temper.torch`), and sends them calls and
rows by torch.distributed.
"""

from __future__ import annotations

import datetime
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
import torch.distributed as dist

from ..errors import RoleError, one_line
from ..process import die_with_parent, name_process
from .update import Settings, Update

_SETTINGS, _READY = "settings", "ready-"


def join(rank: int, world: int, folder: pathlib.Path, timeout: float) -> None:
    """Joins the process group: Gloo for calls and CPUs, NCCL for GPUs."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        backend,
        init_method=f"file://{folder / 'store'}",
        rank=rank,
        world_size=world,
        timeout=datetime.timedelta(seconds=timeout),
    )


class RankLost(BaseException):
    """Another rank has ended. Derives from BaseException because this rank cannot continue either."""


class Ranks:
    """Rank 0's side. With one rank, no process is started."""

    def __init__(self, count: int, timeout: float, settings: Settings) -> None:
        if count < 1:
            raise RoleError(f"ranks: expected at least 1, found {count}")
        self._others: list[subprocess.Popen[bytes]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if count > 1:
            self._folder = tempfile.TemporaryDirectory(prefix="temper-ranks-")
            self._start(count, pathlib.Path(self._folder.name), timeout, settings)
        self.own = Update(settings, 0, count)

    def _start(self, count: int, folder: pathlib.Path, timeout: float, settings: Settings) -> None:
        (folder / _SETTINGS).write_bytes(pickle.dumps(settings))
        package = str(pathlib.Path(__file__).resolve().parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        for rank in range(1, count):
            words = [str(rank), str(count), str(folder), str(timeout), str(os.getpid())]
            self._others.append(
                subprocess.Popen(
                    [sys.executable, "-m", "temper.torch", *words],
                    env={**os.environ, "PYTHONPATH": path},
                )
            )
        until = time.monotonic() + timeout
        while not all((folder / f"{_READY}{rank}").exists() for rank in range(1, count)):
            if lost := self._lost(0):
                raise RoleError(f"{lost}its message is in the log above")
            if time.monotonic() > until:
                raise RoleError(f"ranks: not all {count} ranks started within {timeout:g} s (rank_timeout)")
            time.sleep(0.05)
        join(0, count, folder, timeout)

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method on all ranks and returns the result of rank 0."""
        if not self._others:
            return getattr(self.own, method)(*arguments)
        try:
            dist.broadcast_object_list([(method, arguments)], src=0, device=torch.device("cpu"))
            return getattr(self.own, method)(*arguments)
        except RuntimeError as error:
            if lost := self._lost(1):
                raise RankLost(f"{method}: {lost}its message is in the log above") from error
            raise

    def _lost(self, patience: float) -> str:
        """Describes a rank that has ended; empty if none has."""
        for rank, other in enumerate(self._others, 1):
            try:
                status = other.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                continue
            how = f"signal {-status}" if status < 0 else f"status {status}"
            return f"rank {rank} ended with {how}: "
        return ""

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()
        for other in self._others:
            other.kill()
            other.wait()
        self._others = []
        if self._folder is not None:
            self._folder.cleanup()


def main() -> int:
    rank, world = int(sys.argv[1]), int(sys.argv[2])
    store, timeout, parent = pathlib.Path(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
    die_with_parent(parent)
    name_process(f"trainer-rank-{rank}")
    settings: Settings = pickle.loads((store / _SETTINGS).read_bytes())
    try:
        (store / f"{_READY}{rank}").touch()
        join(rank, world, store, timeout)
        update = Update(settings, rank, world)
        while True:
            told: list[Any] = [None]
            dist.broadcast_object_list(told, src=0, device=torch.device("cpu"))
            getattr(update, told[0][0])(*told[0][1])  # no name keeps the batch until the next call
    except Exception as error:
        print(f"temper.torch rank {rank}: {one_line(error)}", file=sys.stderr, flush=True)
        os._exit(1)  # immediately: the other ranks wait in a collective
