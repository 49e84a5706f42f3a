"""The socket: a ZeroMQ DEALER that sends and receives messages of two frames.

One thread uses a connection. Everything that knows ZeroMQ is in this file.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import zmq

from . import messages
from .credentials import Credentials
from .errors import Gone
from .lane import Intake, Lane
from .wire import pack, unpack

log = logging.getLogger("temper")

#: Largest frame accepted; the orchestrator refuses larger ones by `transport.max_frame`.
MAX_FRAME = 256 << 20
#: Messages held for the orchestrator, or from it.
QUEUE = 10_000


def _set_options(socket: zmq.Socket[bytes], endpoint: str, credentials: Credentials) -> None:
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME)
    socket.setsockopt(zmq.SNDHWM, QUEUE)
    socket.setsockopt(zmq.RCVHWM, QUEUE)
    if endpoint.startswith("tcp://"):
        # Not ZeroMQ's own heartbeats: actor.heartbeat tells the same, and libzmq 4.3.4 may abort on its own.
        socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 10)
        socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, 5)
        socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, 3)
    if credentials.orchestrator_key:
        socket.setsockopt(zmq.CURVE_SERVERKEY, credentials.orchestrator_key.encode())
        socket.setsockopt(zmq.CURVE_PUBLICKEY, credentials.own_open.encode())
        socket.setsockopt(zmq.CURVE_SECRETKEY, credentials.own_secret.encode())


class Connection:
    def __init__(self, endpoint: str, credentials: Credentials) -> None:
        self.endpoint = endpoint
        self._context = zmq.Context(1)
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
        _set_options(self._socket, endpoint, credentials)
        self._socket.connect(endpoint)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._lane = Lane()
        self._intake = Intake()

    def watch(self, fd: int) -> None:
        """wait() returns when `fd` is readable, too."""
        self._poller.register(fd, zmq.POLLIN)

    def queue(self, message: Any) -> None:
        self.queue_packed(message.TAG, message.VERSION, pack(message.pack()))

    def queue_packed(self, tag: int, version: int, body: bytes) -> None:
        self._lane.push(tag, version, body)

    def flush(self) -> bool:
        """Sends what fits. True: nothing is left."""
        while (front := self._lane.front()) is not None:
            envelope, frame = front
            try:
                self._socket.send_multipart([pack(envelope.pack()), frame], zmq.DONTWAIT)
            except zmq.Again:
                return False
            self._lane.pop(len(frame))
        return self._lane.empty()

    def receive(self) -> Any | None:
        """The next message, if one is whole. What is malformed or unknown is logged and skipped.
        Raises Gone where the pieces of one do not fit together."""
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return None
            message = self._read(frames)
            if (told := self._intake.to_tell()) is not None:
                self.queue(told)
            if isinstance(message, messages.Taken):
                self._lane.taken(message)
            elif message is not None:
                return message

    def _read(self, frames: list[bytes]) -> Any | None:
        try:
            if len(frames) != 2:
                raise ValueError(f"{len(frames)} frames instead of 2")
            envelope = messages.Envelope.unpack(unpack(frames[0]))
        except ValueError as error:
            log.warning("message dropped: %s", error)
            return None
        if envelope.tag == messages.Reject.TAG:  # outside the sequence: to who is not admitted
            return messages.Reject.unpack(unpack(frames[1]))
        try:
            body = self._intake.add(envelope, frames[1])
        except ValueError as error:
            raise Gone(f"the connection is broken: {error}") from None
        if body is None:
            return None
        try:
            read = messages.UNPACK.get(envelope.tag)
            if read is None:
                raise ValueError(f"no message has the tag {envelope.tag}")
            return read(unpack(body))
        except Exception as error:
            log.warning("message dropped: %s", error)
            return None

    def wait(self, seconds: float) -> None:
        """Until a message is there, one can be sent again, or the watched descriptor is readable."""
        flags = zmq.POLLIN if self._lane.front() is None else zmq.POLLIN | zmq.POLLOUT
        self._poller.modify(self._socket, flags)
        self._poller.poll(max(0, int(seconds * 1000 + 0.999)))

    def close(self, linger: float) -> None:
        """Sends what is queued in the socket, for at most `linger` seconds, and disconnects."""
        self._socket.close(linger=max(0, int(linger * 1000)))
        self._context.term()


def wake_pair() -> int:
    """A descriptor that os.eventfd_write() makes readable."""
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
