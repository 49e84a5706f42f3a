"""Process settings of a worker: name, parent, cores, memory, progress."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import time

_PR_SET_NAME = 15
_PR_SET_PDEATHSIG = 1


def _prctl(option: int, value: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))


def die_with_parent(parent: int) -> None:
    """Lets the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != parent:  # the parent ended before the call above
        raise SystemExit(f"temper.worker: the parent process {parent} has ended")


def name_process(name: str) -> None:
    """Sets the name that ps and top show."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


#: Cores of this process before pinning; a container, taskset or Slurm may have restricted them.
_CORES = sorted(os.sched_getaffinity(0))


def pin_to_cards(cards: list[int]) -> None:
    """Pins the process to cores. Card n of a host without accelerators is its n-th core."""
    if not cards:
        return
    if max(cards) >= len(_CORES):
        raise RuntimeError(
            f"card {max(cards)}: this process has only {len(_CORES)} cores (numbered from 0); lower "
            "placement.cards, or give it more cores (taskset, --cpus-per-task)"
        )
    os.sched_setaffinity(0, [_CORES[card] for card in cards])


def resident_memory() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def peak_memory() -> int:
    import resource

    return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, resident_memory())


class ProgressMeter:
    """Distinguishes a process that works or reads from disk from one that hangs.

    The work of the calling thread does not count.
    """

    _LEAST = 0.001  #: Minimum processor time (s) between two calls that counts as progress.

    def __init__(self) -> None:
        self._last = self._now()

    def has_progressed(self) -> bool:
        """Whether there was progress since the last call."""
        last, self._last = self._last, self._now()
        return self._last[0] - last[0] >= self._LEAST or self._last[1] != last[1]

    @staticmethod
    def _now() -> tuple[float, int]:
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        return time.process_time() - time.thread_time(), usage.ru_inblock + usage.ru_majflt


def host_name() -> str:
    return socket.gethostname()
