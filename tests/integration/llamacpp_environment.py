"""llama.cpp's own server in an environment of its own, from a wheel: nothing is compiled.

    python3 tests/integration/llamacpp_environment.py FOLDER       makes it, or finds it; prints its interpreter
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGE = "xllamacpp==2026.10.11549"


class LlamacppEnvironment:
    def __init__(self, folder: Path):
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.mark = folder / "whole"

    def make(self) -> None:
        """Raises RuntimeError with the reason."""
        if self.mark.exists():
            return
        self._run([sys.executable, "-m", "venv", "--clear", str(self.folder)])
        self._run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                   "--only-binary", ":all:", PACKAGE])
        self._run([str(self.python), "-c", "import xllamacpp"])
        self.mark.touch()

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"{' '.join(command[:4])}: {error}") from error
        if done.returncode != 0:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise RuntimeError(f"{' '.join(command[:4])}: {lines[-1] if lines else 'no word'}")


def llamacpp_environment() -> LlamacppEnvironment:
    """That of TEMPER_LLAMACPP, else build/llamacpp of this tree."""
    return LlamacppEnvironment(Path(os.environ.get("TEMPER_LLAMACPP") or ROOT / "build" / "llamacpp"))


if __name__ == "__main__":
    environment = LlamacppEnvironment(Path(sys.argv[1])) if len(sys.argv) > 1 else llamacpp_environment()
    try:
        environment.make()
    except RuntimeError as reason:
        print(f"llama.cpp: {reason}", file=sys.stderr)
        sys.exit(77)
    print(environment.python)
