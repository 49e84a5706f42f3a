"""Values that users' roles return: what costs one response, what ends the role, and what the error says."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import user
from test_rollout import ask, bad, finish, generated
from test_rollout import rollout as rollout
from test_training import Trainer, work
from test_training import actor as actor
from test_training import trainer as trainer

import temper
from temper import messages as m
from temper import wire
from temper.activity import ActivityLog
from temper.errors import one_line
from temper.rollout import RolloutActor
from temper.scoring import ReferenceActor, RewardActor
from temper.stores import ShmStore
from temper.tensors import TensorWriter
from temper.training import TrainerActor
from temper.weights import Weights, make_image


class BadText(Exception):
    def __str__(self) -> str:
        raise KeyError("no text")


class BadRepr:
    def __repr__(self) -> str:
        raise KeyError("no text")


def as_sent(message: Any) -> Any:
    """The message as the orchestrator reads it."""
    return type(message).unpack(wire.unpack(wire.pack(message.pack())))


# --- Rewards and their terms

Judge = Callable[[Any], m.Judged]


@pytest.fixture
def judge(sent: list[Any], activity: ActivityLog) -> Judge:
    """Lets R.judge() return a value for as many responses as it has entries, or for two."""

    class R(temper.Reward):
        gives: Any = None

        def judge(self, samples: list[temper.Sample]) -> Any:
            return type(self).gives

    def judged(gives: Any) -> m.Judged:
        R.gives = gives
        count = len(gives) if isinstance(gives, (list, tuple)) else 2
        items = [m.JudgeItem("p", "a", np.array([3], np.int32)) for _ in range(count)]
        RewardActor(user(R, "reward"), activity, sent.append).on_message(m.Judge(3, items))
        return as_sent(sent[-1])

    return judged


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"a": float("inf")}, 'R.judge(): term "a": found inf (float); expected a number from -1e18 to 1e18'),
        ({"a": -2e18}, 'term "a": found -2e+18 (float); expected a number from'),
        ({"a": None}, 'term "a": found None (NoneType); expected a number from'),
        ({"a": "0.1"}, "term \"a\": found '0.1' (str); expected a number from"),
        ({"a": np.array([0.1, 0.2])}, 'term "a": found array([0.1, 0.2]) (ndarray); expected a number from'),
        ({"a": 10**400}, "(int); expected a number from"),
        ({"a": 10**5000}, "(int); expected a number from"),
        ({"a": BadRepr()}, "(BadRepr); expected a number from"),
        ([1], "R.judge(): terms: found [1] (list); expected a mapping of names to numbers"),
        (None, "terms: found None (NoneType); expected a mapping of names to numbers"),
        ({"a": 1.0, 3: 1.0}, "R.judge(): terms: found the name 3 (int); expected 1 to 100 letters, digits and `_ - . :`"),
        ({"a/b": 1.0}, "found the name 'a/b' (str); expected 1 to 100 letters"),
        ({"a\n": 1.0}, "found the name 'a\\n' (str); expected 1 to 100 letters"),
        ({"": 1.0}, "found the name '' (str); expected 1 to 100 letters"),
        ({"a" * 101: 1.0}, "(str); expected 1 to 100 letters"),
        ({"\u00e4": 1.0}, "found the name '\u00e4' (str); expected 1 to 100 letters"),
        ({"\udcff": 1.0}, "found the name '\\udcff' (str); expected 1 to 100 letters"),
        ({f"t{i}": 1.0 for i in range(101)}, "R.judge(): terms: found 101 terms; expected at most 100"),
    ],
)  # fmt: skip
def test_invalid_terms_cost_their_response_only(judge: Judge, terms: Any, why: str) -> None:
    judged = judge([temper.Verdict(0.5, {"a": 0.25}), temper.Verdict(0.5, terms), 1.0])
    assert [i.reward for i in judged.items] == [0.5, 0.0, 1.0]
    assert [bool(i.failure) for i in judged.items] == [False, True, False]
    assert why in judged.items[1].failure
    assert list(judged.terms) == ["a"]
    np.testing.assert_array_equal(judged.terms["a"], [0.25, np.nan, np.nan])


def test_terms_may_be_any_number_and_nan_where_they_do_not_apply(judge: Judge) -> None:
    terms = {"A-z_0.9:": np.float32(0.5), "b": True, "c": float("nan"), "d": -1e18}
    judged = judge([temper.Verdict(1.0, terms)])
    assert judged.items == [m.JudgedItem(1.0, "")]
    np.testing.assert_equal(
        judged.terms, {"A-z_0.9:": [0.5], "b": [1.0], "c": [np.nan], "d": [-1e18]}
    )


def test_the_responses_of_a_call_have_100_terms_in_all(judge: Judge) -> None:
    first = temper.Verdict(1.0, {f"t{i}": 1.0 for i in range(99)})
    judged = judge([first, *(temper.Verdict(1.0, {name: 1.0}) for name in ("x", "y", "x"))])
    assert [i.failure for i in judged.items] == [
        "",
        "",
        'R.judge(): term "y": found 101 different terms in one call; expected at most 100',
        "",
    ]
    assert len(judged.terms) == 100 and "y" not in judged.terms


def test_a_response_without_a_reward_has_no_terms(judge: Judge) -> None:
    judged = judge([temper.Verdict("high", {"a": 1.0}), 1.0])
    assert "returned 'high' (str) as a reward" in judged.items[0].failure
    assert judged.terms == {}


@pytest.mark.parametrize(
    ("gives", "found"),
    [
        (None, "None (NoneType)"),
        (0.5, "0.5 (float)"),
        (np.array(0.5), "array(0.5) (ndarray)"),
        ("1", "'1' (str)"),
        ({"a": 1.0, "b": 1.0}, "{'a': 1.0, 'b': 1.0} (dict)"),
    ],
)
def test_rewards_that_are_no_list_name_class_and_method(
    judge: Judge, gives: Any, found: str
) -> None:
    with pytest.raises(temper.RoleError) as error:
        judge(gives)
    assert (
        str(error.value)
        == f"R.judge(): expected a list of rewards, one per response, found {found}"
    )


@pytest.mark.parametrize("gives", [np.ones(2), (1.0, 1.0), iter([1.0, 1.0])])
def test_rewards_may_come_in_any_sequence(judge: Judge, gives: Any) -> None:
    assert judge(gives).items == [m.JudgedItem(1.0, "")] * 2


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        (None, "M.score(): expected a list of log-probs, an array per response, found None (NoneType)"),
        ([["a", "b"]], "M.score(): result 0: expected log-probs of shape [2], one per response token, found ['a', 'b'] (list): "),
        ([[[-1.0], [-1.0, -2.0]]], "M.score(): result 0: expected log-probs of shape [2]"),
    ],
)  # fmt: skip
def test_scores_that_are_no_arrays_are_named(
    sent: list[Any], activity: ActivityLog, gives: Any, why: str
) -> None:
    cls = type("M", (temper.Reference,), {"score": lambda self, items: gives})
    actor = ReferenceActor(user(cls, "reference"), activity, sent.append)
    tokens = np.array([2, 1], np.int32)
    with pytest.raises(temper.RoleError) as error:
        actor.on_message(m.ScoreReference(1, [m.ScoreReferenceItem(tokens, tokens)]))
    assert str(error.value).startswith(why)


# --- Texts that UTF-8 cannot encode

NAME = b"caf\xe9.txt".decode(errors="surrogateescape")
SHOWN = "caf\\udce9.txt"


def test_a_returned_exception_of_any_text_fails_its_response(judge: Judge) -> None:
    judged = judge([ValueError(NAME), BadText(), ValueError(), temper.RoleError()])
    assert [i.failure for i in judged.items] == [
        f"ValueError: {SHOWN}",
        "BadText: no text, since its __str__() raised KeyError",
        "ValueError",
        "RoleError",
    ]


@pytest.mark.parametrize("why", [NAME, ValueError(NAME)])
def test_a_reason_of_any_text_fails_its_response(rollout: Any, sent: list[Any], why: Any) -> None:
    actor = rollout(bad([], [], finish="failed", why=why))
    actor.on_message(ask(1))
    finish(actor)
    [message] = [s for s in sent if isinstance(s, m.Generated)]
    assert as_sent(message).items[0].failure in (SHOWN, f"ValueError: {SHOWN}")


def test_the_error_of_a_role_keeps_its_text() -> None:
    for error in (OSError(NAME), temper.RoleError(NAME)):
        assert as_sent(m.Failed(one_line(error))).reason.endswith(SHOWN)
    assert as_sent(m.Failed(NAME)).reason == SHOWN


def test_unknown_metrics_of_any_name_are_refused_by_it(
    actor: TrainerActor, trainer: Trainer
) -> None:
    trainer.gives = {NAME: 1.0}
    with pytest.raises(temper.RoleError, match="unknown metric") as error:
        actor.on_message(work())
    assert SHOWN in as_sent(m.Failed(one_line(error.value))).reason


def test_a_tensor_of_any_name_is_left_to_the_orchestrator(tmp_path: pathlib.Path) -> None:
    tensors = TensorWriter(ShmStore(str(tmp_path), wait=0), "rollout-0").write({NAME: np.ones(1)})
    assert as_sent(m.GeneratedItem(tensors=tensors)).tensors[0].name == SHOWN


@pytest.mark.parametrize("name", [NAME, 3, None, ("layer", 1)])
def test_weights_have_names_in_utf_8(name: Any) -> None:
    with pytest.raises(temper.RoleError) as error:
        make_image({name: np.ones(1)})
    assert str(error.value) == (
        f"publish(): expected a text in UTF-8 as a tensor's name, found {name!r} ({type(name).__name__})"
    )


# --- Completions


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (ValueError(), "ValueError"),
        ("no such file", "no such file"),
        (None, ""),
    ],
)
def test_a_reason_is_a_text_or_an_exception(
    rollout: Any, sent: list[Any], given: Any, failure: str
) -> None:
    actor = rollout(bad([], [], finish="failed", why=given))
    actor.on_message(ask(1))
    finish(actor)
    assert generated(sent)[1].failure == failure


@pytest.mark.parametrize(
    "segments",
    [
        [(0, 1), (3, 2)],
        ([0, 1], [3, 2]),
        np.array([[0, 1], [3, 2]]),
        iter([temper.Segment(0, 1), (np.int64(3), np.uint8(2))]),
    ],
)
def test_segments_may_be_pairs(rollout: Any, sent: list[Any], segments: Any) -> None:
    actor = rollout(bad([2, 3, 4], [-1.0] * 3, segments=segments))
    actor.on_message(ask(1))
    finish(actor)
    assert generated(sent)[1].segments == [m.Segment(0, 1), m.Segment(3, 2)]


KNOWN = "expected one of end, length, interrupted, failed"
PAIR = "expected a pair of integers (version, tokens)"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"why": 3}, "why: found 3 (int); expected a text or an exception"),
        ({"why": ["lost"]}, "why: found ['lost'] (list); expected a text or an exception"),
        ({"finish": None}, f"finish: found None (NoneType); {KNOWN}"),
        ({"finish": "stop"}, f"finish: found 'stop' (str); {KNOWN}"),
        ({"finish": 1}, f"finish: found 1 (int); {KNOWN}"),
        ({"segments": 1}, "segments: expected a list of pairs (version, tokens), found 1 (int)"),
        ({"segments": temper.Segment(0, 2)}, "segments: expected a list of pairs (version, tokens), found Segment("),
        ({"segments": [2]}, f"segments: found 2 (int); {PAIR}"),
        ({"segments": [(0, 1, 1)]}, f"segments: found (0, 1, 1) (tuple); {PAIR}"),
        ({"segments": [(0, 2.0)]}, f"segments: found (0, 2.0) (tuple); {PAIR}"),
        ({"segments": [("0", 2)]}, f"segments: found ('0', 2) (tuple); {PAIR}"),
        ({"segments": [temper.Segment(None, 2)]}, "segments: found Segment(version=None, tokens=2) (Segment); "),  # type: ignore[arg-type]
        ({"mask": [1, None]}, "mask: found list, shape (2,) of object; expected a list of integers"),
        ({"mask": [1.0, 0.5]}, "mask: found list, shape (2,) of float64; expected a list of integers"),
        ({"mask": [[1], [0, 1]]}, "mask: found list (ValueError: "),
        ({"rewards": "ab"}, "rewards: found 'ab' (str); expected a list of numbers"),
        ({"rewards": 1.0}, "rewards: found 1.0 (float); expected a list of numbers"),
    ],
)  # fmt: skip
def test_an_argument_of_another_type_is_named(
    rollout: Any, sent: list[Any], more: dict[str, Any], why: str
) -> None:
    actor = rollout(bad([2, 3], [-1.0, -1.0], **more))
    actor.on_message(ask(1))
    with pytest.raises(temper.RoleError) as error:
        finish(actor)
    assert str(error.value).startswith(f"Mine, response 1: {why}")
    assert not generated(sent)


def test_a_tensor_that_cannot_be_read_is_named(rollout: Any) -> None:
    class OnDevice:
        def __array__(self, *args: Any, **more: Any) -> Any:
            raise RuntimeError("the tensor requires grad")

    actor = rollout(bad([2], OnDevice()))
    actor.on_message(ask(1))
    with pytest.raises(temper.RoleError) as error:
        finish(actor)
    assert str(error.value) == (
        "Mine, response 1: logprobs: found OnDevice (RuntimeError: the tensor requires grad); "
        "expected a list of numbers"
    )


def test_a_completion_of_no_request_is_named(rollout: Any) -> None:
    actor = rollout(lambda requests: [temper.Completion(None, [2], [-1.0])])  # type: ignore[arg-type]
    actor.on_message(ask(1))
    with pytest.raises(
        temper.RoleError, match=r"^Mine.generate\(\): a completion's request: expected"
    ):
        finish(actor)


@pytest.mark.parametrize(
    ("partial", "why"),
    [
        (None, "Mine.interrupt(): expected a list of completions, found None (NoneType)"),
        ([7], "Mine.interrupt(): expected request.done(...), found int"),
    ],
)
def test_what_an_interrupt_returns_is_checked(
    rollout: Any, sent: list[Any], partial: Any, why: str
) -> None:
    def never_ends(requests: list[temper.Request]) -> Any:
        while True:
            yield None

    actor = rollout(never_ends)
    actor._engine.interrupt = lambda: partial
    actor.on_message(ask(1))
    actor.work()
    actor.on_message(m.Switch(m.SwitchAction.INTERRUPT))
    assert isinstance(sent[-1], m.Switched) and sent[-1].error == why


@pytest.mark.parametrize(
    "memory", [None, temper.Memory(None), temper.Memory(-1), temper.Memory(0, float("nan")), {"device": 1}]
)  # fmt: skip
def test_memory_that_is_no_number_of_bytes_is_named(activity: ActivityLog, memory: Any) -> None:
    class Full(temper.Engine):
        def memory(self) -> Any:
            return memory

    actor = RolloutActor(user(Full, "rollout"), activity, [].append)
    with pytest.raises(temper.RoleError) as error:
        actor.on_message(m.Switch(m.SwitchAction.FREE_KV))
    assert str(error.value).startswith(
        "Full.memory(): expected temper.Memory with bytes from 0, found "
    )


def test_memory_may_be_any_number(rollout: Any, sent: list[Any]) -> None:
    actor = rollout(lambda requests: [])
    type(actor._engine).memory = lambda self: temper.Memory(np.int64(3), 2.0)  # type: ignore[arg-type]
    actor.on_message(m.Switch(m.SwitchAction.FREE_KV))
    cost = as_sent(sent[-1]).cost
    assert (cost.device_after, cost.host_after) == (3, 2)
    assert type(cost.host_after) is int


# --- Metrics and weights


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        ({"loss": None}, "loss: expected a finite number, found None (NoneType)"),
        ({"loss": "0.3"}, "loss: expected a finite number, found '0.3' (str)"),
        ({"loss": np.array([0.3, 0.2])}, "loss: expected a finite number, found array([0.3, 0.2]) (ndarray)"),
        ({"loss": [0.3]}, "loss: expected a finite number, found [0.3] (list)"),
        ({"loss": 10**400}, "loss: expected a finite number, found 1000"),
        ({"micro_batches": 2**31}, "micro_batches: expected 0 to 2147483647, found 2147483648 (int)"),
        ({"tokens": -1}, "tokens: expected 0 to 2147483647, found -1 (int)"),
        ({3: 0.3}, 'unknown metric "3"; known metrics: loss, kl'),
    ],
)  # fmt: skip
def test_a_metric_that_is_no_number_is_named(
    actor: TrainerActor, trainer: Trainer, sent: list[Any], gives: Any, why: str
) -> None:
    trainer.gives = gives
    with pytest.raises(temper.RoleError) as error:
        actor.on_message(work())
    assert str(error.value).startswith(f"Trainer.update(): {why}")
    assert not [s for s in sent if isinstance(s, m.Trained)]


@pytest.mark.parametrize("loss", [np.array(0.25), np.float32(0.25), np.array(0.25, ">f4")])
def test_a_metric_may_be_any_number(
    actor: TrainerActor, trainer: Trainer, sent: list[Any], loss: Any
) -> None:
    trainer.gives = {"loss": loss, "micro_batches": np.int64(4)}
    actor.on_message(work())
    metrics = as_sent(sent[-1]).metrics
    assert (metrics.loss, metrics.micro_batches) == (0.25, 4)
    assert type(metrics.loss) is float and type(metrics.micro_batches) is int


def test_the_loop_form_names_its_own_method(actor: TrainerActor) -> None:
    batch = actor.begin(work())
    with pytest.raises(
        temper.RoleError, match=r"^batch.publish\(\): loss: expected a finite number"
    ):
        actor.finish(work(), batch, 0, {"loss": None}, lambda: {})


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">f2", ">i8", ">i2", "<f4", "u1", "?"])
def test_weights_of_any_byte_order_are_published(dtype: str) -> None:
    given = np.array([[1, 0], [1, 1]], dtype)
    image = make_image({"w": given})
    assert Weights(image)["w"].tolist() == given.tolist()
    assert image == make_image({"w": given.astype(given.dtype.newbyteorder("<"))})


def test_weights_that_are_no_array_are_named() -> None:
    with pytest.raises(temper.RoleError, match=r"^publish\(\): tensor w: .*inhomogeneous"):
        make_image({"w": [[1.0], [2.0, 3.0]]})
