"""One worker without a run: the test acts as the orchestrator."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import zmq
from environment import ROOT

from temper import messages as m
from temper import worker as workers
from temper.streams import OutgoingStream, Reassembler
from temper.weights import Weights, open_shared
from temper.wire import pack, unpack

PATIENCE = 120


class Worker:
    """A worker process of this role: C++ where no engine is named, else `python -m temper.worker`."""

    def __init__(self, folder: Path, role: m.RoleConfig, program: str | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        endpoint = f"ipc://{folder}/socket"
        self._socket.bind(endpoint)
        self._outgoing, self._reassembler = OutgoingStream(), Reassembler()
        self._identity = b""
        self.log = folder / "log"
        command = [program, "actor"] if program else [sys.executable, "-m", "temper.worker"]
        credentials = folder / "credentials"
        credentials.touch(0o600)
        credentials.write_text('secret: "s"\norchestrator_key: ""\n')
        path = os.pathsep.join([str(ROOT / "python/src"), os.environ.get("PYTHONPATH", "")])
        words = ["--connect", endpoint, "--name", f"{m.RoleKind(role.kind).name.lower()}-0", "--parent", str(os.getpid()),
                 "--credentials", str(credentials)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*command, *words], stdout=log, stderr=log,
                                            env={**os.environ, "PYTHONPATH": path})
        assert isinstance(self.await_one(m.Hello), m.Hello)
        self.send(m.Welcome(1, role, time.monotonic_ns(), 200_000_000, 600_000_000_000))

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._context.destroy(linger=0)

    def send(self, message: Any) -> None:
        self._outgoing.push(message.TAG, message.VERSION, pack(message.pack()))
        self._flush()

    def _flush(self) -> None:
        while (front := self._outgoing.front()) is not None:
            envelope, frame = front
            self._socket.send_multipart([self._identity, pack(envelope.pack()), frame])
            self._outgoing.pop(len(frame))

    def await_one(self, *kinds: type) -> Any:
        """The next message of these kinds; others are passed over. What the worker says when it fails is raised."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self._flush()
            if not self._socket.poll(200):
                assert self.process.poll() is None, f"the worker ended:\n{self.log.read_text()}"
                continue
            self._identity, head, frame = self._socket.recv_multipart()
            envelope = m.Envelope.unpack(unpack(head))
            body = self._reassembler.add(envelope, frame)
            if (told := self._reassembler.to_tell()) is not None:
                self.send(told)
            if body is None:
                continue
            message = m.UNPACK[envelope.tag](unpack(body))
            if isinstance(message, m.Taken):
                self._outgoing.taken(message)
            elif isinstance(message, m.Heartbeat):
                self.send(m.Heartbeat())
            elif isinstance(message, m.Failed) and m.Failed not in kinds:
                raise AssertionError(f"the worker failed: {message.reason}\n{self.log.read_text()}")
            elif isinstance(message, kinds):
                return message
        raise AssertionError(f"no {kinds} within {PATIENCE} s:\n{self.log.read_text()}")

    @staticmethod
    def weights(handle: m.WeightsHandle) -> Weights:
        return Weights(bytes(open_shared(handle)))


class InProcess:
    """The same for a role in Python, without a process: imports of torch are paid for once."""

    def __init__(self, role: m.RoleConfig) -> None:
        self._sent: list[Any] = []
        welcome = m.Welcome(1, role, time.monotonic_ns(), 200_000_000, 600_000_000_000)
        self._actor = workers.make_actor(welcome, f"{m.RoleKind(role.kind).name.lower()}-0", self._sent.append)
        self._actor.start()

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._actor.stop()

    def send(self, message: Any) -> None:
        self._actor.on_message(message)

    def await_one(self, *kinds: type) -> Any:
        """The next message of these kinds; others are passed over."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            while self._sent:
                message = self._sent.pop(0)
                if isinstance(message, kinds):
                    return message
            self._actor.work()
        raise AssertionError(f"no {kinds} within {PATIENCE} s")

    weights = staticmethod(Worker.weights)
