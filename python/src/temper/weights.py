"""Weights: one safetensors image per policy version.

On one machine, readers map it through /proc as a sealed memfd; otherwise it is sent in checksummed chunks.
"""

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

from .errors import NotFinite, RoleError, escaped
from .messages import WeightsChunk, WeightsHandle
from .values import shown
from .xxh3 import hash64

CHUNK = 1 << 20
_KEPT = 2
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL

_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # raw bits: numpy has no bfloat16
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items() if name != "BF16"}


class Weights(Mapping[str, np.ndarray]):
    """The tensors of a safetensors image by name, as read-only numpy views.

    A bfloat16 tensor is returned as its raw bits in uint16; `dtype(name)` tells.

    Args:
        image: The bytes of a safetensors file.

    Attributes:
        image: The bytes of the safetensors file.

    Raises:
        ValueError: At the first access, if the image is malformed.
    """

    def __init__(self, image: Any) -> None:
        self.image = memoryview(image).cast("B") if not isinstance(image, memoryview) else image
        self._tensors: dict[str, dict[str, Any]] | None = None
        self._begin = 0

    def _entries(self) -> dict[str, dict[str, Any]]:
        if self._tensors is None:
            try:
                (size,) = struct.unpack("<Q", self.image[:8])
                header = json.loads(bytes(self.image[8 : 8 + size]))
            except (struct.error, ValueError) as error:
                raise ValueError(f"the weights are not a valid safetensors image: {error}") from None
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
            raise ValueError(
                f"tensor {name}: expected one of the dtypes {', '.join(_DTYPES)}, found {entry['dtype']}"
            )
        tensor: np.ndarray = np.frombuffer(self.image[begin:end], code).reshape(entry["shape"])
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())


def _as_array(name: Any, tensor: Any) -> tuple[np.ndarray, str]:
    """Converts a tensor of numpy or torch to an array, little-endian, and its safetensors dtype."""
    if not isinstance(name, str) or escaped(name) != name:
        raise RoleError(
            f"publish(): expected a text in UTF-8 as a tensor's name, found {shown(name)}"
        )
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            import torch  # type: ignore[import-not-found]

            return tensor.contiguous().view(torch.int16).numpy().view("<u2"), "BF16"
        tensor = tensor.numpy()
    try:
        array = np.ascontiguousarray(tensor)
    except (TypeError, ValueError) as error:  # such as a ragged list
        raise RoleError(f"publish(): tensor {name}: {error}") from None
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype not in _NAMES:
        raise RoleError(
            f"publish(): tensor {name}: expected one of the dtypes {', '.join(map(str, _NAMES))}, found "
            f"{array.dtype}"
        )
    return array, _NAMES[array.dtype]


def make_image(tensors: Mapping[str, Any] | bytes) -> bytes:
    """Makes a safetensors image.

    Args:
        tensors: Tensors of numpy or torch by name; bytes are returned as they are.

    Returns:
        The bytes of a safetensors file.

    Raises:
        RoleError: A tensor has an invalid name, an unknown dtype, or values that are not finite.
    """
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
            raise NotFinite(f"publish(): tensor {name}: the values are not finite (NaN or infinity)")
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
    """The trainer's side: keeps the newest images in shared memory, or sends them in chunks."""

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
        if len(self._kept) == _KEPT:
            os.close(self._kept.popleft())
        fd = os.memfd_create(f"temper-weights-{version}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        write_all(fd, image)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        self._kept.append(fd)
        return fd


def open_shared(handle: WeightsHandle) -> memoryview:
    """Maps an image from shared memory or a file and verifies its checksum. Raises ValueError."""
    path = handle.path or f"/proc/{handle.pid}/fd/{handle.fd}"
    what = f"weights of version {handle.version} in {path}"
    try:
        return map_file(path, handle.bytes, handle.checksum)
    except OSError as error:
        raise ValueError(f"{what}: {error}; the writer has ended or released them") from None
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def map_file(path: str, size: int, checksum: int) -> memoryview:
    """Maps a file, read-only. Raises OSError, or ValueError if its size or checksum differs."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(fd).st_size
        if found != size:
            raise ValueError(f"expected {size} bytes as announced, found {found}")
        data = memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ) if size else b"")
    finally:
        os.close(fd)
    if hash64(data) != checksum:
        raise ValueError("the checksum differs from the announced one")
    return data


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Writes all bytes. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


class Assembler:
    """Assembles an image from its chunks, which may arrive in any order and repeatedly."""

    def __init__(self, handle: WeightsHandle) -> None:
        self.handle = handle
        self._image = bytearray(handle.bytes)
        self._missing = set(range(0, handle.bytes, CHUNK))

    def add(self, chunk: WeightsChunk) -> None:
        what = f"chunk at offset {chunk.offset} of weights version {chunk.version}"
        size = min(CHUNK, self.handle.bytes - chunk.offset)
        if chunk.offset % CHUNK != 0 or size <= 0 or len(chunk.data) != size:
            raise ValueError(f"{what}: unexpected offset or size ({len(chunk.data)} bytes)")
        if hash64(chunk.data) != chunk.checksum:
            raise ValueError(f"{what}: wrong checksum")
        self._image[chunk.offset : chunk.offset + size] = chunk.data
        self._missing.discard(chunk.offset)

    def complete(self) -> bool:
        return not self._missing

    def take(self) -> memoryview:
        if hash64(self._image) != self.handle.checksum:
            raise ValueError(f"weights of version {self.handle.version}: wrong checksum")
        return memoryview(self._image)
