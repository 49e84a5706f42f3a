"""One action of a role switch on time-shared cards, and the report of its cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .activity import ActivityLog
from .errors import RoleError, one_line
from .messages import CardState, SwitchAction, SwitchCost, Switched
from .process import peak_memory, resident_memory
from .role_types import Memory
from .values import number_of, shown


def _measured(memory: Callable[[], Memory]) -> Memory:
    """The memory of a role in whole bytes. Raises RoleError if memory() returned something else."""
    found: Any = memory()
    if isinstance(found, Memory):
        device, host = number_of(found.device), number_of(found.host)
        if device is not None and host is not None and 0 <= device < 2**63 and 0 <= host < 2**63:
            return Memory(int(device), int(host))
    name = getattr(memory, "__qualname__", "memory").rpartition("<locals>.")[2]
    raise RoleError(f"{name}(): expected temper.Memory with bytes from 0, found {shown(found)}")


def perform_switch(
    action: SwitchAction,
    actions: dict[SwitchAction, Callable[[], None]],
    memory: Callable[[], Memory],
    activity: ActivityLog,
    send: Callable[[Any], None],
) -> None:
    begin = activity.now()
    before = _measured(memory)
    error = ""
    try:
        if action not in actions:
            raise RoleError(f"this role cannot {action.name.lower()}")
        actions[action]()
    except Exception as failure:
        error = one_line(failure)
    after = _measured(memory)
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
