"""Sums of verifiers of several kinds, and what their actor sends."""

from __future__ import annotations

import math
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import user

import temper
from temper import messages as m
from temper.errors import BrokenReward, RoleError
from temper.messages import VerifierKind, VerifierTerm
from temper.native import find_worker
from temper.scoring import RewardActor
from temper.verifier import Verifier
from temper.wire import pack

# As `temper-worker verify`, with one rule: a response is right if it equals the answer.
WORKER = """#!{python}
import struct, sys
import msgpack

def read():
    head = sys.stdin.buffer.read(4)
    return msgpack.unpackb(sys.stdin.buffer.read(struct.unpack("<I", head)[0]), strict_map_key=False) if head else None

def write(fields):
    body = msgpack.packb(fields)
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()

names = sorted(read()[16])
write({{}})
while (batch := read()) is not None:
    if any(item[3] == "die" for item in batch[1]):
        sys.exit(3)
    right = [float(item[2] == item[3]) for item in batch[1]]
    items = [{{1: r, 2: "no number" if item[3] == "?" else ""}} for r, item in zip(right, batch[1])]
    write({{2: items, 3: False, 4: {{name: right for name in names}}}})
"""


@pytest.fixture(autouse=True)
def worker(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "temper-worker"
    program.write_text(WORKER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("TEMPER_WORKER", str(program))


@pytest.fixture
def verifier() -> Iterator[Callable[..., Verifier]]:
    made: list[Verifier] = []

    def make(**terms: VerifierTerm) -> Verifier:
        made.append(user(Verifier, "reward", verifier=m.VerifierConfig(terms=terms)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def function(name: str, weight: float = 1.0) -> VerifierTerm:
    return VerifierTerm(
        VerifierKind.PYTHON, pool=1, deadline=20_000_000_000, function=name, weight=weight
    )


def exact(weight: float = 1.0) -> VerifierTerm:
    return VerifierTerm(VerifierKind.EXACT, weight=weight)


def samples(*texts: str) -> list[temper.Sample]:
    return [temper.Sample("p", "7", text, np.array([2, 3], np.int32), {}) for text in texts]


def test_terms_of_the_program_and_of_python_are_summed(verifier: Any) -> None:
    v = verifier(right=exact(2.0), brief=function("reward_functions:brief", 0.5))
    (right, wrong) = v.judge(samples("7", "8888"))
    assert (right.reward, right.terms) == (2.5, {"right": 1.0, "brief": 1.0})
    assert (wrong.reward, wrong.terms) == (0.125, {"right": 0.0, "brief": 0.25})


def test_a_term_of_weight_0_is_shown_alone(verifier: Any) -> None:
    (verdict,) = verifier(right=exact(), brief=function("reward_functions:brief", 0.0)).judge(
        samples("7")
    )
    assert (verdict.reward, verdict.terms["brief"]) == (1.0, 1.0)


def test_a_response_fails_with_any_of_its_terms(verifier: Any) -> None:
    v = verifier(right=exact(), picky=function("reward_functions:refuses_eights"))
    (right, eight, none) = v.judge(samples("7", "8", "?"))
    assert right.reward == 2.0
    assert "an eight" in str(eight)
    assert "no number" in str(none)


def test_the_program_is_replaced_if_it_ends(verifier: Any, capfd: Any) -> None:
    v = verifier(right=exact(), brief=function("reward_functions:brief"))
    (failed,) = v.judge(samples("die"))
    assert "right: temper-worker ended (exit code 3)" in str(failed)
    assert v.judge(samples("7"))[0].reward == 2.0


def test_a_term_that_never_worked_ends_the_run(verifier: Any) -> None:
    with pytest.raises(BrokenReward, match="KeyError"):
        verifier(right=exact(), bad=function("reward_functions:always_raises")).judge(
            samples("1", "2", "3")
        )


def test_a_missing_program_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.delenv("TEMPER_WORKER")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing/python3"))
    with pytest.raises(RoleError, match=r"temper-worker, which has the verifiers .* TEMPER_WORKER"):
        find_worker()


def test_the_actor_sends_each_term_and_no_number_where_it_does_not_apply(
    activity: Any, sent: list[Any]
) -> None:
    class Mine(temper.Reward):
        def judge(self, samples: list[temper.Sample]) -> list[Any]:
            return [
                temper.Verdict(3.0, {"a": 1.0, "b": 2.0}),
                temper.Verdict(1.0, {"a": 1.0}),
                None,
            ]

        def take_usage(self) -> m.JudgeUsage:
            return m.JudgeUsage(requests=4)

    actor = RewardActor(user(Mine, "reward"), activity, sent.append)
    actor.on_message(m.Judge(5, [m.JudgeItem(response=np.array([2], np.int32))] * 3))
    (judged,) = [s for s in sent if isinstance(s, m.Judged)]
    assert [i.reward for i in judged.items] == [3.0, 1.0, 0.0]
    assert judged.items[2].failure
    assert judged.terms["a"][:2] == [1.0, 1.0]
    assert judged.terms["b"][0] == 2.0
    assert math.isnan(judged.terms["b"][1])
    assert judged.usage.requests == 4
    assert m.Judged.unpack(m.Judged.unpack(judged.pack()).pack()).usage == judged.usage
    pack(judged.pack())
