"""`python -m temper.check REPORT [KIND KEY NAME]...`: whether a run finds what its YAML names in Python.

KIND is `function` or a role; KEY is where the YAML names NAME. `temper check` and `temper run` call
this in the interpreter that would do the work. REPORT gets a line `ready`, then a JSON line for each:
`{"key": ..., "message": ...}`, whose message is empty where all is well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from .errors import RoleError, one_line
from .names import import_name
from .worker import KINDS


def problem(kind: str, key: str, name: str) -> str:
    try:
        found = import_name(key, name)
        if kind == "function" and not callable(found):
            raise RoleError(f'{key} "{name}" is {type(found).__name__}, which cannot be called')
        if kind != "function":
            base, _ = KINDS[kind]
            if not isinstance(found, type) or not issubclass(found, base):
                raise RoleError(f'{key} "{name}": a {kind} derives from temper.{base.__name__}')
    except BaseException as error:  # also of a module that calls sys.exit()
        return one_line(error) or type(error).__name__
    return ""


def main(arguments: list[str]) -> int:
    report, *asked = arguments
    with open(report, "w", encoding="utf-8") as file:
        for line in _lines(asked):
            file.write(line + "\n")
            file.flush()  # what comes next may end the process
    return 0


def _lines(asked: list[str]) -> Iterator[str]:
    yield "ready"
    for kind, key, name in zip(asked[::3], asked[1::3], asked[2::3]):
        message = problem(kind, key, name).removeprefix(key).lstrip()
        yield json.dumps({"key": key, "message": message})


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # threads of what was imported are nobody's business here
