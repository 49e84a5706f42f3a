"""One direction of a connection above its socket: bodies of any size, and nothing urgent behind them.

A large body leaves in pieces, one after the other. Large frames count: at most a window of them is on
the way until the other side says, by `actor.taken`, that they arrived. Heartbeats and `actor.taken`
itself go before all that waits.
"""

from __future__ import annotations

import collections

from .messages import Envelope, Heartbeat, Piece, Taken

#: Bodies of this size or more count into the window.
BULK = 64 << 10
WINDOW = 16 << 20
#: A receiver tells what it took at least so often.
TELL_EVERY = 1 << 20
PIECE = 1 << 20
#: A chunk of weights is a piece by itself, with some bytes around it.
_WHOLE_UP_TO = PIECE + 4096

_FIRST = (Heartbeat.TAG, Taken.TAG)


def _counted(size: int) -> int:
    return size if size >= BULK else 0


class Lane:
    """What is to be sent."""

    def __init__(self) -> None:
        self._first: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self._waiting: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self._offset = 0  # of the first that waits: what is before it was sent
        self._sequence = 0
        self._sent = 0
        self._taken = 0

    def push(self, tag: int, version: int, body: bytes) -> None:
        (self._first if tag in _FIRST else self._waiting).append((tag, version, body))

    def front(self) -> tuple[Envelope, bytes | memoryview] | None:
        """What may be sent now; None: nothing is left, or the window is full."""
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
        """The front, a frame of this size, was sent."""
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
            raise ValueError(f"{told.bytes} bytes are said to have arrived, of {self._sent} sent")
        self._taken = told.bytes

    def empty(self) -> bool:
        return not self._first and not self._waiting


class Intake:
    """What comes."""

    def __init__(self) -> None:
        self._body = bytearray()
        self._of: Envelope | None = None
        self._taken = 0
        self._told = 0

    def add(self, envelope: Envelope, frame: bytes) -> bytes | bytearray | None:
        """The body that is whole with this frame; None: its other pieces are still to come. Raises
        ValueError where pieces do not fit together; nothing that follows makes sense."""
        if envelope.tag in _FIRST:
            return frame
        self._taken += _counted(len(frame))
        piece = envelope.piece
        if piece is None:
            if self._of is not None:
                raise ValueError(f"message {envelope.tag} before {self._of.tag} was whole")
            return frame
        first = self._of or envelope
        total = first.piece.total if first.piece else 0
        if (
            (envelope.tag, piece.total) != (first.tag, total)
            or piece.offset != len(self._body)
            or piece.offset + len(frame) > total
        ):
            raise ValueError(
                f"a piece of message {envelope.tag} from byte {piece.offset} of {piece.total}, where "
                f"{len(self._body)} bytes of message {first.tag} are here"
            )
        self._of = first
        self._body += frame
        if len(self._body) < total:
            return None
        whole, self._body, self._of = self._body, bytearray(), None
        return whole

    def to_tell(self) -> Taken | None:
        """What the sender is to be told now, if anything."""
        if self._taken - self._told < TELL_EVERY:
            return None
        self._told = self._taken
        return Taken(self._taken)
