"""`python -m temper.check REPORT [KIND KEY NAME]...`: checks the Python names in a run's YAML.

KIND is `function`, `pattern` (of a judge), `classifier` (its packages), `store` or a role; KEY is the
YAML key with NAME. `temper check` and `temper run` start this
program with the run's interpreter. It writes a line `ready` to REPORT, then one JSON line per name:
`{"key": ..., "message": ...}` with an empty message if the name is valid.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from . import classifier, judge
from .errors import RoleError, one_line
from .names import import_name
from .stores import import_redis
from .worker import KINDS


def problem(kind: str, key: str, name: str) -> str:
    try:
        if kind == "store":
            import_redis()
            return ""
        if kind == "pattern":
            judge.compiled(name, key)
            return ""
        if kind == "classifier":
            classifier.import_packages()
            return ""
        found = import_name(key, name)
        if kind == "function" and not callable(found):
            raise RoleError(f'{key} "{name}": expected a function, found {type(found).__name__}')
        if kind != "function":
            base, _ = KINDS[kind]
            if not isinstance(found, type) or not issubclass(found, base):
                raise RoleError(f'{key} "{name}": expected a subclass of temper.{base.__name__}')
    except BaseException as error:  # also of a module that calls sys.exit()
        return one_line(error)
    return ""


def main(arguments: list[str]) -> int:
    report, *asked = arguments
    with open(report, "w", encoding="utf-8") as file:
        for line in _lines(asked):
            file.write(line + "\n")
            file.flush()  # the next import may end the process
    return 0


def _lines(asked: list[str]) -> Iterator[str]:
    yield "ready"
    for kind, key, name in zip(asked[::3], asked[1::3], asked[2::3]):
        message = problem(kind, key, name).removeprefix(key).lstrip(": ")
        yield json.dumps({"key": key, "message": message})


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # do not wait for threads of imported modules
