"""Bodies of any size over one connection, which urgent messages overtake."""

from __future__ import annotations

import os

import pytest

from temper import messages as m
from temper.streams import BULK, PIECE, WINDOW, OutgoingStream, Reassembler


def sent(lane: OutgoingStream) -> list[tuple[m.Envelope, bytes]]:
    """All that may be sent now."""
    out = []
    while (front := lane.front()) is not None:
        envelope, frame = front
        out.append((envelope, bytes(frame)))
        lane.pop(len(frame))
    return out


def test_a_large_body_leaves_in_pieces_and_is_whole_again() -> None:
    lane, intake = OutgoingStream(), Reassembler()
    body = os.urandom(3 * PIECE + 5000)
    lane.push(50, 1, body)
    lane.push(22, 1, b"small")
    frames = sent(lane)
    assert [e.sequence for e, _ in frames] == [1, 2, 3, 4, 5]
    assert [(e.piece.offset, e.piece.total) for e, _ in frames[:4] if e.piece] == [
        (i * PIECE, len(body)) for i in range(4)
    ]
    bodies = [intake.add(e, f) for e, f in frames]
    assert bodies[:3] == [None] * 3
    assert bytes(bodies[3] or b"") == body
    assert bodies[4] == b"small"
    told = intake.to_tell()
    assert told is not None and told.bytes == 3 * PIECE  # its last frame is below what counts
    assert lane.empty()


def test_a_chunk_of_weights_is_whole() -> None:
    lane = OutgoingStream()
    lane.push(62, 1, bytes(PIECE + 40))
    ((envelope, frame),) = sent(lane)
    assert envelope.piece is None and len(frame) == PIECE + 40


def test_heartbeats_pass_what_waits_for_the_window() -> None:
    lane = OutgoingStream()
    for _ in range(3):
        lane.push(50, 1, bytes(WINDOW // 2))
    first = sent(lane)
    assert sum(len(f) for _, f in first) == WINDOW
    assert lane.front() is None and not lane.empty()
    lane.push(m.Heartbeat.TAG, 1, b"\x80")
    assert [e.tag for e, _ in sent(lane)] == [m.Heartbeat.TAG]
    lane.taken(m.Taken(WINDOW // 2))
    assert sum(len(f) for _, f in sent(lane)) == WINDOW // 2
    assert lane.empty()


def test_small_bodies_do_not_count() -> None:
    lane = OutgoingStream()
    for _ in range(400):
        lane.push(21, 1, bytes(BULK - 1))
    assert len(sent(lane)) == 400


def test_what_cannot_be_is_refused() -> None:
    lane = OutgoingStream()
    with pytest.raises(ValueError, match="the receiver confirmed 5 bytes, expected 0 to 0"):
        lane.taken(m.Taken(5))
    intake = Reassembler()
    assert intake.add(m.Envelope(50, 1, 1, m.Piece(0, 10)), b"12345") is None
    with pytest.raises(ValueError, match="unexpected piece of message 50 at byte 6 of 10"):
        intake.add(m.Envelope(50, 1, 2, m.Piece(6, 10)), b"7890")
    with pytest.raises(ValueError, match="message 22 arrived before message 50 was complete"):
        intake.add(m.Envelope(22, 1, 2), b"x")
    assert intake.add(m.Envelope(m.Heartbeat.TAG, 1, 2), b"\x80") == b"\x80"
    assert intake.add(m.Envelope(50, 1, 3, m.Piece(5, 10)), b"67890") == b"1234567890"
