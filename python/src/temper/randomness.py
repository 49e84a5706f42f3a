"""The run's random number streams, bit-identical to those of the C++ roles.

A Python role with the same seed makes the same choices (core/random.hpp, actors/policy/sampler.hpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .xxh3 import hash64_seeded

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX1, _MIX2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _rotl(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


class Random:
    """xoshiro256** (Blackman and Vigna 2018).

    Args:
        seed: Seed of the run.
        stream: Name of the stream, 17 to 128 bytes.
    """

    def __init__(self, seed: int, stream: str) -> None:
        x = hash64_seeded(stream.encode(), seed)
        self._state: list[int] = []
        for _ in range(4):
            x = (x + _GOLDEN) & _MASK
            z = ((x ^ (x >> 30)) * _MIX1) & _MASK
            z = ((z ^ (z >> 27)) * _MIX2) & _MASK
            self._state.append(z ^ (z >> 31))

    def next(self) -> int:
        s = self._state
        result = (_rotl((s[1] * 5) & _MASK, 7) * 9) & _MASK
        t = (s[1] << 17) & _MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotl(s[3], 45)
        return result

    def below(self, n: int) -> int:
        """A uniform integer in [0, n)."""
        limit = (-n & _MASK) % n
        x = self.next()
        while x < limit:
            x = self.next()
        return x % n


def _mix(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX2)
    return z ^ (z >> np.uint64(31))


def sampling_uniforms(seed: int, responses: Sequence[int], positions: Sequence[int]) -> np.ndarray:
    """Uniform random numbers for sampling, independent of the order in which an engine samples.

    Args:
        seed: Seed of the run.
        responses: Response ids, length n.
        positions: Position of the token in each response, length n.

    Returns:
        Numbers in [0, 1), float64, shape [n].
    """
    golden = np.uint64(_GOLDEN)
    of_seed = _mix(np.array([(seed + _GOLDEN) & _MASK], np.uint64))
    of_response = _mix(of_seed + np.asarray(responses, np.uint64) + golden)
    bits = _mix(of_response + (np.asarray(positions, np.uint64) + np.uint64(1)) * golden)
    out: np.ndarray = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return out
