"""Roles of the tests that go wrong, in every way that a worker can."""

import os
import time

import numpy as np
import well

import temper


class Engine(well.Engine):
    """`how` after so many calls; then well, in the processes that replace it."""

    def __init__(self, how, after=2, once=None):
        super().__init__()
        self.how, self.left, self.once = how, after, once

    def generate(self, requests):
        self.left -= 1
        if self.left >= 0 or (self.once and os.path.exists(self.once)):
            yield from super().generate(requests)
            return
        if self.once:
            open(self.once, "w").close()
        yield from getattr(self, self.how)(requests)

    def raises(self, requests):
        raise KeyError("no such layer")

    def hangs(self, requests):
        time.sleep(600)
        yield

    def ends(self, requests):
        os._exit(3)

    def not_finite(self, requests):
        return [r.done([3], [float("nan")]) for r in requests]

    def shapes(self, requests):
        return [r.done([3, 4], [-1.0]) for r in requests]

    def too_many(self, requests):
        return [r.done([3], [-1.0]) for r in requests] * 2


class Trainer(well.Trainer):
    def __init__(self, how, at=3):
        super().__init__()
        self.how, self.at = how, at

    def update(self, batch):
        if batch.version == self.at:
            return getattr(self, self.how)(batch)
        return super().update(batch)

    def raises(self, batch):
        raise ValueError("shapes (3,4) and (5,6) do not fit")

    def not_finite(self, batch):
        super().update(batch)
        return {"loss": float("nan")}


class NanWeights(well.Trainer):
    def publish(self):
        bad = [float("nan")] if self.updates == 3 else []
        return {**super().publish(), "w": np.array([1.0, *bad], np.float32)}


class NotARole:
    pass


class CannotBeMade(temper.Engine):
    def __init__(self):
        raise RuntimeError("no GPU here")
