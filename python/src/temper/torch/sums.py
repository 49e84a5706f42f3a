"""Sums over the trained tokens of a step, for its metrics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..roles import Row
from .algorithm import Losses, Tokens

SUMS = (
    "ratio",
    "squared_ratio",
    "log_ratio",
    "stale_log_ratio",
    "stale",
    "loss",
    "kl",
    "clipped",
    "weight",
    "capped",
    "negative_logprob",
    "tokens",
    "critic_loss",
    "critic_clipped",
)


def token_ages(row: Row, version: int) -> np.ndarray[Any, Any]:
    """For each response token, by how many versions its sampler is older than `version`; at least 0."""
    ages = [max(version - s.version, 0) for s in row.segments for _ in range(s.tokens)]
    return np.array(ages, np.float64)


def ratio_metrics(sums: dict[str, float]) -> dict[str, float]:
    """The metrics about importance ratios, from the sums of the first minibatch."""
    tokens, stale = sums["tokens"], sums["stale"]
    squared = sums["squared_ratio"]
    effective = sums["ratio"] ** 2 / (squared * tokens) if math.isfinite(squared) else 1 / tokens
    fresh = tokens - stale
    of_fresh = sums["log_ratio"] - sums["stale_log_ratio"]
    return {
        "ratio_mean": sums["ratio"] / tokens,
        "log_ratio": sums["log_ratio"] / tokens,
        "effective_samples": effective,
        "mismatch": of_fresh / fresh if fresh else 0.0,
        "stale_ratio": sums["stale_log_ratio"] / stale if stale else 0.0,
        "stale_tokens": stale / tokens,
    }


def add_sums(sums: dict[str, float], tokens: Tokens, losses: Losses, loss: float) -> None:
    current = tokens.current.detach()
    gap = current - tokens.behaviour
    sums["ratio"] += float(gap.exp().sum())
    sums["squared_ratio"] += float((2 * gap).exp().sum())
    sums["log_ratio"] += float(gap.abs().sum())
    stale = tokens.age > 0
    sums["stale_log_ratio"] += float((gap.abs() * stale).sum())
    sums["stale"] += float(stale.sum())
    sums["loss"] += loss
    sums["kl"] += float(losses.kl.sum())
    sums["clipped"] += float(losses.clipped.sum())
    sums["weight"] += float(losses.weight.sum())
    sums["capped"] += float(losses.capped.sum())
    sums["negative_logprob"] -= float(current.sum())
    sums["tokens"] += current.numel()
