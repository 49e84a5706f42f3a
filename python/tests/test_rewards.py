"""Reward functions with TRL's signature, in their pool of processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import user

import temper
from temper import messages as m
from temper.errors import BrokenReward
from temper.verifier import Verifier


class Rewards:
    """A verifier whose verdicts are read as rewards."""

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier

    def judge(self, samples: list[temper.Sample]) -> list[Any]:
        verdicts = self.verifier.judge(samples)
        return [v.reward if isinstance(v, temper.Verdict) else v for v in verdicts]


@pytest.fixture
def functions() -> Iterator[Any]:
    made: list[Verifier] = []

    def make(function: str = "", deadline: int = 20_000_000_000, **functions: Any) -> Rewards:
        weights = functions.get("functions", {function: 1.0})
        terms = {
            name.split(":")[1] if ":" in name else name: m.VerifierTerm(
                m.VerifierKind.PYTHON, pool=2, deadline=deadline, function=name, weight=weight
            )
            for name, weight in weights.items()
        }
        made.append(user(Verifier, "reward", verifier=m.VerifierConfig(terms=terms)))
        return Rewards(made[-1])

    yield make
    for f in made:
        f.close()


def samples(*texts: str) -> list[temper.Sample]:
    return [
        temper.Sample("p", "7", text, np.array([2, 3], np.int32), {"level": i})
        for i, text in enumerate(texts)
    ]


def test_rewards_come_in_order_with_every_column(functions: Any) -> None:
    f = functions("reward_functions:right_answer")
    assert f.judge(samples("7", "8", "7")) == [1.0, 0.0, 1.0]
    assert functions("reward_functions:level").judge(samples("a", "b", "c")) == [0.0, 1.0, 2.0]


def test_functions_may_be_async_and_take_what_they_need_alone(functions: Any) -> None:
    assert functions("reward_functions:brief").judge(samples("abcd", "")) == [0.25, None]


def test_several_functions_are_summed_by_their_weights(functions: Any) -> None:
    f = functions(functions={"reward_functions:right_answer": 1.0, "reward_functions:brief": 0.5})
    assert f.judge(samples("7", "8888", "")) == [1.5, 0.125, 0.0]
    assert [v.terms for v in f.verifier.judge(samples("7", ""))] == [
        {"right_answer": 1.0, "brief": 1.0},
        {"right_answer": 0.0},
    ]


def test_a_response_that_raises_fails_alone(functions: Any) -> None:
    verdicts = functions("reward_functions:refuses_eights").judge(samples("7", "8", "7", "7"))
    assert [v for v in verdicts if not isinstance(v, Exception)] == [1.0, 1.0, 1.0]
    assert "ValueError: an eight (" in str(verdicts[1])
    assert "reward_functions.py:" in str(verdicts[1])


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("reward_functions:always_raises", r"KeyError: 'missing' \(.*reward_functions.py:\d+"),
        ("reward_functions:too_many", "rewards, one per completion, found 3"),
        ("reward_functions:not_finite", "expected a finite reward, found nan"),
        ("reward_functions:dicts", r"dicts returned {'score': 1.0} \(dict\) as a reward"),
        ("reward_functions:tuples", r"tuples returned \(1.0, 'good'\) \(tuple\) as a reward"),
        ("reward_functions:texts", r"texts returned '1.0' \(str\) as a reward"),
        ("reward_functions:one_dict", r"one_dict returned {.*} \(dict\): expected a list with"),
        ("reward_functions:one_text", r"one_text returned '10' \(str\): expected a list with"),
        ("reward_functions:one_number", r"one_number returned 1.0 \(float\): expected a list with"),
        ("reward_functions:nothing", r"nothing returned None \(NoneType\): expected a list with"),
        ("reward_functions:generator", r"\(generator\): expected a list with"),
        ("reward_functions:nested", r"nested returned \[1.0\] \(list\) as a reward"),
        ("reward_functions:none_such", "reward_functions has no none_such"),
        ("no_module:f", "no module no_module in"),
    ],
)
def test_one_that_never_worked_is_given_up_at_its_third_bad_call(
    functions: Any, function: str, why: str
) -> None:
    with pytest.raises(BrokenReward, match=why):
        functions(function).judge(samples("7", "8", "9"))


def test_bad_calls_count_across_batches_until_a_reward(functions: Any) -> None:
    f = functions("reward_functions:refuses_eights")
    for _ in range(2):
        assert "an eight" in str(f.judge(samples("8"))[0])
    with pytest.raises(BrokenReward, match="an eight"):
        f.judge(samples("8"))
    assert f.judge(samples("7")) == [1.0], "another call is allowed"
    for _ in range(5):
        assert "an eight" in str(f.judge(samples("8"))[0])


def test_one_that_never_applies_is_not_given_up(functions: Any) -> None:
    assert functions("reward_functions:never_applies").judge(samples("7", "8", "9")) == [None] * 3


def test_processes_that_end_or_hang_are_bad_calls(functions: Any) -> None:
    for text, why in [
        ("die", r"its process ended \(exit code 3\)"),
        ("hang", "no answer within 1 s"),
    ]:
        f = functions("reward_functions:misbehaves", deadline=1_000_000_000)
        with pytest.raises(BrokenReward, match=why):
            for _ in range(3):
                f.judge(samples(text))


def test_a_process_that_hangs_or_dies_is_replaced(functions: Any) -> None:
    f = functions("reward_functions:misbehaves", deadline=1_000_000_000)
    assert f.judge(samples("7", "7")) == [1.0, 1.0]
    verdicts = f.judge(samples("hang", "7"))
    assert "no answer within 1 s" in str(verdicts[0])
    assert verdicts[1] == 1.0
    verdicts = f.judge(samples("7", "die"))
    assert "its process ended (exit code 3)" in str(verdicts[1])
    assert f.judge(samples("7", "7")) == [1.0, 1.0]
