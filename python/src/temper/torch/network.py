"""A network that is trained: a model, its gradients and its AdamW, or this rank's part of them."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from ..errors import NotFinite, RoleError
from ..messages import AlgorithmConfig
from .model import bytes_of, release
from .shards import full_tensor, put_tensor


class Network:
    """Trains the parameters of a model.

    Args:
        model: The model, on its device; with several ranks, sharded.
        parameters: Those that are trained, by the names of files and messages.
        a: Settings of AdamW.
        learning_rate: Its learning rate.
        world: Number of ranks.
    """

    def __init__(
        self,
        model: Any,
        parameters: Mapping[str, torch.nn.Parameter],
        a: AlgorithmConfig,
        learning_rate: float,
        world: int,
    ) -> None:
        self.model, self.parameters = model, parameters
        self.steps = 0  #: Optimizer steps.
        self._clip, self._world = a.gradient_clip, world
        matrices = [p for p in parameters.values() if p.ndim > 1]
        vectors = [p for p in parameters.values() if p.ndim <= 1]  # norms and biases do not decay
        groups = [
            {"params": matrices, "weight_decay": a.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=learning_rate,
            betas=(a.beta1, a.beta2),
            eps=a.adam_epsilon,
        )

    # --- A step

    def zero_gradients(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def gradient_norm(self) -> float:
        """The norm of the gradients of all ranks; 0 without gradients. A collective."""
        local = [local_part(p.grad) for p in self.parameters.values() if p.grad is not None]
        squares = torch.zeros((), dtype=torch.float64)
        if local:
            squares = torch.stack([g.double().pow(2).sum() for g in local]).sum()
        if self._world > 1:
            dist.all_reduce(squares)
        return math.sqrt(float(squares))

    def step(self, norm: float, scale: float = 1.0) -> None:
        """Clips the gradients, whose norm is `norm`, and applies them at `scale` times the learning rate."""
        if norm > self._clip:
            local = [local_part(p.grad) for p in self.parameters.values() if p.grad is not None]
            torch._foreach_mul_(local, self._clip / norm)
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate * scale
        self.optimizer.step()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self.steps += 1

    def check_weights(self, what: str) -> None:
        """Raises NotFinite, which begins with `what`, if a weight is not finite."""
        for name, p in self.parameters.items():
            if not bool(torch.isfinite(local_part(p.data)).all()):
                raise NotFinite(f"{what} are not finite (tensor {name})")

    # --- State

    def weights(self) -> dict[str, torch.Tensor]:
        """The full weights in rank 0's host memory. A collective."""
        return {name: full_tensor(p.data).cpu().contiguous() for name, p in self.parameters.items()}

    def moments(self) -> dict[str, torch.Tensor]:
        """The full moments of AdamW by prefixed name, in rank 0's host memory. A collective."""
        moments = {}
        for name, p in self.parameters.items():
            state = self.optimizer.state.get(p, {})
            for key, prefix in (("exp_avg", "m."), ("exp_avg_sq", "v.")):
                moment = (
                    full_tensor(state[key]).cpu()
                    if key in state
                    else torch.zeros_like(full_tensor(p.data), device="cpu")
                )
                moments[prefix + name] = moment.contiguous()
        return moments

    def put(
        self,
        weights: tuple[pathlib.Path, Mapping[str, torch.Tensor]],
        moments: tuple[pathlib.Path, Mapping[str, torch.Tensor]],
        steps: int,
    ) -> None:
        """Replaces the state by the tensors of two files. Raises RoleError, which names the file, unless they fit."""
        for name, p in self.parameters.items():
            for (file, tensors), key in (
                (weights, name),
                (moments, "m." + name),
                (moments, "v." + name),
            ):
                if key not in tensors or tensors[key].shape != p.shape:
                    raise RoleError(f"{file}: expected a tensor {key} of shape {tuple(p.shape)}")
            put_tensor(p.data, weights[1][name])
            first, second = torch.zeros_like(p.data), torch.zeros_like(p.data)
            put_tensor(first, moments[1]["m." + name])
            put_tensor(second, moments[1]["v." + name])
            state = {"step": torch.tensor(float(steps)), "exp_avg": first, "exp_avg_sq": second}
            self.optimizer.state[p] = state
        self.steps = steps

    def move(self, device: torch.device) -> None:
        """Moves weights and moments; with several ranks the moments only."""
        for p in self.parameters.values():
            state = self.optimizer.state.get(p, {})
            for key in ("exp_avg", "exp_avg_sq"):
                if key in state:
                    state[key] = state[key].to(device)
        if self._world == 1:  # FSDP keeps its own shards
            self.model.to(device)

    def offload(self, device: torch.device) -> None:
        """Moves everything from `device` to host memory, and drops gradients."""
        self.zero_gradients()
        self.move(torch.device("cpu"))
        release(device)

    def bytes(self) -> tuple[int, int, int]:
        """Bytes of weights, gradients and moments."""
        weights = bytes_of(local_part(p.data) for p in self.model.parameters())
        gradients = bytes_of(
            local_part(p.grad) for p in self.parameters.values() if p.grad is not None
        )
        moments = bytes_of(
            local_part(t)
            for s in self.optimizer.state.values()
            for k, t in s.items()
            if k != "step"
        )
        return weights, gradients, moments


def local_part(tensor: Any) -> torch.Tensor:
    """This rank's part of a tensor that may be sharded."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
