"""The trainer's state on disk, in the format of the C++ trainer (trainer/torch/checkpoint.hpp).

Each can resume from the other's checkpoints: model.safetensors, optimizer.safetensors (tensor names with prefix "m." or
"v.") and trainer.json. If an adapter is trained, adapter_model.safetensors and adapter_config.json, which peft can
read, take the place of model.safetensors. With a critic there are two more, critic.safetensors and
critic_optimizer.safetensors. All contain the number of completed steps, `updates`.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

import safetensors
import safetensors.torch
import torch

from ..errors import RoleError
from ..messages import CHECKPOINT_FORMAT, LoraConfig
from . import lora as adapters

OPTIMIZER = "optimizer.safetensors"
CRITIC, CRITIC_OPTIMIZER = "critic.safetensors", "critic_optimizer.safetensors"
_CRITIC_STEPS = "critic_optimizer_steps"


@dataclasses.dataclass
class CriticState:
    weights: dict[str, torch.Tensor]
    moments: dict[str, torch.Tensor]
    steps: int  #: Its optimizer steps.


@dataclasses.dataclass
class State:
    weights: dict[str, torch.Tensor]  #: Full tensors of what is trained, by name, in host memory.
    moments: dict[str, torch.Tensor]  #: AdamW moments by prefixed name.
    updates: int  #: Completed training steps.
    steps: int  #: Optimizer updates; several per step with minibatches.
    critic: CriticState | None = None


def metadata(updates: int) -> dict[str, str]:
    """The metadata of each safetensors file."""
    return {"format": "pt", "updates": str(updates)}


def weights_file(adapter: bool) -> str:
    """Name of the file with the trained tensors."""
    return adapters.ADAPTER if adapter else "model.safetensors"


def save(
    folder: pathlib.Path, state: State, lora: LoraConfig | None = None, base: str = ""
) -> None:
    """Saves a checkpoint; `lora` and `base` describe the adapter, if one is trained."""
    of = metadata(state.updates)
    safetensors.torch.save_file(state.weights, folder / weights_file(lora is not None), of)
    safetensors.torch.save_file(state.moments, folder / OPTIMIZER, of)
    if lora is not None:
        adapters.write_config(folder, lora, base)
    counters = {
        "format": CHECKPOINT_FORMAT,
        "updates": state.updates,
        "optimizer_steps": state.steps,
    }
    if state.critic is not None:
        safetensors.torch.save_file(state.critic.weights, folder / CRITIC, of)
        safetensors.torch.save_file(state.critic.moments, folder / CRITIC_OPTIMIZER, of)
        counters[_CRITIC_STEPS] = state.critic.steps
    (folder / "trainer.json").write_text(json.dumps(counters, indent=2) + "\n")


def load(folder: pathlib.Path, adapter: bool = False, critic: bool = False) -> State:
    """Loads a checkpoint of all weights or of an adapter, and of a critic.

    Raises:
        RoleError: A file is missing, or format or step of the files differ. The message names the file.
    """
    if not (folder / weights_file(adapter)).is_file():
        raise RoleError(
            f"{folder}: expected {weights_file(adapter)}, which is missing: the checkpoint was made "
            f"{'without' if adapter else 'with'} model.lora"
        )
    counters = json.loads((folder / "trainer.json").read_text())
    if counters.get("format") != CHECKPOINT_FORMAT:
        raise RoleError(
            f"{folder / 'trainer.json'}: format {counters.get('format')}, expected {CHECKPOINT_FORMAT}"
        )
    updates = int(counters["updates"])
    of_critic = None
    if critic:
        if _CRITIC_STEPS not in counters:
            raise RoleError(
                f"{folder / 'trainer.json'}: expected {_CRITIC_STEPS}, found none: the checkpoint was made without a "
                "critic"
            )
        of_critic = CriticState(
            _tensors(folder / CRITIC, updates),
            _tensors(folder / CRITIC_OPTIMIZER, updates),
            int(counters[_CRITIC_STEPS]),
        )
    return State(
        _tensors(folder / weights_file(adapter), updates),
        _tensors(folder / OPTIMIZER, updates),
        updates,
        int(counters["optimizer_steps"]),
        of_critic,
    )


def _tensors(file: pathlib.Path, updates: int) -> dict[str, torch.Tensor]:
    with safetensors.safe_open(file, "pt") as opened:
        of = (opened.metadata() or {}).get("updates")
        if of != str(updates):
            raise RoleError(f"{file}: expected step {updates} as in trainer.json, found step {of}")
        return {name: opened.get_tensor(name) for name in opened.keys()}
