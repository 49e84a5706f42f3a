"""Correct and faulty reward functions for the tests."""

import os
import time


def right_answer(prompts, completions, completion_ids, answer, **columns):
    assert len(prompts) == len(completions) == len(completion_ids) == len(answer)
    return [1.0 if c == a else 0.0 for c, a in zip(completions, answer)]


def level(completions, level, **columns):
    return level


async def brief(completions):
    return [1 / len(c) if c else None for c in completions]


def refuses_eights(completions, **columns):
    if "8" in completions:
        raise ValueError("an eight")
    return [1.0] * len(completions)


def always_raises(completions, **columns):
    return columns["missing"]


def never_applies(completions, **columns):
    return [None] * len(completions)


def too_many(completions, **columns):
    return [1.0] * 3


def not_finite(completions, **columns):
    return [float("nan")] * len(completions)


def misbehaves(completions, **columns):
    if "hang" in completions:
        time.sleep(60)
    if "die" in completions:
        os._exit(3)
    return [1.0] * len(completions)


def dicts(completions, **columns):
    return [{"score": 1.0}] * len(completions)


def tuples(completions, **columns):
    return [(1.0, "good")] * len(completions)


def texts(completions, **columns):
    return ["1.0"] * len(completions)


def nested(completions, **columns):
    return [[1.0]] * len(completions)


def one_dict(completions, **columns):
    return dict.fromkeys(completions, 1.0)


def one_text(completions, **columns):
    return "10"


def one_number(completions, **columns):
    return 1.0


def nothing(completions, **columns):
    return None


def generator(completions, **columns):
    return (1.0 for _ in completions)


def length(completions):
    return [float(len(c)) for c in completions]
