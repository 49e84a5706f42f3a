"""The credentials of a worker, in a file with mode 0600."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import stat

from .errors import RoleError


@dataclasses.dataclass(slots=True)
class Credentials:
    secret: str = ""  #: Secret of the run, for actor.hello.
    orchestrator_key: str = ""  #: The orchestrator's public CURVE key; empty: no encryption.
    own_open: str = ""  #: Public CURVE key of this process.
    own_secret: str = ""  #: Secret CURVE key of this process.
    run: str = ""  #: Run of a key from `temper keys`.
    name: str = ""  #: Name of that key.


def scalars(text: str) -> dict[str, str]:
    """Parses the file, a YAML mapping of two levels, into `a.b` -> value."""
    found: dict[str, str] = {}
    above = ""
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        if not colon or key.startswith("#"):
            continue
        nested = line[0].isspace()
        value = value.strip()
        if not nested:
            above = key
        found[f"{above}.{key}" if nested else key] = (
            json.loads(value) if value.startswith('"') else value.strip("'")
        )
    return found


def read(path: str | os.PathLike[str]) -> Credentials:
    file = pathlib.Path(path)
    info = file.lstat()
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise RoleError(
            f"{file}: expected a file of this user with mode 0600, found mode {info.st_mode & 0o777:04o}"
        )
    found = scalars(file.read_text())
    return Credentials(
        found.get("secret", ""),
        found.get("orchestrator_key", ""),
        found.get("own.open", ""),
        found.get("own.secret", ""),
        found.get("run", ""),
        found.get("name", ""),
    )


def given(path: str | None = None) -> Credentials:
    """Credentials from `path`, else from the file TEMPER_CREDENTIALS, else from TEMPER_SECRET."""
    path = path or os.environ.get("TEMPER_CREDENTIALS")
    return read(path) if path else Credentials(os.environ.get("TEMPER_SECRET", ""))
