"""The critic: a network that estimates the return of each token, and advantages from its values (GAE).

As in the C++ trainer: trainer/gae.hpp has the equations, trainer/torch/critic.hpp the network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..messages import AdvantageMean, AdvantageStd, AlgorithmConfig, CriticConfig
from ..roles import Row
from .algorithm import shaped_reward
from .model import padded

Array = np.ndarray[Any, Any]


def has_critic(a: AlgorithmConfig) -> bool:
    return a.advantage_mean == AdvantageMean.CRITIC


@dataclasses.dataclass(slots=True)
class Estimates:
    """Of the trained tokens of one response."""

    advantages: Array
    returns: Array  #: Targets of the critic.
    values: Array  #: Those of the critic before the step.


def token_rewards(row: Row, a: AlgorithmConfig, longest_response: int) -> Array:
    """The reward of each trained token.

    An environment's reward counts at its token, or at the last trained token before it; the rest of the response's
    reward at the last trained token.
    """
    trained = np.flatnonzero(row.mask)
    rewards = np.zeros(trained.size)
    if not trained.size:
        return rewards
    given = row.rewards.astype(np.float64)
    at = np.maximum(np.searchsorted(trained, np.arange(row.mask.size), side="right") - 1, 0)
    np.add.at(rewards, at, given)
    if a.critic.kl > 0:
        gap = row.logprobs.astype(np.float64) - row.reference.astype(np.float64)
        rewards -= a.critic.kl * gap[trained]
    rewards[-1] += shaped_reward(row, a, longest_response) - given.sum()
    return rewards


def gae(rewards: Array, values: Array, critic: CriticConfig) -> Estimates:
    """Generalized advantage estimation over the tokens of one response; the value after the last is 0."""
    advantages = np.zeros(rewards.size)
    next_value = next_advantage = 0.0
    for t in range(rewards.size - 1, -1, -1):
        delta = rewards[t] + critic.discount * next_value - values[t]
        next_advantage = delta + critic.discount * critic.gae_lambda * next_advantage
        next_value = values[t]
        advantages[t] = next_advantage
    return Estimates(advantages, advantages + values, values)


def estimates(
    rows: Sequence[Row], values: Sequence[Array], a: AlgorithmConfig, longest_response: int
) -> list[Estimates]:
    """The estimates of a batch. With `advantage_std: batch`, advantages are whitened over all its tokens."""
    found = [
        gae(token_rewards(row, a, longest_response), of, a.critic) for row, of in zip(rows, values)
    ]
    if a.advantage_std == AdvantageStd.BATCH:
        every = np.concatenate([e.advantages for e in found])
        mean, scale = every.mean(), every.std() + a.advantage_epsilon
        for e in found:
            above = e.advantages - mean
            e.advantages = np.divide(above, scale, out=np.zeros_like(above), where=above != 0)
    return found


def value_losses(
    values: torch.Tensor, before: torch.Tensor, returns: torch.Tensor, clip: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each value, and whether it was clipped."""
    plain = (values - returns).square() / 2
    if clip is None:
        return plain, torch.zeros_like(plain, dtype=torch.bool)
    within = torch.minimum(torch.maximum(values, before - clip), before + clip)
    limited = (within - returns).square() / 2
    clipped = limited.detach() > plain.detach()
    return torch.where(clipped, limited, plain), clipped


def explained_variance(found: Sequence[Estimates]) -> float:
    """1 - Var(return - value) / Var(return); 0 if all returns are equal."""
    returns = np.concatenate([e.returns for e in found])
    errors = returns - np.concatenate([e.values for e in found])
    return float(1 - errors.var() / returns.var()) if returns.var() > 0 else 0.0


class ValueModel(torch.nn.Module):
    """A causal language model with one value per position in place of logits; all values are 0 at first."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._no_split_modules = getattr(model, "_no_split_modules", None)
        self._prefix = model.base_model_prefix
        self.add_module(self._prefix, model.base_model)
        weight = next(model.parameters())
        self.score = torch.nn.Linear(
            model.config.hidden_size, 1, bias=False, device=weight.device, dtype=weight.dtype
        )
        torch.nn.init.zeros_(self.score.weight)

    def forward(self, ids: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        base = getattr(self, self._prefix)
        hidden = base(input_ids=ids, attention_mask=there, use_cache=False).last_hidden_state
        with torch.autocast(hidden.device.type, enabled=False):
            return hidden.float() @ self.score.weight.float()[0]


def response_values(
    model: ValueModel, pairs: Sequence[tuple[np.ndarray, np.ndarray]], device: torch.device
) -> torch.Tensor:
    """Values before each response token, in the shape of response_logprobs()."""
    batch = padded(pairs, device)
    values = model(batch.ids, batch.there)[:, batch.shortest_prompt - 1 : -1]
    return values.gather(1, batch.places)
