"""A server that a run starts, in a virtual environment of its own: its packages and those of environment.py may
exclude each other."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

from environment import ROOT, last_line


class ServerEnvironment(ABC):
    """At `folder`, else where the variable says, else in build/ of this tree."""

    name = ""  #: Of the folder in build/, and in what is said.
    variable = ""

    def __init__(self, folder: str | None = None):
        self.folder = Path(folder or os.environ.get(self.variable) or ROOT / "build" / self.name)
        self.python = self.folder / "bin" / "python"
        self.mark = self.folder / "whole"

    def make(self) -> None:
        """Raises RuntimeError with the reason."""
        if self.mark.exists():
            return
        self._run([sys.executable, "-m", "venv", "--clear", str(self.folder)])
        self._fill()
        self.mark.touch()

    @abstractmethod
    def _fill(self) -> None:
        """Installs what it is for, and sees that it can be loaded."""

    def _pip(self, *words: str) -> None:
        self._run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words])

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"{' '.join(command[:4])}: {error}") from error
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command[:4])}: {last_line(done.stderr or done.stdout)}")


def main(kind: type[ServerEnvironment]) -> None:
    """Makes it, or finds it; prints its interpreter."""
    environment = kind(sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        environment.make()
    except RuntimeError as reason:
        print(f"{kind.name}: {reason}", file=sys.stderr)
        sys.exit(77)
    print(environment.python)
