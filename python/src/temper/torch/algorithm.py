"""Advantages and losses.

The orchestrator resolves the columns of the algorithm from its table (docs/reference/algorithms.md) and sends them with
the settings, so this module has no code for particular algorithms.
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
    Decay,
    LearningRateSchedule,
    Objective,
    RatioLevel,
    WeightLevel,
    WeightMode,
)
from ..roles import Row

_COLUMNS = (
    "objective",
    "proximal",
    "advantage_mean",
    "advantage_std",
    "ratio",
    "average",
    "clip_low",
    "clip_high",
    "behaviour_weight_floor",
    "behaviour_weight_cap",
    "behaviour_weight_mode",
    "behaviour_weight_level",
    "distillation",
    "reward_weight",
    "overlong_buffer",
)


def check_written_out(a: AlgorithmConfig) -> AlgorithmConfig:
    """Returns `a`. Raises RoleError if the orchestrator did not resolve a column."""
    missing = [name for name in _COLUMNS if getattr(a, name) is None]
    schedule = a.learning_rate_schedule
    if schedule.decay != Decay.NONE and schedule.decay_steps is None:
        missing.append("learning_rate_schedule.decay_steps")
    if missing:
        raise RoleError(
            f"algorithm settings without {', '.join(missing)}: expected settings resolved by the orchestrator"
        )
    return a


def learning_rate_share(schedule: LearningRateSchedule, updates: int, untrained: int = 0) -> float:
    """The learning rate of the step after `updates` ones, divided by `algorithm.learning_rate`.

    The warm-up follows the first `untrained` steps, in which other weights are trained.
    """
    done = max(updates, untrained)
    warm = untrained + schedule.warm_up_steps
    if done < warm:
        return (done - untrained + 1) / schedule.warm_up_steps
    if schedule.decay == Decay.NONE:
        return 1.0
    assert schedule.decay_steps is not None  # check_written_out()
    steps = schedule.decay_steps - warm
    passed = min(1.0, (done - warm) / steps) if steps > 0 else 1.0
    linear = schedule.decay == Decay.LINEAR
    left = 1 - passed if linear else (1 + math.cos(math.pi * passed)) / 2
    return schedule.end + (1 - schedule.end) * left


def needs_reference(a: AlgorithmConfig) -> bool:
    """Whether losses or rewards need log-probs of the reference."""
    with_critic = a.advantage_mean == AdvantageMean.CRITIC
    return a.kl > 0 or bool(a.distillation) or (with_critic and a.critic.kl > 0)


def needs_proximal(a: AlgorithmConfig) -> bool:
    """Whether losses need log-probs under the weights before the first minibatch of the step."""
    return a.objective in (Objective.NAIVE, Objective.DECOUPLED, Objective.TIS)


def interpolated_proximal(
    current: torch.Tensor, behaviour: torch.Tensor, age: torch.Tensor
) -> torch.Tensor:
    """Estimates log-probs under the weights before the step, as linear in versions (A-3PO, 2512.06547).

    The current weights count as the version after the step.

    Args:
        current: Log-probs under the current weights, of shape [tokens].
        behaviour: Those under the weights that sampled the tokens.
        age: By how many versions these are older than the weights before the step.
    """
    return behaviour + age / (age + 1) * (current.detach() - behaviour)


def shaped_reward(row: Row, a: AlgorithmConfig, longest_response: int) -> float:
    buffer = a.overlong_buffer or 0
    if buffer <= 0:
        return row.reward
    share = (row.response.size - (longest_response - buffer)) / buffer
    return row.reward - a.overlong_penalty * min(max(share, 0.0), 1.0)


def advantages(rows: Sequence[Row], a: AlgorithmConfig, longest_response: int) -> list[float]:
    """Computes advantages.

    Args:
        rows: Responses of the batch.
        a: Algorithm without a critic, whose advantages are those of critic.py.
        longest_response: Maximum response length in tokens.

    Returns:
        Per row, the advantage of all its response tokens.
    """
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
    """The trained tokens of several responses, concatenated. Tensors have shape [tokens].

    Attributes:
        current: Log-probs (nats) under the current weights, with a gradient graph.
        behaviour: Log-probs under the weights that sampled the token.
        proximal: Log-probs under the weights before the step.
        reference: Log-probs under the reference; None without one.
        advantage: Advantage of the response of each token, from its reward; with a critic, of the token.
        age: By how many versions the token's sampler is older than the weights before the step.
        response: Index of the token's response, from 0.
        responses: Number of responses.
        top_current: Log-probs of the teacher's most likely tokens under the current weights, shape
            [tokens, top_k]; None without `distillation_top_k`.
        top_reference: Those under the teacher, of the same shape.
    """

    current: torch.Tensor
    behaviour: torch.Tensor
    proximal: torch.Tensor
    reference: torch.Tensor | None
    advantage: torch.Tensor
    age: torch.Tensor
    response: torch.Tensor
    responses: int
    top_current: torch.Tensor | None = None
    top_reference: torch.Tensor | None = None


@dataclasses.dataclass(slots=True)
class Losses:
    """Losses and statistics, each of shape [tokens].

    Attributes:
        loss: Loss, not averaged, with a gradient graph.
        kl: k3 estimate of the KL divergence to the reference; 0 without one.
        clipped: Whether the importance ratio was clipped.
        weight: Weight of stale tokens (proximal over behaviour).
        capped: Whether that weight was below its floor or above its cap.
    """

    loss: torch.Tensor
    kl: torch.Tensor
    clipped: torch.Tensor
    weight: torch.Tensor
    capped: torch.Tensor


def _ratio(
    of: torch.Tensor, to: torch.Tensor, tokens: Tokens, level: WeightLevel | None
) -> torch.Tensor:
    gap = of - to
    if level == WeightLevel.TOKEN:
        return gap.exp()
    sums = torch.zeros(tokens.responses, dtype=gap.dtype, device=gap.device).index_add(
        0, tokens.response, gap
    )
    if level == WeightLevel.GEOMETRIC:
        sums = sums / torch.bincount(tokens.response, minlength=tokens.responses).clamp(min=1)
    return sums.exp()[tokens.response]


def _level(ratio: RatioLevel | None) -> WeightLevel:
    return WeightLevel.GEOMETRIC if ratio == RatioLevel.SEQUENCE else WeightLevel.TOKEN


def _clip(ratio: torch.Tensor, a: AlgorithmConfig) -> torch.Tensor:
    return ratio.clamp(1 - (a.clip_low or 0), 1 + (a.clip_high or 0))


def _advantage(tokens: Tokens, a: AlgorithmConfig) -> torch.Tensor:
    """The advantage of each token: from its reward, and log(teacher / sampler) unless that is a loss."""
    advantage = (a.reward_weight or 0.0) * tokens.advantage
    if a.distillation and not a.distillation_top_k and tokens.reference is not None:
        advantage = advantage + a.distillation * (tokens.reference - tokens.behaviour)
    return advantage


#: Least probability of all tokens but the most likely ones; below it, float log-probs are rounding.
_LEAST_REST = 1e-6


def top_k_divergence(policy: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """The reverse KL of the policy to a teacher over its most likely tokens and all others together.

    docs/decisions/0036-reverse-kl-to-the-top-tokens-of-a-teacher.md says why it is this loss.

    Args:
        policy: Log-probs of the teacher's most likely tokens under the policy, shape [tokens, top_k].
        teacher: Those under the teacher, of the same shape.

    Returns:
        The divergence at each token.
    """
    own = policy.exp()
    rest = (1 - own.sum(1)).clamp(min=_LEAST_REST)
    of_teacher = (1 - teacher.exp().sum(1)).clamp(min=_LEAST_REST)
    return (own * (policy - teacher)).sum(1) + rest * (rest.log() - of_teacher.log())


def token_losses(tokens: Tokens, a: AlgorithmConfig) -> Losses:
    """Computes the loss of each token, not averaged."""
    current, advantage = tokens.current, _advantage(tokens, a)
    ones, none = (
        torch.ones_like(current.detach()),
        torch.zeros_like(current.detach(), dtype=torch.bool),
    )
    weight, clipped, capped = ones, none, none
    if a.objective in (Objective.CLIP, Objective.NAIVE, Objective.DECOUPLED, Objective.TIS):
        around = tokens.proximal if needs_proximal(a) else tokens.behaviour
        ratio = _ratio(current, around, tokens, _level(a.ratio))
        if a.objective in (Objective.DECOUPLED, Objective.TIS):
            weight, capped = _weight(tokens, a)
        plain, limited = ratio * advantage, _clip(ratio, a).detach() * advantage
        clipped = limited < plain.detach()
        loss = -weight * torch.where(clipped, limited, plain)
    elif a.objective == Objective.CISPO:
        ratio = _ratio(current, tokens.behaviour, tokens, _level(a.ratio)).detach()
        limited = _clip(ratio, a)
        clipped, weight = limited != ratio, ones
        loss = -limited * advantage * current
    else:
        loss = -advantage * current
    if tokens.top_current is not None and tokens.top_reference is not None:
        divergence = top_k_divergence(tokens.top_current, tokens.top_reference)
        loss = loss + (a.distillation or 0.0) * divergence
    kl = torch.zeros_like(ones)
    if tokens.reference is not None:
        gap = tokens.reference - current
        estimate = gap.exp() - 1 - gap
        if a.kl > 0:  # else infinity times 0 would be NaN
            loss = loss + a.kl * estimate
        kl = estimate.detach()
    return Losses(loss, kl, clipped, weight, capped)


def _weight(tokens: Tokens, a: AlgorithmConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """The weight of stale tokens (proximal over behaviour), and where it was outside its range."""
    weight = _ratio(tokens.proximal, tokens.behaviour, tokens, a.behaviour_weight_level)
    within = weight.clamp(a.behaviour_weight_floor, a.behaviour_weight_cap)
    capped = within != weight
    if a.objective == Objective.DECOUPLED and a.behaviour_weight_mode == WeightMode.MASK:
        within = torch.where(capped, torch.zeros_like(weight), weight)
    return within, capped


def token_weight(
    a: AlgorithmConfig, of_response: int, of_minibatch: int, responses: int, longest_response: int
) -> float:
    """The weight of a token's loss in the loss of its minibatch."""
    if a.average == Averaging.TOKEN:
        return 1.0 / of_minibatch
    if a.average == Averaging.SEQUENCE:
        return 1.0 / (responses * of_response)
    return 1.0 / (responses * longest_response)
