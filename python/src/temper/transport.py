"""The socket: a ZeroMQ DEALER that exchanges messages of two frames.

A connection is used by one thread. Only this file uses ZeroMQ.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import zmq

from . import messages
from .credentials import Credentials
from .errors import OrchestratorGone
from .streams import OutgoingStream, Reassembler
from .wire import pack, unpack

log = logging.getLogger("temper")

#: Largest accepted frame (bytes); the orchestrator's limit is `transport.max_frame`.
MAX_FRAME = 256 << 20
#: Maximum number of queued messages per direction.
QUEUE = 10_000


def _set_options(socket: zmq.Socket[bytes], endpoint: str, credentials: Credentials) -> None:
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME)
    socket.setsockopt(zmq.SNDHWM, QUEUE)
    socket.setsockopt(zmq.RCVHWM, QUEUE)
    if endpoint.startswith("tcp://"):
        # No ZeroMQ heartbeats: actor.heartbeat has the same purpose, and libzmq 4.3.4 can abort on its own.
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
        self._outgoing = OutgoingStream()
        self._reassembler = Reassembler()

    def watch(self, fd: int) -> None:
        """Makes wait() also return when `fd` is readable."""
        self._poller.register(fd, zmq.POLLIN)

    def queue(self, message: Any) -> None:
        self.queue_packed(message.TAG, message.VERSION, pack(message.pack()))

    def queue_packed(self, tag: int, version: int, body: bytes) -> None:
        self._outgoing.push(tag, version, body)

    def flush(self) -> bool:
        """Sends as much as possible. Returns True if nothing is left."""
        while (front := self._outgoing.front()) is not None:
            envelope, frame = front
            try:
                self._socket.send_multipart([pack(envelope.pack()), frame], zmq.DONTWAIT)
            except zmq.Again:
                return False
            self._outgoing.pop(len(frame))
        return self._outgoing.empty()

    def receive(self) -> Any | None:
        """The next complete message, or None. Malformed and unknown messages are logged and skipped.

        Raises:
            OrchestratorGone: The pieces of a message do not fit together.
        """
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return None
            message = self._read(frames)
            if (told := self._reassembler.to_tell()) is not None:
                self.queue(told)
            if isinstance(message, messages.Taken):
                self._outgoing.taken(message)
            elif message is not None:
                return message

    def _read(self, frames: list[bytes]) -> Any | None:
        try:
            if len(frames) != 2:
                raise ValueError(f"expected 2 frames, found {len(frames)}")
            envelope = messages.Envelope.unpack(unpack(frames[0]))
        except ValueError as error:
            log.warning("message dropped: %s", error)
            return None
        if envelope.tag == messages.Reject.TAG:  # sent outside the sequence to rejected workers
            return messages.Reject.unpack(unpack(frames[1]))
        try:
            body = self._reassembler.add(envelope, frames[1])
        except ValueError as error:
            raise OrchestratorGone(f"the connection is broken: {error}") from None
        if body is None:
            return None
        try:
            read = messages.UNPACK.get(envelope.tag)
            if read is None:
                raise ValueError(f"unknown message tag {envelope.tag}")
            return read(unpack(body))
        except Exception as error:
            log.warning("message dropped: %s", error)
            return None

    def wait(self, seconds: float) -> None:
        """Waits until a message arrives, sending is possible again, or the watched descriptor is readable."""
        flags = zmq.POLLIN if self._outgoing.front() is None else zmq.POLLIN | zmq.POLLOUT
        self._poller.modify(self._socket, flags)
        self._poller.poll(max(0, int(seconds * 1000 + 0.999)))

    def close(self, linger: float) -> None:
        """Sends queued messages for at most `linger` seconds, then disconnects."""
        self._socket.close(linger=max(0, int(linger * 1000)))
        self._context.term()


def wake_pair() -> int:
    """Creates a descriptor that os.eventfd_write() makes readable."""
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
