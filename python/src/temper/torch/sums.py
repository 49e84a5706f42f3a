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


def stale_tokens(row: Row, version: int) -> np.ndarray[Any, Any]:
    """1 for each response token that an older version than `version` sampled, else 0."""
    stale = [float(s.version < version) for s in row.segments for _ in range(s.tokens)]
    return np.array(stale, np.float64)


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
    sums["stale_log_ratio"] += float((gap.abs() * tokens.stale).sum())
    sums["stale"] += float(tokens.stale.sum())
    sums["loss"] += loss
    sums["kl"] += float(losses.kl.sum())
    sums["clipped"] += float(losses.clipped.sum())
    sums["weight"] += float(losses.weight.sum())
    sums["capped"] += float(losses.capped.sum())
    sums["negative_logprob"] -= float(current.sum())
    sums["tokens"] += current.numel()
