"""The rollout actor: its calls of an engine, and the results that it refuses."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from conftest import user

import temper
from temper import messages as m
from temper import wire
from temper.activity import ActivityLog
from temper.rollout import RolloutActor
from temper.weights import Publisher


class Engine(temper.Engine):
    """Answers by `make`, and notes what it was told."""

    make: Any = None

    def __init__(self) -> None:
        self.loaded: list[int] = []
        self.cancelled: list[int] = []

    def load(self, version: int, weights: temper.Weights) -> None:
        self.loaded.append(version)

    def cancel(self, ids: list[int]) -> None:
        self.cancelled += ids

    def generate(self, requests: list[temper.Request]) -> Any:
        return type(self).make(requests)


def well(requests: list[temper.Request]) -> Any:
    for r in requests:
        yield r.done([2, 1], [-1.0, -0.5])


def step_by_step(requests: list[temper.Request]) -> Any:
    for r in requests:
        yield None
        yield r.done([2], [-1.0], "length")


@pytest.fixture
def rollout(sent: list[Any], activity: ActivityLog, monkeypatch: pytest.MonkeyPatch) -> Any:
    """No time passes, so that a slow machine does not split what a generator yields."""
    monkeypatch.setattr("temper.rollout.time", types.SimpleNamespace(monotonic=lambda: 0.0))

    def make(generate: Any) -> RolloutActor:
        cls = type("Mine", (Engine,), {"make": staticmethod(generate)})
        actor = RolloutActor(user(cls, "rollout"), activity, sent.append)
        commit(actor, 0)
        sent.clear()
        return actor

    return make


def commit(actor: RolloutActor, version: int) -> None:
    image = temper.make_image({"w": np.zeros(1, np.float32)})
    handles: list[m.WeightsHandle] = []
    publisher = Publisher(True)
    publisher.publish(version, image, handles.append, lambda _: None)
    actor.on_message(m.StageWeights(handles[0]))
    actor.on_message(m.CommitWeights(version))


def ask(*ids: int, lease: int = 1, prefix: tuple[int, ...] = ()) -> m.Generate:
    items = [m.GenerateItem(i, np.array(prefix, np.int32)) for i in ids]
    return m.Generate(lease, np.array([3, 4], np.int32), items)


def finish(actor: RolloutActor) -> None:
    while actor.work():
        pass


def generated(sent: list[Any]) -> dict[int, m.GeneratedItem]:
    return {i.response: i for s in sent if isinstance(s, m.Generated) for i in s.items}


def test_responses_carry_their_lease_and_version(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(well)
    actor.on_message(ask(5, 6, lease=9))
    finish(actor)
    items = generated(sent)
    assert sorted(items) == [5, 6]
    assert items[5].lease == 9
    assert items[5].tokens.tolist() == [2, 1]
    assert items[5].segments == [m.Segment(0, 2)]
    assert items[5].finish == m.FinishReason.END


def test_an_engine_may_use_its_arrays_again(rollout: Any, sent: list[Any]) -> None:
    def reusing(requests: list[temper.Request]) -> Any:
        tokens, logprobs = np.zeros(1, np.int32), np.zeros(1, np.float32)
        for r in requests:
            tokens[0], logprobs[0] = r.id, -r.id
            yield r.done(tokens, logprobs)

    actor = rollout(reusing)
    actor.on_message(ask(7, 8))
    finish(actor)
    items = generated(sent)
    assert {n: (i.tokens.tolist(), i.logprobs.tolist()) for n, i in items.items()} == {
        7: ([7], [-7.0]),
        8: ([8], [-8.0]),
    }


def test_new_weights_wait_for_the_responses_under_way(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(step_by_step)
    actor.on_message(ask(1, 2))
    actor.work()
    commit(actor, 1)
    actor.on_message(ask(3))
    assert not [s for s in sent if isinstance(s, m.WeightsCommitted)]
    finish(actor)
    items = generated(sent)
    assert [items[i].segments[0].version for i in (1, 2, 3)] == [0, 0, 1]
    kinds = [type(s).__name__ for s in sent if not isinstance(s, m.Activity)]
    assert kinds.index("WeightsCommitted") == len(kinds) - 2


def test_cancelled_responses_are_not_reported(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(step_by_step)
    actor.on_message(ask(1, 2))
    actor.work()
    actor.on_message(m.Cancel([2]))
    finish(actor)
    assert sorted(generated(sent)) == [1]


def test_an_interrupt_hands_back_what_there_is(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(step_by_step)
    actor.on_message(ask(*range(6)))  # four at a time
    actor.work()
    actor.on_message(m.Switch(m.SwitchAction.INTERRUPT))
    assert isinstance(sent[-1], m.Switched) and sent[-1].error == ""
    items = generated(sent)
    assert sorted(items) == list(range(6))
    assert all(i.finish == m.FinishReason.INTERRUPTED and not i.tokens.size for i in items.values())
    assert not actor.work()


def test_waiting_responses_are_withdrawn_at_once(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(step_by_step)
    actor.on_message(ask(*range(6)))
    actor.work()
    actor.on_message(m.Withdraw([0, 5]))
    assert list(generated(sent)) == [5]
    finish(actor)
    assert sorted(generated(sent)) == list(range(6))


def bad(tokens: Any, logprobs: Any, **more: Any) -> Any:
    return lambda requests: [r.done(tokens, logprobs, **more) for r in requests]


@pytest.mark.parametrize(
    ("generate", "why"),
    [
        (bad([[2], [3]], [[-1.0], [-1.0]]), r"tokens: found list, shape \(2, 1\)"),
        (bad([2.5], [-1.0]), "expected a list of integers"),
        (bad("ab", [-1.0, -1.0]), "expected a list of integers"),
        (lambda requests: None, "expected an iterable of completions, found NoneType"),
        (lambda requests: [1], "expected request.done\\(...\\), found int"),
        (lambda requests: [], "ended without answering 1 of its requests, such as response 1"),
        (lambda requests: [requests[0].done([2], [-1.0])] * 2, "answered response 1 twice"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    rollout: Any, sent: list[Any], generate: Any, why: str
) -> None:
    actor = rollout(generate)
    actor.on_message(ask(1))
    with pytest.raises(temper.RoleError, match=why):
        finish(actor)
    assert not generated(sent)


@pytest.mark.parametrize(
    ("tokens", "logprobs", "more"),
    [
        ([2, 1], [-1.0], {}),
        ([2], [float("nan")], {}),
        ([2], [5.0], {}),
        ([2], [-1e39], {}),
        ([2] * 7, [-1.0] * 7, {}),
        ([14], [-1.0], {}),
        ([2], [-1.0], {"mask": [1, 0]}),
        ([2], [-1.0], {"mask": [2]}),
        ([2], [-1.0], {"rewards": [3e38]}),
        ([2], [-1.0], {"segments": [m.Segment(0, 2)]}),
        ([2], [-1.0], {"segments": [m.Segment(-1, 1)]}),
        ([2], [-1.0], {"segments": [m.Segment(0, 2**70)]}),
        ([], [], {}),
    ],
)
def test_an_impossible_value_is_left_to_the_orchestrator(
    rollout: Any, sent: list[Any], tokens: Any, logprobs: Any, more: Any
) -> None:
    actor = rollout(bad(tokens, logprobs, **more))
    actor.on_message(ask(1))
    finish(actor)
    item = generated(sent)[1]
    assert item.tokens.tolist() == tokens
    assert item.logprobs.size == len(logprobs)
    assert m.Generated.unpack(wire.unpack(wire.pack(m.Generated([item]).pack()))).items


@pytest.mark.parametrize("token", [2**31, 2**32 + 5, 2**63, -(2**31) - 1])
def test_a_token_id_beyond_32_bits_does_not_become_a_possible_one(
    rollout: Any, sent: list[Any], token: int
) -> None:
    actor = rollout(bad(np.array([token]), [-1.0]))
    actor.on_message(ask(1))
    finish(actor)
    assert generated(sent)[1].tokens.tolist() == [2**31 - 1]


@pytest.mark.parametrize("mask", [256, -1, 1 << 40])
def test_a_mask_beyond_8_bits_does_not_become_a_possible_one(
    rollout: Any, sent: list[Any], mask: int
) -> None:
    actor = rollout(bad([2], [-1.0], mask=[mask]))
    actor.on_message(ask(1))
    finish(actor)
    assert generated(sent)[1].mask.tolist() == [255]


def test_a_failed_response_says_why(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(bad([], [], finish="failed", why="the environment is gone"))
    actor.on_message(ask(1))
    finish(actor)
    item = generated(sent)[1]
    assert (item.finish, item.failure) == (m.FinishReason.FAILED, "the environment is gone")


def test_weights_that_were_not_staged_are_refused(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(well)
    actor.on_message(m.CommitWeights(4))
    assert sent[-1].error == "version 4 was not staged"
