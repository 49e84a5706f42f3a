"""Streams of random numbers are those of the C++ roles: the numbers here are what core/random.cpp and
actors/policy/sampler.cpp give."""

from __future__ import annotations

import pytest

from temper.randomness import Random, sampling_uniforms


def test_a_stream_is_that_of_the_same_seed_and_name_in_cpp() -> None:
    stream = Random(11, "minibatches of update 3")
    assert [stream.next() for _ in range(3)] == [
        8969262885030827573,
        4841805945016601211,
        8620073592601042397,
    ]
    long = Random(0xFEDCBA9876543210, "minibatches of update 12345678901234567890")
    assert long.next() == 907401186073472176


def test_numbers_below_a_limit_are_below_it_and_all_come() -> None:
    stream = Random(1, "numbers below a limit")
    assert {stream.below(3) for _ in range(50)} == {0, 1, 2}


def test_a_draw_depends_on_seed_response_and_position_alone() -> None:
    assert sampling_uniforms(3, [4, 5], [5, 0]).tolist() == [
        0.62062104787084038,
        0.27690014535972729,
    ]
    assert sampling_uniforms(3, [5], [0])[0] == sampling_uniforms(3, [4, 5], [5, 0])[1]


def test_a_name_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="17 to 128"):
        Random(1, "short")
