"""The socket: a ZeroMQ DEALER that sends and receives messages of two frames.

One thread uses a connection. Everything that knows ZeroMQ is in this file.
"""

from __future__ import annotations

import collections
import logging
import os
from typing import Any

import zmq

from . import messages
from .credentials import Credentials
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
        socket.setsockopt(zmq.HEARTBEAT_IVL, 2_000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 10_000)
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
        self._waiting: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self._sequence = 0

    def watch(self, fd: int) -> None:
        """wait() returns when `fd` is readable, too."""
        self._poller.register(fd, zmq.POLLIN)

    def queue(self, message: Any) -> None:
        self.queue_packed(message.TAG, message.VERSION, pack(message.pack()))

    def queue_packed(self, tag: int, version: int, body: bytes) -> None:
        self._waiting.append((tag, version, body))

    def flush(self) -> bool:
        """Sends what fits. True: nothing is left."""
        while self._waiting:
            tag, version, body = self._waiting[0]
            head = pack(messages.Envelope(tag, version, self._sequence + 1).pack())
            try:
                self._socket.send_multipart([head, body], zmq.DONTWAIT)
            except zmq.Again:
                return False
            self._sequence += 1
            self._waiting.popleft()
        return True

    def receive(self) -> Any | None:
        """The next message, if one is there. What is malformed or unknown is logged and skipped."""
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return None
            try:
                return _read(frames)
            except Exception as error:
                log.warning("message dropped: %s", error)

    def wait(self, seconds: float) -> None:
        """Until a message is there, one can be sent again, or the watched descriptor is readable."""
        flags = zmq.POLLIN | zmq.POLLOUT if self._waiting else zmq.POLLIN
        self._poller.modify(self._socket, flags)
        self._poller.poll(max(0, int(seconds * 1000 + 0.999)))

    def close(self, linger: float) -> None:
        """Sends what is queued in the socket, for at most `linger` seconds, and disconnects."""
        self._socket.close(linger=max(0, int(linger * 1000)))
        self._context.term()


def _read(frames: list[bytes]) -> Any:
    if len(frames) != 2:
        raise ValueError(f"{len(frames)} frames instead of 2")
    envelope = messages.Envelope.unpack(unpack(frames[0]))
    read = messages.UNPACK.get(envelope.tag)
    if read is None:
        raise ValueError(f"no message has the tag {envelope.tag}")
    return read(unpack(frames[1]))


def wake_pair() -> int:
    """A descriptor that os.eventfd_write() makes readable."""
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
