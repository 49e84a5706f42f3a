"""Values that users' roles return: conversions, and descriptions for errors.

The bounds are those of the orchestrator (actors/border/values.hpp). Here an error names the user's
method, and a value of one response costs only that response.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Set
from typing import Any

from .errors import RoleError

#: Largest absolute value of a reward and of its terms.
LARGEST_REWARD = 1e18
#: Maximum number of different terms of the responses of one message.
MOST_TERMS = 100
#: Largest count among the metrics of an update, such as `micro_batches`.
LARGEST_COUNT = 2**31 - 1
_TERM_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


def shown(given: Any) -> str:
    """A short description of a value that a user's function returned."""
    short = reprlib.Repr()
    short.maxother = 60
    try:
        text = short.repr(given)
    except Exception:  # Python prints no integer of more than 4,300 digits
        text = "a value without a text"
    return f"{text} ({type(given).__name__})"


def number_of(given: Any) -> float | None:
    """Converts a number of any library to a float. Returns None if it is no number."""
    if not isinstance(given, (str, bytes, bytearray)):
        try:
            return float(given)
        except Exception:  # of any array library
            pass
    return None


def list_of(where: str, given: Any, expected: str) -> list[Any]:
    """The results of a user's method `where` as a list.

    Raises:
        RoleError: They are no list, tuple, array or iterator.
    """
    if not isinstance(given, (str, bytes, bytearray, Mapping, Set)):
        try:
            results = iter(given)
        except TypeError:
            pass
        else:
            return list(results)
    raise RoleError(f"{where}: expected {expected}, found {shown(given)}")


def reward_of(where: str, given: Any) -> float:
    """Converts a reward to a float; the orchestrator checks its range.

    Raises:
        RoleError: It is no number. The message has the function's name and the value.
    """
    number = number_of(given)
    if number is None:
        raise RoleError(f"{where} returned {shown(given)} as a reward: expected a number or None")
    return number


def terms_of(where: str, given: Any) -> dict[str, float]:
    """The terms of a response's reward by name. NaN: the term does not apply.

    Raises:
        RoleError: The orchestrator would refuse them.
    """
    if not isinstance(given, Mapping):
        raise RoleError(
            f"{where}: terms: found {shown(given)}; expected a mapping of names to numbers"
        )
    if len(given) > MOST_TERMS:
        raise RoleError(f"{where}: terms: found {len(given)} terms; expected at most {MOST_TERMS}")
    terms: dict[str, float] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not _TERM_NAME.fullmatch(name):
            raise RoleError(
                f"{where}: terms: found the name {shown(name)}; expected 1 to 100 letters, digits and "
                "`_ - . :`"
            )
        number = number_of(value)
        if number is None or abs(number) > LARGEST_REWARD:
            raise RoleError(
                f'{where}: term "{name}": found {shown(value)}; expected a number from -1e18 to 1e18'
            )
        terms[name] = number
    return terms
