"""Common parts of the tests: paths of the tree, and a role without an orchestrator."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

from temper import messages as m
from temper.activity import ActivityLog
from temper.roles import Role
from temper.wire import pack

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "python/tests/roles"))
sys.path.insert(0, str(TREE / "python/examples"))


def welcome(kind: str, **told: Any) -> m.Welcome:
    out = m.Welcome()
    out.role.kind = m.RoleKind[kind.upper()]
    out.role.vocabulary = m.Vocabulary(size=14, alphabet="0123456789+=")
    if kind == "rollout":
        out.role.settings = pack(
            m.RolloutSettings(sampling=m.SamplingConfig(max_new_tokens=6), concurrency=4).pack()
        )
    for name, value in told.items():
        setattr(out.role, name, value)
    return out


def user(cls: type, kind: str, **told: Any) -> Any:
    """An object of the user's as the worker makes it."""
    made = cls.__new__(cls)
    made.role = Role(welcome(kind, **told), f"{kind}-0")
    made.__init__(**made.role.arguments)
    return made


@pytest.fixture
def sent() -> list[Any]:
    return []


@pytest.fixture
def activity() -> ActivityLog:
    return ActivityLog(0)
