"""What a worker proves itself with, handed out in a file of its own (mode 0600)."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import stat

from .errors import RoleError


@dataclasses.dataclass(slots=True)
class Credentials:
    secret: str = ""  #: Of the run, for actor.hello.
    orchestrator_key: str = ""  #: Its open key of CURVE; empty: the connection is not encrypted.
    own_open: str = ""  #: The key pair of this process.
    own_secret: str = ""
    run: str = ""  #: Of `temper keys`: the run that it is of,
    name: str = ""  #: and its name there.


def scalars(text: str) -> dict[str, str]:
    """`a.b` of two levels of a mapping in block style, which is all that is in the file."""
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
        raise RoleError(f"{file} is not a file of this user alone: it must be of mode 0600")
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
    """By the file that is named, here or by TEMPER_CREDENTIALS, else by TEMPER_SECRET."""
    path = path or os.environ.get("TEMPER_CREDENTIALS")
    return read(path) if path else Credentials(os.environ.get("TEMPER_SECRET", ""))
