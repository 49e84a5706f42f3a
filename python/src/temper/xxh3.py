"""XXH3-64, the checksum of weights in transit, in numpy.

If the package `xxhash` is installed, it is used instead and is several times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_fast: Callable[[Any], int] | None
try:
    from xxhash import xxh3_64_intdigest as _fast
except ImportError:
    _fast = None

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_MASK = (1 << 64) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

_STRIPE, _STRIPES = (
    64,
    16,
)  # bytes of a stripe; stripes of a block, which uses the whole secret once
_BLOCK = _STRIPE * _STRIPES


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _swap64(x: int) -> int:
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def _avalanche(h: int) -> int:
    h ^= h >> 37
    h = (h * _MX1) & _MASK
    return h ^ (h >> 32)


def _avalanche64(h: int) -> int:
    h = ((h ^ (h >> 33)) * _P64_2) & _MASK
    h = ((h ^ (h >> 29)) * _P64_3) & _MASK
    return h ^ (h >> 32)


def _mix16(data: bytes, at: int, secret: int) -> int:
    return _fold(
        _u64(data, at) ^ _u64(_SECRET, secret), _u64(data, at + 8) ^ _u64(_SECRET, secret + 8)
    )


def _short(data: bytes) -> int:
    """At most 16 bytes."""
    n = len(data)
    if n > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, n - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        return _avalanche((n + _swap64(low) + high + _fold(low, high)) & _MASK)
    if n >= 4:
        h = (_u32(data, n - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        h ^= ((h << 49) | (h >> 15)) & _MASK ^ (((h << 24) | (h >> 40)) & _MASK)
        h = (h * _MX2) & _MASK
        h ^= (h >> 35) + n
        h = (h * _MX2) & _MASK
        return h ^ (h >> 28)
    if n > 0:
        combined = (data[0] << 16) | (data[n >> 1] << 24) | data[n - 1] | (n << 8)
        return _avalanche64(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _medium(data: bytes) -> int:
    """17 to 240 bytes."""
    n = len(data)
    acc = n * _P64_1
    if n <= 128:
        for i in range((n - 1) // 32 + 1):
            acc += _mix16(data, 16 * i, 32 * i) + _mix16(data, n - 16 * (i + 1), 32 * i + 16)
        return _avalanche(acc & _MASK)
    for i in range(8):
        acc += _mix16(data, 16 * i, 16 * i)
    acc = _avalanche(acc & _MASK)
    for i in range(8, n // 16):
        acc += _mix16(data, 16 * i, 16 * (i - 8) + 3)
    acc += _mix16(data, n - 16, 136 - 17)
    return _avalanche(acc & _MASK)


def _long(data: memoryview) -> int:
    """Hashes more than 240 bytes.

    What a stripe adds does not depend on those before it, so whole blocks are added up at once; only
    the scramble between two blocks is one after the other.
    """
    n = len(data)
    low32 = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    secrets = np.array(
        [[_u64(_SECRET, 8 * s + 8 * lane) for lane in range(8)] for s in range(_STRIPES)], np.uint64
    )

    def added(values: np.ndarray, keys: np.ndarray) -> np.ndarray:
        keyed: np.ndarray = values ^ keys
        swapped = values.reshape(*values.shape[:-1], 4, 2)[..., ::-1].reshape(values.shape)
        high = keyed >> shift
        keyed &= low32
        keyed *= high
        keyed += swapped
        return keyed

    acc = np.array([_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1], np.uint64)
    scramble = np.array([_u64(_SECRET, 128 + 8 * lane) for lane in range(8)], np.uint64)
    prime, by47 = np.uint64(_P32_1), np.uint64(47)
    blocks = (n - 1) // _BLOCK
    at_once = 512
    shifted = np.empty(8, np.uint64)
    for first in range(0, blocks, at_once):
        count = min(at_once, blocks - first)
        values = np.frombuffer(data, "<u8", count * _BLOCK // 8, first * _BLOCK)
        sums = added(values.reshape(count, _STRIPES, 8), secrets).sum(axis=1, dtype=np.uint64)
        for block in sums:
            np.add(acc, block, out=acc)
            np.right_shift(acc, by47, out=shifted)
            np.bitwise_xor(acc, shifted, out=acc)
            np.bitwise_xor(acc, scramble, out=acc)
            np.multiply(acc, prime, out=acc)
    stripes = (n - 1 - blocks * _BLOCK) // _STRIPE
    if stripes:
        values = np.frombuffer(data, "<u8", stripes * 8, blocks * _BLOCK).reshape(stripes, 8)
        acc += added(values, secrets[:stripes]).sum(axis=0, dtype=np.uint64)
    last = np.frombuffer(bytes(data[n - _STRIPE :]), "<u8")
    keys = np.frombuffer(_SECRET[192 - _STRIPE - 7 : 192 - 7], "<u8")
    acc += added(last, keys)
    lanes = [int(x) for x in acc]
    result = n * _P64_1
    for i in range(4):
        result += _fold(
            lanes[2 * i] ^ _u64(_SECRET, 11 + 16 * i), lanes[2 * i + 1] ^ _u64(_SECRET, 19 + 16 * i)
        )
    return _avalanche(result & _MASK)


def hash64_seeded(data: bytes, seed: int) -> int:
    """XXH3-64 of 17 to 128 bytes, with a seed."""
    n = len(data)
    if not 17 <= n <= 128:
        raise ValueError(f"{n} bytes: seeded hashes are of 17 to 128")

    def mix(at: int, secret: int) -> int:
        low = (_u64(_SECRET, secret) + seed) & _MASK
        high = (_u64(_SECRET, secret + 8) - seed) & _MASK
        return _fold(_u64(data, at) ^ low, _u64(data, at + 8) ^ high)

    acc = n * _P64_1
    for i in range((n - 1) // 32 + 1):
        acc += mix(16 * i, 32 * i) + mix(n - 16 * (i + 1), 32 * i + 16)
    return _avalanche(acc & _MASK)


def hash64_by_numpy(data: bytes | bytearray | memoryview) -> int:
    n = len(data)
    if n <= 16:
        return _short(bytes(data))
    if n <= 240:
        return _medium(bytes(data))
    return _long(memoryview(data).cast("B"))


def hash64(data: bytes | bytearray | memoryview) -> int:
    """XXH3-64 with seed 0."""
    if _fast is not None:
        return _fast(data)
    return hash64_by_numpy(data)
