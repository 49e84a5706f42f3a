"""Framing between messages and the socket: splits large bodies into pieces and limits bytes in flight.

A large body is sent in consecutive pieces. At most a window of large frames is in flight until the
receiver confirms them by `actor.taken`. Heartbeats and `actor.taken` overtake waiting messages.
"""

from __future__ import annotations

import collections

from .messages import Envelope, Heartbeat, Piece, Taken

#: Frames of at least this size count towards the window (bytes).
BULK = 64 << 10
WINDOW = 16 << 20
#: The receiver confirms at least after this many bytes.
TELL_EVERY = 1 << 20
PIECE = 1 << 20
#: A chunk of weights, with some overhead, is sent as one piece.
_WHOLE_UP_TO = PIECE + 4096

_FIRST = (Heartbeat.TAG, Taken.TAG)


def _counted(size: int) -> int:
    return size if size >= BULK else 0


class OutgoingStream:
    """Messages to send."""

    def __init__(self) -> None:
        self._first: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self._waiting: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self._offset = 0  # bytes of the first waiting message that were sent
        self._sequence = 0
        self._sent = 0
        self._taken = 0

    def push(self, tag: int, version: int, body: bytes) -> None:
        (self._first if tag in _FIRST else self._waiting).append((tag, version, body))

    def front(self) -> tuple[Envelope, bytes | memoryview] | None:
        """The next frame to send; None if nothing waits or the window is full."""
        if self._first:
            tag, version, body = self._first[0]
            return Envelope(tag, version, self._sequence + 1), body
        if not self._waiting:
            return None
        tag, version, body = self._waiting[0]
        envelope = Envelope(tag, version, self._sequence + 1)
        frame: bytes | memoryview = body
        if len(body) > _WHOLE_UP_TO:
            envelope.piece = Piece(self._offset, len(body))
            frame = memoryview(body)[self._offset : self._offset + PIECE]
        counted = _counted(len(frame))
        if counted and self._sent - self._taken + counted > WINDOW:
            return None
        return envelope, frame

    def pop(self, size: int) -> None:
        """Removes the front, a frame of `size` bytes, after it was sent."""
        self._sequence += 1
        if self._first:
            self._first.popleft()
            return
        self._sent += _counted(size)
        self._offset += size
        if self._offset == len(self._waiting[0][2]):
            self._waiting.popleft()
            self._offset = 0

    def taken(self, told: Taken) -> None:
        if not self._taken <= told.bytes <= self._sent:
            raise ValueError(
                f"the receiver confirmed {told.bytes} bytes, expected {self._taken} to {self._sent}"
            )
        self._taken = told.bytes

    def empty(self) -> bool:
        return not self._first and not self._waiting


class Reassembler:
    """Reassembles received frames into bodies."""

    def __init__(self) -> None:
        self._body = bytearray()
        self._of: Envelope | None = None
        self._taken = 0
        self._told = 0

    def add(self, envelope: Envelope, frame: bytes) -> bytes | bytearray | None:
        """Adds a frame. Returns the body if it is complete, else None.

        Raises:
            ValueError: The pieces do not fit together; the connection is then unusable.
        """
        if envelope.tag in _FIRST:
            return frame
        self._taken += _counted(len(frame))
        piece = envelope.piece
        if piece is None:
            if self._of is not None:
                raise ValueError(
                    f"message {envelope.tag} arrived before message {self._of.tag} was complete"
                )
            return frame
        first = self._of or envelope
        total = first.piece.total if first.piece else 0
        if (
            (envelope.tag, piece.total) != (first.tag, total)
            or piece.offset != len(self._body)
            or piece.offset + len(frame) > total
        ):
            raise ValueError(
                f"unexpected piece of message {envelope.tag} at byte {piece.offset} of {piece.total}: "
                f"{len(self._body)} bytes of message {first.tag} have arrived"
            )
        self._of = first
        self._body += frame
        if len(self._body) < total:
            return None
        whole, self._body, self._of = self._body, bytearray(), None
        return whole

    def to_tell(self) -> Taken | None:
        """The confirmation to send now, if one is due."""
        if self._taken - self._told < TELL_EVERY:
            return None
        self._told = self._taken
        return Taken(self._taken)
