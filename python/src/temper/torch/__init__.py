"""The roles of a run over models of `transformers`, in PyTorch, on CPUs and GPUs.

    rollout: {engine: {kind: python, use: "temper.torch:Engine"}}
    trainer: {engine: {kind: python, use: "temper.torch:Trainer"}}
    reference: {engine: {kind: python, use: "temper.torch:Reference"}}

Each reads the run's model folder (or `with: {model: DIR}`) and speaks of weights by their Hugging Face names. Needs
the extra `transformers`. docs/python-roles.md has their settings.
"""

from .engine import Engine
from .reference import Reference
from .trainer import Trainer

__all__ = ["Engine", "Reference", "Trainer"]
