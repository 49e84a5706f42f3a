"""Imports the Python names in a YAML: `package.module:name`."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from typing import Any

from .errors import RoleError


def import_name(key: str, text: str) -> Any:
    """Imports `module:name`.

    Args:
        key: YAML key with the name, for error messages.
        text: The name.

    Raises:
        RoleError: There is no such module or name.
    """
    module, colon, name = text.partition(":")
    if not colon or not module or not name:
        raise RoleError(f'{key} "{text}": expected module:name')
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise  # the module exists, but one of its imports does not
        raise RoleError(
            f'{key} "{text}": no module {error.name} in {os.getcwd()}, PYTHONPATH or the packages '
            f"of {sys.executable}"
        ) from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), 1)
            raise RoleError(
                f'{key} "{text}": {module} has no {name}'
                + (f"; did you mean {near[0]}?" if near else "")
            )
        found = getattr(found, part)
    return found
