"""The verifiers of temper-worker (exact, numeric, regex, command), for a sum with others in Python.

The program `temper-worker verify` judges. It reads and writes frames: a length (4 bytes,
little-endian) and as many bytes of msgpack.
"""

from __future__ import annotations

import math
import os
import pathlib
import select
import shutil
import struct
import subprocess
import sys
import time
from typing import Any

from . import messages as m
from .errors import BrokenReward, RoleError
from .roles import Sample
from .wire import pack, unpack

#: Seconds that the program has to start, and to judge besides the deadlines of commands.
_PATIENCE = 120.0
_HEAD = struct.Struct("<I")


def find_worker() -> str:
    """The path of temper-worker: that of the orchestrator, or the one installed here.

    Raises:
        RoleError: There is none.
    """
    beside = pathlib.Path(sys.executable).parent / "temper-worker"
    found = (
        os.environ.get("TEMPER_WORKER")
        or shutil.which(str(beside))
        or shutil.which("temper-worker")
    )
    if not found:
        raise RoleError(
            "the program temper-worker, which has the verifiers exact, numeric, regex and command, is "
            f"neither {beside} nor in PATH: install Temper on this machine, or name the program in "
            "TEMPER_WORKER"
        )
    return found


class Native:
    """Terms of a sum that temper-worker judges.

    Args:
        terms: The terms by name.
    """

    def __init__(self, terms: dict[str, m.VerifierTerm]) -> None:
        self._config = pack(m.VerifierConfig(kind=m.VerifierKind.SUM, terms=terms).pack())
        self._terms = terms
        self._worker = find_worker()
        self._process = self._start()

    def judge(self, samples: list[Sample]) -> list[dict[str, float] | Exception]:
        """Per response the reward of each term, or why it failed.

        Raises:
            BrokenReward: A command has failed several times and never given a reward.
        """
        items = [{1: _text(s.prompt), 2: _text(s.answer), 3: _text(s.response)} for s in samples]
        try:
            self._write(pack({1: items}))
            judged = m.Judged.unpack(unpack(self._read(self._limit(len(samples)))))
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            why = f"{self._names()}: temper-worker {error}"
            self.close()
            self._process = self._start()
            return [RoleError(why) for _ in samples]
        if judged.gave_up:
            raise BrokenReward(next(i.failure for i in judged.items if i.failure))
        return [
            RoleError(item.failure)
            if item.failure
            else {term: rewards[i] for term, rewards in judged.terms.items()}
            for i, item in enumerate(judged.items)
        ]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _names(self) -> str:
        return ", ".join(self._terms)

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [self._worker, "verify"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        try:
            self._write(self._config)
            self._read(_PATIENCE)
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise RoleError(f"{self._names()}: {self._worker} {error}") from None
        return self._process

    def _limit(self, responses: int) -> float:
        """Seconds for a batch: the deadlines of all commands, one after another."""
        commands = [t for t in self._terms.values() if t.kind == m.VerifierKind.COMMAND]
        return _PATIENCE + sum(math.ceil(responses / t.pool) * t.deadline / 1e9 for t in commands)

    def _write(self, body: bytes) -> None:
        pipe: Any = self._process.stdin
        rest = memoryview(_HEAD.pack(len(body)) + body)
        while rest:
            rest = rest[pipe.write(rest) :]

    def _read(self, limit: float) -> bytes:
        end = time.monotonic() + limit
        (size,) = _HEAD.unpack(self._read_bytes(_HEAD.size, end, limit))
        return self._read_bytes(size, end, limit)

    def _read_bytes(self, size: int, end: float, limit: float) -> bytes:
        pipe: Any = self._process.stdout
        parts = []
        while size:
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"did not answer within {limit:g} s")
            part = pipe.read(min(size, 1 << 20))
            if not part:
                code = self._process.wait()
                raise EOFError(f"ended (exit code {code}); its last line above says why")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
