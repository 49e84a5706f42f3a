"""The trainer, the reference and the reward actor."""

from __future__ import annotations

import pathlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import user

import temper
from temper import messages as m
from temper.activity import ActivityLog
from temper.scoring import ReferenceActor, RewardActor, verdict
from temper.training import TrainerActor


class Trainer(temper.Trainer):
    def __init__(self) -> None:
        self.batches: list[temper.Batch] = []
        self.gives: Any = {"loss": 0.25}

    def update(self, batch: temper.Batch) -> Any:
        self.batches.append(batch)
        return self.gives

    def publish(self) -> dict[str, np.ndarray]:
        return {"w": np.full(2, len(self.batches), np.float32)}

    def save(self, folder: pathlib.Path) -> None:
        (folder / "state").write_text(str(len(self.batches)))


def item(group: int, reward: float, first: int = 4) -> m.TrainItem:
    tokens = np.array([2, 1], np.int32)
    logprobs = np.array([-1.0, -2.0], np.float32)
    return m.TrainItem(
        group, np.array([3], np.int32), tokens, logprobs, reward=reward, first_version=first
    )


def work(step: int = 5, bound: int = 2, dispatched: int = 4) -> m.Train:
    groups = [m.CertificateEntry(1, dispatched)]
    return m.Train(8, m.Certificate(step, bound, groups), [item(1, 1.0), item(1, 0.0)])


@pytest.fixture
def trainer() -> Trainer:
    return user(Trainer, "trainer", version=5)


@pytest.fixture
def actor(trainer: Trainer, sent: list[Any], activity: ActivityLog) -> TrainerActor:
    made = TrainerActor(trainer, activity, sent.append)
    made.start()
    return made


def test_an_update_is_reported_with_its_weights(actor: TrainerActor, sent: list[Any]) -> None:
    assert isinstance(sent[0], m.TrainerReady) and sent[0].weights.version == 5
    actor.on_message(work())
    done = sent[-1]
    assert isinstance(done, m.Trained)
    assert (done.lease, done.groups, done.weights.version) == (8, [1], 6)
    assert (done.metrics.loss, done.metrics.reward_mean, done.metrics.tokens) == (0.25, 0.5, 6)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (work(step=6), "expected a batch for version 5, found one for version 6"),
        (work(dispatched=2), "exceeds the bound 2"),
        (work(dispatched=5), "started with version 4, expected 5 to 5"),
    ],
)
def test_a_certificate_that_does_not_hold_trains_nothing(
    actor: TrainerActor, trainer: Trainer, wrong: m.Train, why: str
) -> None:
    with pytest.raises(temper.RoleError, match=f"certificate refused: .*{why}"):
        actor.on_message(wrong)
    assert not trainer.batches


def test_a_response_without_tokens_is_refused_by_its_number(
    actor: TrainerActor, trainer: Trainer
) -> None:
    batch = work()
    batch.items[1].id = 17
    batch.items[1].response = batch.items[1].response[:0]
    with pytest.raises(temper.RoleError, match="response 17 of group 1 has no tokens"):
        actor.on_message(batch)
    assert not trainer.batches


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        ({"loss": float("nan")}, "loss: expected a finite number, found nan"),
        ({"lose": 1.0}, 'unknown metric "lose"; known metrics: loss, kl'),
        (3, "expected a mapping of metrics by name, found int"),
    ],
)
def test_metrics_that_cannot_be_are_named(
    actor: TrainerActor, trainer: Trainer, sent: list[Any], gives: Any, why: str
) -> None:
    trainer.gives = gives
    with pytest.raises(temper.RoleError, match=why) as error:
        actor.on_message(work())
    assert isinstance(error.value, temper.NotFinite) == ("finite" in why)
    assert not [s for s in sent if isinstance(s, m.Trained)]


def test_a_checkpoint_of_another_version_is_refused(
    actor: TrainerActor, sent: list[Any], tmp_path: pathlib.Path
) -> None:
    actor.on_message(m.SaveState(5, str(tmp_path)))
    assert sent[-1] == m.StateSaved(5, "")
    assert (tmp_path / "state").read_text() == "0"
    actor.on_message(m.SaveState(7, str(tmp_path)))
    assert sent[-1].error == "cannot save version 7: the trainer is at 5"


def test_a_checkpoint_that_fails_is_said_with_its_place(
    actor: TrainerActor, sent: list[Any], tmp_path: pathlib.Path
) -> None:
    actor.on_message(m.SaveState(5, str(tmp_path / "none")))
    assert "FileNotFoundError" in sent[-1].error and "test_training.py:" in sent[-1].error


def test_a_batch_as_arrays() -> None:
    rows = [
        temper.Row(
            1,
            np.array([3], np.int32),
            np.array(r, np.int32),
            np.full(len(r), -1.0, np.float32),
            np.empty(0, np.float32),
            reward,
            np.ones(len(r), np.uint8),
            np.zeros(len(r)),
            [],
        )
        for r, reward in (([4, 1], 1.0), ([5, 6, 1], 0.0))
    ]
    batch = temper.Batch(0, 2, rows, m.Certificate())
    a = batch.arrays()
    assert a.tokens.tolist() == [[3, 4, 1, 0], [3, 5, 6, 1]]
    assert a.mask.tolist() == [[0, 1, 1, 0], [0, 1, 1, 1]]
    np.testing.assert_allclose(batch.advantages(), [0.7071, -0.7071], atol=1e-4)


# --- Reference and reward


class Reference(temper.Reference):
    gives: Any = None

    def score(self, items: list[temper.Scored]) -> Any:
        return type(self).gives


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        ([[-1.0, -1.0]] * 2, "expected 1 results, one per response, found 2"),
        ([[[-1.0, -1.0]]], r"expected log-probs of shape \[2\], one per response token, found shape \[1, 2\]"),
    ],
)
def test_scores_that_cannot_be_are_named(
    sent: list[Any], activity: ActivityLog, gives: Any, why: str
) -> None:
    cls = type("Mine", (Reference,), {"gives": gives})
    actor = ReferenceActor(user(cls, "reference"), activity, sent.append)
    tokens = np.array([2, 1], np.int32)
    with pytest.raises(temper.RoleError, match=why):
        actor.on_message(m.ScoreReference(1, [m.ScoreReferenceItem(tokens, tokens)]))


def score_with_top(gives: Any, top_k: int, sent: list[Any], activity: ActivityLog) -> None:
    """A run with `algorithm.distillation_top_k` asks a reference for the scores of two tokens."""
    reference = user(type("Mine", (Reference,), {"gives": [gives]}), "reference")
    algorithm = m.AlgorithmConfig(distillation_top_k=top_k)
    reference.role.settings = m.TrainerSettings(algorithm)
    tokens = np.array([2, 1], np.int32)
    ReferenceActor(reference, activity, sent.append).on_message(
        m.ScoreReference(1, [m.ScoreReferenceItem(tokens, tokens)])
    )


def test_top_tokens_are_sent_if_the_run_asks_for_them(
    sent: list[Any], activity: ActivityLog
) -> None:
    ids, logprobs = [[3, 4, 5], [5, 4, 3]], np.log([[0.5, 0.3, 0.1], [0.6, 0.2, 0.1]])
    scores = temper.Scores([-1.0, -2.0], ids, logprobs)
    score_with_top(scores, 3, sent, activity)
    (top,) = sent[-1].top
    assert top.ids.tolist() == [3, 4, 5, 5, 4, 3] and top.ids.dtype == np.int32
    np.testing.assert_allclose(np.exp(top.logprobs), [0.5, 0.3, 0.1, 0.6, 0.2, 0.1], rtol=1e-6)
    assert sent[-1].logprobs[0].tolist() == [-1.0, -2.0]
    score_with_top(scores, 0, sent, activity)
    assert sent[-1].top is None and sent[-1].logprobs[0].tolist() == [-1.0, -2.0]


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        ([-1.0, -2.0], "expected temper.Scores, because algorithm.distillation_top_k is 3, found"),
        (temper.Scores([-1.0], [3, 4], [[-1.0]]), r"expected top_ids of shape \[2, 3\], found shape"),
        (temper.Scores([-1.0], [[0.5]], [[-1.0]]), r"expected top_ids .*: not integers of 32 bits"),
        (temper.Scores([-1.0], [[2**40]], [[-1.0]]), "not integers of 32 bits"),
        (temper.Scores([-1.0], [[3]], "none"), r"expected top_logprobs of shape \[2, 3\], found"),
    ],
)
def test_top_tokens_that_cannot_be_are_named(
    sent: list[Any], activity: ActivityLog, gives: Any, why: str
) -> None:
    with pytest.raises(temper.RoleError, match=why):
        score_with_top(gives, 3, sent, activity)


@pytest.mark.parametrize("scores", [[-1.0], [-1.0, float("inf")], [-1e39, 0.0], [2.0, -1.0]])
def test_impossible_scores_are_left_to_the_orchestrator(
    sent: list[Any], activity: ActivityLog, scores: list[float]
) -> None:
    cls = type("Mine", (Reference,), {"gives": [scores]})
    actor = ReferenceActor(user(cls, "reference"), activity, sent.append)
    tokens = np.array([2, 1], np.int32)
    actor.on_message(m.ScoreReference(1, [m.ScoreReferenceItem(tokens, tokens)]))
    assert sent[-1].logprobs[0].size == len(scores)


@pytest.mark.parametrize(
    "given",
    [
        {"score": 1.0},
        (1.0, "good"),
        [1.0],
        "1.0",
        b"1",
        object(),
        1j,
        np.ones(2),
        {1.0},
        10**400,
        lambda: 1.0,
    ],
)
def test_a_reward_that_is_no_number_names_who_gave_it(given: Any) -> None:
    item, _ = verdict("Mine.judge()", given)
    assert item.failure.startswith("Mine.judge() returned ")
    assert type(given).__name__ in item.failure
    assert len(item.failure) < 300


@pytest.mark.parametrize("given", [1, True, 0.5, np.float32(2), np.array(3.0), Fraction(1, 2)])
def test_any_number_is_a_reward(given: Any) -> None:
    assert verdict("Mine.judge()", given) == (m.JudgedItem(float(given), ""), {})


class Reward(temper.Reward):
    def judge(self, samples: list[temper.Sample]) -> list[Any]:
        assert [s.response for s in samples] == ["12", "3", "4", "5"]
        assert samples[0].columns == {"level": 2}
        return [1, None, float("nan"), ValueError("cannot be read")]


def test_a_sample_that_cannot_be_judged_fails_alone(sent: list[Any], activity: ActivityLog) -> None:
    actor = RewardActor(user(Reward, "reward"), activity, sent.append)
    digits = [[3, 4, 1, 9], [5], [6], [7]]  # 1 ends a text
    items = [m.JudgeItem("p", "a", np.array(d, np.int32)) for d in digits]
    items[0].columns = '{"level": 2}'
    actor.on_message(m.Judge(3, items))
    judged = sent[-1]
    assert judged.lease == 3
    assert [(i.reward, bool(i.failure)) for i in judged.items] == [
        (1, False),
        (0, True),
        (pytest.approx(float("nan"), nan_ok=True), False),  # the orchestrator refuses it
        (0, True),
    ]
    assert judged.items[3].failure.startswith("ValueError: cannot be read")
