"""One action of a role switch on time-shared cards, and the report of its cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .activity import ActivityLog
from .errors import RoleError, one_line
from .messages import CardState, SwitchAction, SwitchCost, Switched
from .process import peak_memory, resident_memory
from .role_types import Memory


def perform_switch(
    action: SwitchAction,
    actions: dict[SwitchAction, Callable[[], None]],
    memory: Callable[[], Memory],
    activity: ActivityLog,
    send: Callable[[Any], None],
) -> None:
    begin = activity.now()
    before = memory()
    error = ""
    try:
        if action not in actions:
            raise RoleError(f"this role cannot {action.name.lower()}")
        actions[action]()
    except Exception as failure:
        error = one_line(failure)
    after = memory()
    activity.add(CardState.SWITCH, begin)
    cost = SwitchCost(
        activity.now() - begin,
        before.device,
        after.device,
        before.host,
        after.host,
        peak_memory(),
        resident_memory(),
    )
    send(Switched(action, cost, error))
