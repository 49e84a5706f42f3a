"""Weights: a version is one safetensors image. On one machine it travels as a sealed memfd that
readers map through /proc, else as checksummed pieces."""

from __future__ import annotations

import collections
import fcntl
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .errors import RoleError
from .messages import WeightsChunk, WeightsHandle
from .xxh3 import hash64

CHUNK = 1 << 20
_KEPT = 4
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # its bits: numpy has no bfloat16
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items() if name != "BF16"}


class Weights(Mapping[str, np.ndarray]):
    """Named tensors of an image, as read-only numpy views of it; bfloat16 as its 16 bits in uint16
    (`dtype(name)` tells)."""

    def __init__(self, image: Any) -> None:
        #: The bytes of the safetensors file.
        self.image = memoryview(image).cast("B") if not isinstance(image, memoryview) else image
        self._tensors: dict[str, dict[str, Any]] | None = None
        self._begin = 0

    def _entries(self) -> dict[str, dict[str, Any]]:
        if self._tensors is None:
            try:
                (size,) = struct.unpack("<Q", self.image[:8])
                header = json.loads(bytes(self.image[8 : 8 + size]))
            except (struct.error, ValueError) as error:
                raise ValueError(f"weights are no safetensors image: {error}") from None
            header.pop("__metadata__", None)
            self._begin = 8 + size
            self._tensors = header
        return self._tensors

    def dtype(self, name: str) -> str:
        return str(self._entries()[name]["dtype"])

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries()[name]
        begin, end = (self._begin + x for x in entry["data_offsets"])
        code = _DTYPES.get(entry["dtype"])
        if code is None:
            raise ValueError(f"tensor {name}: dtype {entry['dtype']} is not known")
        tensor: np.ndarray = np.frombuffer(self.image[begin:end], code).reshape(entry["shape"])
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())


def _as_array(name: str, tensor: Any) -> tuple[np.ndarray, str]:
    """A tensor of numpy or torch, and its dtype in safetensors."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            import torch  # type: ignore[import-not-found]

            return tensor.contiguous().view(torch.int16).numpy().view("<u2"), "BF16"
        tensor = tensor.numpy()
    array = np.ascontiguousarray(tensor)
    if array.dtype not in _NAMES:
        raise RoleError(f"publish(): tensor {name} has the dtype {array.dtype}, not {set(_NAMES)}")
    return array, _NAMES[array.dtype]


def make_image(tensors: Mapping[str, Any] | bytes) -> bytes:
    """A safetensors image of named tensors; bytes are an image already."""
    if isinstance(tensors, (bytes, bytearray, memoryview)):
        return bytes(tensors)
    if not isinstance(tensors, Mapping):
        raise RoleError(
            f"publish() gave {type(tensors).__name__}: expected a mapping of names to tensors, or bytes"
        )
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    arrays = []
    offset = 0
    for name, tensor in tensors.items():
        array, dtype = _as_array(name, tensor)
        if array.dtype.kind == "f" and not np.isfinite(array.sum(dtype=np.float64)):
            raise RoleError(f"publish(): tensor {name} holds values that are not finite")
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(a.tobytes() for a in arrays)])


class Publisher:
    """A trainer's side: keeps the newest images where engines can map them."""

    def __init__(self, shared_memory: bool) -> None:
        self._shared_memory = shared_memory
        self._kept: collections.deque[int] = collections.deque()

    def publish(
        self,
        version: int,
        image: bytes,
        announce: Callable[[WeightsHandle], None],
        send: Callable[[Any], None],
    ) -> None:
        handle = WeightsHandle(version, len(image), hash64(image), 0, -1)
        if self._shared_memory:
            handle.pid = os.getpid()
            handle.fd = self._keep(version, image)
            announce(handle)
            return
        announce(handle)
        for offset in range(0, len(image), CHUNK):
            piece = image[offset : offset + CHUNK]
            send(WeightsChunk(version, offset, hash64(piece), piece))

    def _keep(self, version: int, image: bytes) -> int:
        fd = os.memfd_create(f"temper-weights-{version}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        view = memoryview(image)
        while view:
            view = view[os.write(fd, view) :]
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        self._kept.append(fd)
        if len(self._kept) > _KEPT:
            os.close(self._kept.popleft())
        return fd


def open_shared(handle: WeightsHandle) -> memoryview:
    """Maps and verifies an image that another process of this machine holds, or that is in a file."""
    path = handle.path or f"/proc/{handle.pid}/fd/{handle.fd}"
    what = f"weights of version {handle.version} in {path}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ValueError(f"{what}: {error}; the writer ended or released them") from None
    try:
        size = os.fstat(fd).st_size
        if size != handle.bytes:
            raise ValueError(f"{what}: {size} bytes, announced were {handle.bytes}")
        if size == 0:
            return memoryview(b"")
        image = memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ))
    finally:
        os.close(fd)
    if hash64(image) != handle.checksum:
        raise ValueError(f"{what}: the checksum differs from the announced one")
    return image


class Assembler:
    """Puts an image together from its pieces, in any order and repeated at will."""

    def __init__(self, handle: WeightsHandle) -> None:
        self.handle = handle
        self._image = bytearray(handle.bytes)
        self._missing = set(range(0, handle.bytes, CHUNK))

    def add(self, chunk: WeightsChunk) -> None:
        what = f"chunk at offset {chunk.offset} of weights version {chunk.version}"
        size = min(CHUNK, self.handle.bytes - chunk.offset)
        if chunk.offset % CHUNK != 0 or size <= 0 or len(chunk.data) != size:
            raise ValueError(f"{what}: no piece of {len(chunk.data)} bytes begins there")
        if hash64(chunk.data) != chunk.checksum:
            raise ValueError(f"{what}: the checksum differs")
        self._image[chunk.offset : chunk.offset + size] = chunk.data
        self._missing.discard(chunk.offset)

    def complete(self) -> bool:
        return not self._missing

    def take(self) -> memoryview:
        if hash64(self._image) != self.handle.checksum:
            raise ValueError(f"weights of version {self.handle.version}: the checksum differs")
        return memoryview(self._image)
