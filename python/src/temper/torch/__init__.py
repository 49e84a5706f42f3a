"""Roles in PyTorch for models of `transformers`, on CPUs and GPUs.

    rollout: {engine: {kind: python, use: "temper.torch:Engine"}}
    trainer: {engine: {kind: python, use: "temper.torch:Trainer"}}
    reference: {engine: {kind: python, use: "temper.torch:Reference"}}

Each role reads the run's model folder (or `with: {model: DIR}`) and uses Hugging Face names for weights. Requires the
extra `transformers`. docs/how-to/python-roles.md has the settings.
"""

from .engine import Engine
from .reference import Reference
from .trainer import Trainer

__all__ = ["Engine", "Reference", "Trainer"]
