"""The trainer's state on disk, in the format of the C++ trainer (trainer/torch/checkpoint.hpp).

Each can resume from the other's checkpoints: model.safetensors, optimizer.safetensors (tensor names with prefix "m." or
"v.") and trainer.json. All three contain the number of completed steps, `updates`.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

import safetensors
import safetensors.torch
import torch

from ..errors import RoleError
from ..messages import CHECKPOINT_FORMAT


@dataclasses.dataclass
class State:
    weights: dict[str, torch.Tensor]  #: Full tensors by name, in host memory.
    moments: dict[str, torch.Tensor]  #: AdamW moments by prefixed name.
    updates: int  #: Completed training steps.
    steps: int  #: Optimizer updates; several per step with minibatches.


def metadata(updates: int) -> dict[str, str]:
    """The metadata of each safetensors file."""
    return {"format": "pt", "updates": str(updates)}


def save(folder: pathlib.Path, state: State) -> None:
    of = metadata(state.updates)
    safetensors.torch.save_file(state.weights, folder / "model.safetensors", of)
    safetensors.torch.save_file(state.moments, folder / "optimizer.safetensors", of)
    counters = {
        "format": CHECKPOINT_FORMAT,
        "updates": state.updates,
        "optimizer_steps": state.steps,
    }
    (folder / "trainer.json").write_text(json.dumps(counters, indent=2) + "\n")


def load(folder: pathlib.Path) -> State:
    """Loads a checkpoint. Raises RoleError, which names the file, if format or step of the files differ."""
    counters = json.loads((folder / "trainer.json").read_text())
    if counters.get("format") != CHECKPOINT_FORMAT:
        raise RoleError(
            f"{folder / 'trainer.json'}: format {counters.get('format')}, expected {CHECKPOINT_FORMAT}"
        )
    updates = int(counters["updates"])
    return State(
        _tensors(folder / "model.safetensors", updates),
        _tensors(folder / "optimizer.safetensors", updates),
        updates,
        int(counters["optimizer_steps"]),
    )


def _tensors(file: pathlib.Path, updates: int) -> dict[str, torch.Tensor]:
    with safetensors.safe_open(file, "pt") as opened:
        of = (opened.metadata() or {}).get("updates")
        if of != str(updates):
            raise RoleError(f"{file}: expected step {updates} as in trainer.json, found step {of}")
        return {name: opened.get_tensor(name) for name in opened.keys()}
