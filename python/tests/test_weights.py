"""Images, shared memory, pieces and checksums."""

from __future__ import annotations

import os

import numpy as np
import pytest

from temper import messages as m
from temper.errors import NotFinite
from temper.weights import CHUNK, Assembler, Publisher, Weights, make_image, open_shared
from temper.xxh3 import hash64_by_numpy

# Of XXH3-64 with seed 0, from its own program: the first bytes of 0, 1, 2, ... modulo 251.
HASHES = {
    0: 0x2D06800538D394C2,
}


def test_checksums_are_those_of_the_library() -> None:
    xxhash = pytest.importorskip("xxhash")
    data = bytes(i % 251 for i in range(70_000))
    for size in [*range(260), 511, 512, 513, 1023, 1024, 1025, 1088, 1089, 2049, 65_536, 70_000]:
        assert hash64_by_numpy(data[:size]) == xxhash.xxh3_64_intdigest(data[:size]), size


def test_checksums_without_the_library() -> None:
    for size, expected in HASHES.items():
        assert hash64_by_numpy(bytes(i % 251 for i in range(size))) == expected


def test_an_image_is_read_back() -> None:
    tensors = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b.weight": np.array([1, 2], np.int64),
        "empty": np.empty((0, 4), np.float16),
    }
    weights = Weights(make_image(tensors))
    assert list(weights) == ["a", "b.weight", "empty"]
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(weights[name], tensor)
        assert weights[name].dtype == tensor.dtype


def test_values_that_are_not_finite_are_named() -> None:
    with pytest.raises(NotFinite, match=r"tensor w: the values are not finite"):
        make_image({"w": np.array([1.0, np.nan], np.float32)})


def test_what_is_no_image_is_said() -> None:
    with pytest.raises(ValueError, match="not a valid safetensors image"):
        list(Weights(b"synthetic weights after 3 updates"))


def test_shared_memory_is_sealed_and_checked() -> None:
    image = os.urandom(3 * CHUNK + 5)
    handles: list[m.WeightsHandle] = []
    publisher = Publisher(shared_memory=True)
    publisher.publish(7, image, handles.append, lambda _: None)
    handle = handles[0]
    assert (handle.version, handle.bytes, handle.pid) == (7, len(image), os.getpid())
    assert bytes(open_shared(handle)) == image
    with pytest.raises(PermissionError):
        os.write(handle.fd, b"x")
    handle.checksum ^= 1
    with pytest.raises(ValueError, match="checksum differs"):
        open_shared(handle)


def test_pieces_come_in_any_order_and_more_than_once() -> None:
    image = os.urandom(2 * CHUNK + 5)
    handles: list[m.WeightsHandle] = []
    pieces: list[m.WeightsChunk] = []
    Publisher(shared_memory=False).publish(3, image, handles.append, pieces.append)
    assembler = Assembler(handles[0])
    for piece in [pieces[2], pieces[0], pieces[2]]:
        assembler.add(piece)
    assert not assembler.complete()
    wrong = m.WeightsChunk(3, CHUNK, pieces[1].checksum ^ 1, pieces[1].data)
    with pytest.raises(ValueError, match="wrong checksum"):
        assembler.add(wrong)
    assembler.add(pieces[1])
    assert assembler.complete()
    assert bytes(assembler.take()) == image
