"""Faulty roles for the tests, with every kind of error that a worker can have."""

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

    def empty(self, requests):
        return [r.done([], [], "length") for r in requests]

    def above_zero(self, requests):
        return [r.done([3], [5.0]) for r in requests]

    def unlikely(self, requests):
        return [r.done([3], [-1000.0]) for r in requests]

    def lowest(self, requests):
        return [r.done([3], [-3e38]) for r in requests]

    def outside(self, requests):
        return [r.done([10**9], [-1.0]) for r in requests]

    def negative(self, requests):
        return [r.done([-5], [-1.0]) for r in requests]

    def long(self, requests):
        return [r.done([3] * 9, [-1.0] * 9) for r in requests]

    def mask(self, requests):
        return [r.done([3], [-1.0], mask=[7]) for r in requests]

    def huge_rewards(self, requests):
        return [r.done([3], [-1.0], rewards=[3e38]) for r in requests]

    def huge_sum(self, requests):
        return [r.done([3, 4], [-1.0, -1.0], rewards=[8e17, 8e17]) for r in requests]

    def segments(self, requests):
        return [r.done([3], [-1.0], segments=[temper.Segment(0, 2)]) for r in requests]

    def future(self, requests):
        return [r.done([3], [-1.0], segments=[temper.Segment(1000, 1)]) for r in requests]

    def undecodable(self, requests):
        error = ValueError(b"caf\xe9".decode(errors="surrogateescape"))
        return [r.done([], [], "failed", why=error) for r in requests]

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


class Reward(well.Reward):
    """Gives one response, at its first call, an invalid answer."""

    def __init__(self, how):
        self.how = how

    def judge(self, samples):
        rewards = list(super().judge(samples))
        how, self.how = self.how, None
        if how:
            rewards[0] = getattr(self, how)()
        return rewards

    def infinite(self):
        return temper.Verdict(1.0, {"a": float("inf")})

    def misnamed(self):
        return temper.Verdict(1.0, {"a/b\n": 1.0})

    def undecodable(self):
        return OSError(b"caf\xe9".decode(errors="surrogateescape"))


class NanWeights(well.Trainer):
    def publish(self):
        bad = [float("nan")] if self.updates == 3 else []
        return {**super().publish(), "w": np.array([1.0, *bad], np.float32)}


class NotARole:
    pass


class CannotBeMade(temper.Engine):
    def __init__(self):
        raise RuntimeError("no GPU here")
