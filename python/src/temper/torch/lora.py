"""Low-rank adapters (LoRA) for models of `transformers`, in the file format of peft.

A linear layer with the frozen weight W computes x W^T + (alpha / rank) (x A^T) B^T, as the C++ roles do. Products with
the adapter are float32.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import safetensors.torch
import torch

from ..errors import RoleError
from ..messages import LoraConfig
from ..randomness import sampling_uniforms
from ..xxh3 import hash64

ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
#: In the base of a run: the adapter from which training starts, if the run has been given one.
FIRST_ADAPTER = "adapter"


class LowRank(torch.nn.Module):
    """A linear layer with an adapter beside it.

    Args:
        base: The layer, whose parameters are frozen.
        name: Name of the layer in the model.
        lora: Settings of the adapter.
        seed: Seed of the run, which determines the initial A. B is zero.
    """

    def __init__(self, base: torch.nn.Linear, name: str, lora: LoraConfig, seed: int) -> None:
        super().__init__()
        self.base = base
        self.scale = lora.alpha / lora.rank
        self.name = f"base_model.model.{name}"
        device = base.weight.device
        first = initial_a(seed, f"{self.name}.lora_A.weight", lora.rank, base.in_features)
        self.lora_A = torch.nn.Parameter(first.to(device))
        self.lora_B = torch.nn.Parameter(
            torch.zeros(base.out_features, lora.rank, dtype=torch.float32, device=device)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.base(x)
        with torch.autocast(x.device.type, enabled=False):
            a, b = self.lora_A, self.lora_B
            return y + (self.scale * ((x.to(a.dtype) @ a.T) @ b.T)).to(y.dtype)


def initial_a(seed: int, name: str, rank: int, width: int) -> torch.Tensor:
    """The initial A [rank, width] of a tensor, uniform in +-1 / sqrt(width), as in the C++ trainer."""
    uniforms = sampling_uniforms(seed, [hash64(name.encode())], range(rank * width))
    values = (2 * uniforms - 1) * width**-0.5
    return torch.from_numpy(values.astype("float32")).reshape(rank, width)


def add_adapters(model: Any, lora: LoraConfig, seed: int) -> None:
    """Freezes a model and adds an adapter to each target.

    Raises:
        RoleError: There is no target, a target is no linear layer of the model, or the rank exceeds one of its sides.
    """
    if not lora.targets:
        raise RoleError("model.lora.targets: expected at least one linear layer, found none")
    model.requires_grad_(False)
    found = set()
    for name, module in list(model.named_modules()):
        target = name.rpartition(".")[2]
        if target not in lora.targets or not isinstance(module, torch.nn.Linear):
            continue
        if lora.rank > min(module.in_features, module.out_features):
            raise RoleError(
                f"model.lora.rank: must be at most {min(module.in_features, module.out_features)}, the smaller side "
                f"of {name}, found {lora.rank}"
            )
        parent = model.get_submodule(name.rpartition(".")[0])
        setattr(parent, target, LowRank(module, name, lora, seed))
        found.add(target)
    if missing := [target for target in lora.targets if target not in found]:
        raise RoleError(f"model.lora.targets: the model has no linear layer {missing[0]}")


def _adapters(model: Any) -> Iterator[LowRank]:
    return (module for module in model.modules() if isinstance(module, LowRank))


def adapter_tensors(model: Any) -> dict[str, torch.nn.Parameter]:
    """The parameters of all adapters by the names of peft; empty for a model without adapters."""
    tensors = {}
    for adapter in _adapters(model):
        tensors[f"{adapter.name}.lora_A.weight"] = adapter.lora_A
        tensors[f"{adapter.name}.lora_B.weight"] = adapter.lora_B
    return tensors


def load_first_adapter(model: Any, base: pathlib.Path) -> None:
    """Gives the adapters of a model the values in the folder of the first adapter, if the base has one.

    Raises:
        RoleError: The file has other tensors than the model's adapters. The message names one.
    """
    file = base / FIRST_ADAPTER / ADAPTER
    if not file.is_file():
        return
    own, found = adapter_tensors(model), safetensors.torch.load_file(file)
    if missing := sorted(own.keys() ^ found.keys()):
        kind = "missing" if missing[0] in own else "unknown for this model"
        raise RoleError(f"{file}: tensor '{missing[0]}': {kind}")
    for name, tensor in found.items():
        if tensor.shape != own[name].shape:
            raise RoleError(
                f"{file}: tensor '{name}': found shape {list(tensor.shape)}, expected {list(own[name].shape)}"
            )
        own[name].data.copy_(tensor)


def restore_base(model: Any, fresh: Any) -> None:
    """Gives a model whose weights were released the frozen weights of `fresh`, the same model without adapters."""
    loaded = dict(fresh.named_parameters())
    own = set(adapter_tensors(model).values())
    for name, parameter in model.named_parameters():
        if parameter not in own:
            parameter.data = loaded[name.replace(".base.", ".")].data


def write_config(folder: pathlib.Path, lora: LoraConfig, base: str) -> None:
    """Writes adapter_config.json, as the C++ trainer does. `base`: folder of the base model."""
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": 0.0,
        "target_modules": list(lora.targets),
        "bias": "none",
        "fan_in_fan_out": False,
        "use_rslora": False,
        "use_dora": False,
        "modules_to_save": None,
        "init_lora_weights": True,
        "inference_mode": True,
    }
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n")
