"""How a batch becomes a loss. The columns of the algorithm come with the settings, which the orchestrator resolved
from its table (docs/algorithms.md): nothing about one algorithm is said here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch

from ..errors import RoleError
from ..messages import (
    AdvantageMean,
    AdvantageStd,
    AlgorithmConfig,
    Averaging,
    Objective,
    RatioLevel,
    WeightMode,
)
from ..roles import Row

_COLUMNS = (
    "objective",
    "advantage_mean",
    "advantage_std",
    "ratio",
    "average",
    "clip_low",
    "clip_high",
    "behaviour_weight_cap",
    "behaviour_weight_mode",
    "overlong_buffer",
)


def check_written_out(a: AlgorithmConfig) -> AlgorithmConfig:
    """Raises RoleError where a column is left to the table."""
    missing = [name for name in _COLUMNS if getattr(a, name) is None]
    if missing:
        raise RoleError(
            f"settings of the algorithm without {', '.join(missing)}: the orchestrator writes them out"
        )
    return a


def needs_proximal(a: AlgorithmConfig) -> bool:
    """Whether losses need the log-probs under the weights before the update's first minibatch."""
    return a.objective in (Objective.NAIVE, Objective.DECOUPLED, Objective.TIS)


def shaped_reward(row: Row, a: AlgorithmConfig, longest_response: int) -> float:
    buffer = a.overlong_buffer or 0
    if buffer <= 0:
        return row.reward
    share = (row.response.size - (longest_response - buffer)) / buffer
    return row.reward - a.overlong_penalty * min(max(share, 0.0), 1.0)


def advantages(rows: Sequence[Row], a: AlgorithmConfig, longest_response: int) -> list[float]:
    """Per row; every token of its response has it."""
    values = [shaped_reward(row, a, longest_response) for row in rows]
    groups: dict[int, list[float]] = {}
    for row, value in zip(rows, values):
        groups.setdefault(row.group, []).append(value)
    mean = sum(values) / max(1, len(values))
    means = {group: sum(of) / len(of) for group, of in groups.items()}
    deviations = {
        g: math.sqrt(sum((v - means[g]) ** 2 for v in of) / len(of)) for g, of in groups.items()
    }
    by_group = a.advantage_mean in (AdvantageMean.GROUP, AdvantageMean.LEAVE_ONE_OUT)
    around = [means[row.group] if by_group else mean for row in rows]
    deviation = math.sqrt(sum((v - m) ** 2 for v, m in zip(values, around)) / max(1, len(values)))

    def above(row: Row, value: float) -> float:
        of = groups[row.group]
        if a.advantage_mean == AdvantageMean.NONE:
            return value
        if a.advantage_mean == AdvantageMean.GROUP:
            return value - means[row.group]
        if a.advantage_mean == AdvantageMean.BATCH:
            return value - mean
        return value - (sum(of) - value) / (len(of) - 1) if len(of) > 1 else 0.0

    def scale(row: Row) -> float:
        if a.advantage_std == AdvantageStd.NONE:
            return 1.0
        within = deviations[row.group] if a.advantage_std == AdvantageStd.GROUP else deviation
        return within + a.advantage_epsilon

    out = [above(row, value) for row, value in zip(rows, values)]
    return [x / scale(row) if x else 0.0 for row, x in zip(rows, out)]


@dataclasses.dataclass(slots=True)
class Tokens:
    """The trained tokens of some responses, one after the other. Tensors have one entry per token."""

    current: torch.Tensor  #: Log-probs; the one with a graph.
    behaviour: torch.Tensor
    proximal: torch.Tensor
    reference: torch.Tensor | None
    advantage: torch.Tensor
    response: torch.Tensor  #: Index of the token's response, from 0 up.
    responses: int


@dataclasses.dataclass(slots=True)
class Losses:
    """Per token."""

    loss: torch.Tensor
    kl: torch.Tensor
    clipped: torch.Tensor
    weight: torch.Tensor
    capped: torch.Tensor


def _ratio(
    of: torch.Tensor, to: torch.Tensor, tokens: Tokens, level: RatioLevel | None
) -> torch.Tensor:
    gap = of - to
    if level == RatioLevel.TOKEN:
        return gap.exp()
    sums = torch.zeros(tokens.responses, dtype=gap.dtype, device=gap.device).index_add(
        0, tokens.response, gap
    )
    counts = torch.bincount(tokens.response, minlength=tokens.responses).clamp(min=1)
    return (sums / counts).exp()[tokens.response]


def _clip(ratio: torch.Tensor, a: AlgorithmConfig) -> torch.Tensor:
    return ratio.clamp(1 - (a.clip_low or 0), 1 + (a.clip_high or 0))


def token_losses(tokens: Tokens, a: AlgorithmConfig) -> Losses:
    """The loss of each token, not yet averaged."""
    current, advantage = tokens.current, tokens.advantage
    ones, none = (
        torch.ones_like(current.detach()),
        torch.zeros_like(current.detach(), dtype=torch.bool),
    )
    weight, clipped, capped = ones, none, none
    if a.objective in (Objective.CLIP, Objective.NAIVE, Objective.DECOUPLED, Objective.TIS):
        around = tokens.proximal if needs_proximal(a) else tokens.behaviour
        ratio = _ratio(current, around, tokens, a.ratio)
        if a.objective in (Objective.DECOUPLED, Objective.TIS):
            weight, capped = _weight(tokens, a)
        plain, limited = ratio * advantage, _clip(ratio, a).detach() * advantage
        clipped = limited < plain.detach()
        loss = -weight * torch.where(clipped, limited, plain)
    elif a.objective == Objective.CISPO:
        ratio = _ratio(current, tokens.behaviour, tokens, a.ratio).detach()
        limited = _clip(ratio, a)
        clipped, weight = limited != ratio, ones
        loss = -limited * advantage * current
    else:
        loss = -advantage * current
    kl = torch.zeros_like(ones)
    if tokens.reference is not None and a.kl > 0:
        gap = tokens.reference - current
        estimate = gap.exp() - 1 - gap
        loss = loss + a.kl * estimate
        kl = estimate.detach()
    return Losses(loss, kl, clipped, weight, capped)


def _weight(tokens: Tokens, a: AlgorithmConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """Of stale tokens: proximal over behaviour, and where it is above its cap."""
    weight = _ratio(tokens.proximal, tokens.behaviour, tokens, a.ratio)
    cap = a.behaviour_weight_cap or 0.0
    capped = weight > cap
    masks = a.objective == Objective.DECOUPLED and a.behaviour_weight_mode == WeightMode.MASK
    return torch.where(capped, torch.full_like(weight, 0.0 if masks else cap), weight), capped


def token_weight(
    a: AlgorithmConfig, of_response: int, of_minibatch: int, responses: int, longest_response: int
) -> float:
    """What a token's loss counts in its minibatch's."""
    if a.average == Averaging.TOKEN:
        return 1.0 / of_minibatch
    if a.average == Averaging.SEQUENCE:
        return 1.0 / (responses * of_response)
    return 1.0 / (responses * longest_response)
