"""The rollout actor: what it asks of an engine, and what it refuses from one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import user

import temper
from temper import messages as m
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
def rollout(sent: list[Any], activity: ActivityLog) -> Any:
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
        (bad([2, 1], [-1.0]), "2 tokens but 1 log-probs"),
        (bad([2], [float("nan")]), "not finite"),
        (bad([2] * 7, [-1.0] * 7), "7 tokens, but it may get 6"),
        (bad([14], [-1.0]), "token ids are 0 to 13"),
        (bad([[2], [3]], [[-1.0], [-1.0]]), r"tokens of list, shape \(2, 1\)"),
        (bad([2.5], [-1.0]), "expected a list of integers"),
        (bad("ab", [-1.0, -1.0]), "expected a list of integers"),
        (bad([2], [-1.0], mask=[1, 0]), "1 tokens but a mask of 2"),
        (bad([2], [-1.0], segments=[m.Segment(0, 2)]), "1 tokens but segments of 2"),
        (lambda requests: None, "gave NoneType"),
        (lambda requests: [1], "gave int"),
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


def test_a_prefix_counts_towards_the_longest(rollout: Any) -> None:
    actor = rollout(bad([2, 2], [-1.0, -1.0]))
    actor.on_message(ask(1, prefix=(5, 5, 5, 5, 5)))
    with pytest.raises(temper.RoleError, match="2 tokens, but it may get 1"):
        finish(actor)


def test_weights_that_were_not_staged_are_refused(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(well)
    actor.on_message(m.CommitWeights(4))
    assert sent[-1].error == "version 4 is not what was staged"
