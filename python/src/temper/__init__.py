"""Roles of a Temper run in Python. docs/how-to/write-a-role.md starts with the smallest ones."""

from .errors import NotFinite, RoleError
from .messages import FinishReason, Segment
from .roles import (
    Arrays,
    Batch,
    Completion,
    Engine,
    Memory,
    Reference,
    Request,
    Reward,
    Role,
    Row,
    Sample,
    Scored,
    Scores,
    Trainer,
    Verdict,
)
from .weights import Weights, make_image

__version__ = "0.2.0"

__all__ = [
    "Arrays",
    "Batch",
    "Completion",
    "Engine",
    "FinishReason",
    "Memory",
    "NotFinite",
    "Reference",
    "Request",
    "Reward",
    "Role",
    "RoleError",
    "Row",
    "Sample",
    "Scored",
    "Scores",
    "Segment",
    "Trainer",
    "Verdict",
    "Weights",
    "make_image",
]
