"""The encoding of messages: msgpack maps from field numbers to values, with arrays as raw bytes."""

from __future__ import annotations

from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

Int32Array = npt.NDArray[np.int32]
Float32Array = npt.NDArray[np.float32]
Uint8Array = npt.NDArray[np.uint8]

_I4 = np.dtype("<i4")
_F4 = np.dtype("<f4")
_U1 = np.dtype("u1")

_NO_I4 = np.empty(0, _I4)
_NO_F4 = np.empty(0, _F4)
_NO_U1 = np.empty(0, _U1)
for _none in (_NO_I4, _NO_F4, _NO_U1):
    _none.flags.writeable = False


def no_i4() -> Int32Array:
    return _NO_I4


def no_f4() -> Float32Array:
    return _NO_F4


def no_u1() -> Uint8Array:
    return _NO_U1


def i4(blob: bytes) -> Int32Array:
    return np.frombuffer(blob, _I4)


def f4(blob: bytes) -> Float32Array:
    return np.frombuffer(blob, _F4)


def u1(blob: bytes) -> Uint8Array:
    return np.frombuffer(blob, _U1)


def of_i4(values: npt.ArrayLike) -> bytes:
    return np.asarray(values, _I4).tobytes()


def of_f4(values: npt.ArrayLike) -> bytes:
    return np.asarray(values, _F4).tobytes()


def of_u1(values: npt.ArrayLike) -> bytes:
    return np.asarray(values, _U1).tobytes()


def pack(fields: dict[int, Any]) -> bytes:
    """Encodes fields; canonical and byte-identical to the C++ encoding."""
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    return packed


def unpack(body: bytes | bytearray | memoryview) -> dict[int, Any]:
    """Decodes fields. Raises ValueError if the bytes are not a msgpack map."""
    try:
        fields = msgpack.unpackb(body, raw=False, strict_map_key=False)
    except Exception as error:  # msgpack has its own exception types
        raise ValueError(f"not msgpack: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"expected a map of fields, found {type(fields).__name__}")
    return fields
