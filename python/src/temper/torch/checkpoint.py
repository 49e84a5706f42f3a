"""A trainer's state on disk. The files are those of the C++ trainer (trainer/torch/checkpoint.hpp), so that either goes
on from the other's: model.safetensors, optimizer.safetensors ("m." and "v." before a tensor's name) and trainer.json,
which all name the same number of updates."""

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
    weights: dict[str, torch.Tensor]  #: By name, whole, on the host.
    moments: dict[str, torch.Tensor]
    updates: int
    steps: int  #: Of the optimizer.


def metadata(updates: int) -> dict[str, str]:
    """Of every safetensors image of weights or moments."""
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
    """Raises RoleError, and names the file, where it is of another format or the folder is a mixture."""
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
            raise RoleError(f"{file}: is of update {of}, but trainer.json says {updates}")
        return {name: opened.get_tensor(name) for name in opened.keys()}
