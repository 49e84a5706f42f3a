"""Errors of roles, and their messages in one line with the place."""

from __future__ import annotations

import pathlib
import sysconfig
import traceback

_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_PACKAGE = pathlib.Path(__file__).resolve().parent


class RoleError(Exception):
    """An error in a role's code or configuration, described for its author. Ends the worker."""


class NotFinite(RoleError):
    """A loss, gradient, weight or logit is infinite or NaN. Raises the alarm `not_finite`."""


class BrokenReward(RoleError):
    """A reward function failed several times and has never returned a reward. Ends the run."""


class OrchestratorGone(Exception):
    """The orchestrator has ended, or its connection is lost."""


#: Exit code of a worker that would fail again in the same way (EX_CONFIG of sysexits.h). The
#: orchestrator then ends a run that waits for this worker's first start.
PERMANENT_EXIT = 78

#: Exceptions from building a role that indicate an error in its code or configuration.
_PERMANENT = (RoleError, ImportError, SyntaxError, AttributeError, NameError, TypeError)


def is_permanent(error: BaseException) -> bool:
    """Whether another attempt to build the role would raise the same error."""
    return isinstance(error, _PERMANENT)


def _is_ours(filename: str) -> bool:
    try:
        return pathlib.Path(filename).resolve().parent == _PACKAGE
    except OSError:
        return False


def _is_of_a_library(filename: str) -> bool:
    return "site-packages" in filename or filename.startswith(("<", _STANDARD_LIBRARY))


def escaped(text: str) -> str:
    r"""The text with an escape such as `\udcff` for each lone surrogate, which UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace").decode()


def message_of(error: BaseException) -> str:
    """The text of an error in one line of valid UTF-8."""
    try:
        text = str(error)
    except Exception as failure:
        text = f"no text, since its __str__() raised {type(failure).__name__}"
    return escaped(text.strip().replace("\n", "; "))


def one_line(error: BaseException) -> str:
    """Describes an error in one line, like "ValueError: bad shape (engine.py:12, in generate)".

    The place is the innermost one in user code: outside this package and the libraries. The line is
    never empty, and it is valid UTF-8.
    """
    text = message_of(error)
    if isinstance(error, (RoleError, OrchestratorGone)) and error.__cause__ is None:
        return text or type(error).__name__
    name = "" if isinstance(error, RoleError) and text else type(error).__name__
    said = f"{name}: {text}" if name and text else name or text
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not _is_ours(f.filename)]
    users = [f for f in own if not _is_of_a_library(f.filename)]
    where = (users or own or frames)[-1:]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{said.split(' (')[0]} ({error.filename}:{error.lineno})"
    return f"{said} ({where[0].filename}:{where[0].lineno}, in {where[0].name})" if where else said
