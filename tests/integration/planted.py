"""Roles of a run in which one thing goes wrong after a while: `plant` is the alarm that it is to raise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import temper

WELL = 70  #: Updates before it, more than the alarms about learning look back on.
RESPONSES = 16  #: Of an update.
BALANCED = 0.2  #: Seconds that an update's responses take, and its training.


class Engine(temper.Engine):
    """Two milliseconds a response. With `slow_engine` ten (more than what else there is to a response), and the last of
    three engines needs five times that. With `growing_wait` as long as the trainer needs, and after a while ten times
    that: the trainer's card waits then."""

    def __init__(self, plant: str) -> None:
        self.plant, self.answered = plant, 0
        self.seconds = {"slow_engine": 0.01, "growing_wait": BALANCED / RESPONSES}.get(plant, 0.002)
        if plant == "slow_engine" and self.role.name == "rollout-2":
            self.seconds *= 5

    def load(self, version: int, weights: object) -> None:
        pass

    def generate(self, requests: list[temper.Request]) -> Iterator[temper.Completion]:
        first = self.role.vocabulary.first
        for request in requests:
            self.answered += 1
            slow = self.plant == "growing_wait" and self.answered > WELL * RESPONSES
            time.sleep(10 * self.seconds if slow else self.seconds)
            n = min(6, request.max_new_tokens)
            yield request.done(first + np.arange(n) % 10, np.full(n, -1.0), "length")


class Trainer(temper.Trainer):
    def __init__(self, plant: str) -> None:
        self.plant, self.updates, self.began, self.held = plant, 0, time.monotonic(), None

    def update(self, batch: temper.Batch) -> dict[str, float]:
        self.updates += 1
        wrong = self.updates > WELL
        if self.plant == "growing_wait":
            time.sleep(BALANCED)  # so that no card waits for long
        if wrong and self.plant == "memory_growth" and self.held is None:
            # Alarms look at memory from two minutes after the start on; an update that takes so long is one more.
            time.sleep(max(0, self.began + 130 - time.monotonic()))
            self.held = np.ones(600 << 17)
        return {
            "loss": float("nan") if wrong and self.plant == "not_finite" else 0.5,
            "entropy": 0.1 if wrong and self.plant == "entropy_collapse" else 1.0,
            "kl": 0.5 if wrong and self.plant == "kl_blow_up" else 0.01,
            "mismatch": 0.2 if wrong and self.plant == "engine_mismatch" else 0.01,
            "effective_samples": 0.3 if wrong and self.plant == "few_effective_samples" else 0.9,
        }

    def publish(self) -> dict[str, np.ndarray]:
        return {"updates": np.array([self.updates], np.int64)}

    def save(self, folder: Path) -> None:
        (folder / "updates").write_text(str(self.updates))

    def load(self, folder: Path) -> None:
        self.updates = int((folder / "updates").read_text())


class Reward(temper.Reward):
    def __init__(self, plant: str) -> None:
        self.plant, self.judged = plant, 0

    def judge(self, samples: list[temper.Sample]) -> list[float]:
        self.judged += len(samples)
        wrong = self.judged > WELL * RESPONSES
        return [0.0 if wrong and self.plant == "reward_collapse" else 1.0] * len(samples)
