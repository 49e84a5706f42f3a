"""What goes wrong in a role, as one line that names the place."""

from __future__ import annotations

import pathlib
import sysconfig
import traceback

_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_PACKAGE = pathlib.Path(__file__).resolve().parent


class RoleError(Exception):
    """A role did what it must not: said in words for its author. Ends the worker."""


class NeverJudged(RoleError):
    """A reward has never judged a response, and has failed several times: ends a run without rewards."""


class Gone(Exception):
    """The orchestrator is not there any more."""


#: The exit code of a worker that would fail in the same way if it were started again (EX_CONFIG of
#: sysexits.h). The orchestrator then ends a run that waits for its first start.
PERMANENT_EXIT = 78

#: What a role that is being built raises for a mistake in its code or its configuration.
_PERMANENT = (RoleError, ImportError, SyntaxError, AttributeError, NameError, TypeError)


def is_permanent(error: BaseException) -> bool:
    """Whether a role that raised this while it was built would raise it again."""
    return isinstance(error, _PERMANENT)


def _is_ours(filename: str) -> bool:
    try:
        return pathlib.Path(filename).resolve().parent == _PACKAGE
    except OSError:
        return False


def _is_of_a_library(filename: str) -> bool:
    return "site-packages" in filename or filename.startswith(("<", _STANDARD_LIBRARY))


def one_line(error: BaseException) -> str:
    """ "ValueError: bad shape (engine.py:12, in generate)": the innermost place outside this package
    and the libraries, so that it is a line of the user's."""
    text = str(error).strip().replace("\n", "; ")
    if isinstance(error, (RoleError, Gone)) and error.__cause__ is None:
        return text
    name = "" if isinstance(error, RoleError) else type(error).__name__
    said = f"{name}: {text}" if name and text else name or text
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not _is_ours(f.filename)]
    users = [f for f in own if not _is_of_a_library(f.filename)]
    where = (users or own or frames)[-1:]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{said.split(' (')[0]} ({error.filename}:{error.lineno})"
    return f"{said} ({where[0].filename}:{where[0].lineno}, in {where[0].name})" if where else said
