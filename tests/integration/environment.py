"""The environment of the integration tests: a virtual environment with the heavy packages.

    python3 tests/integration/environment.py FOLDER        makes it, or completes it; prints its interpreter

A package that cannot be fetched is left out; packages.json in the folder says which are there and why the others
are not, and a test that needs one of those is skipped with that reason. One that was fetched and does not work is
named as broken: that is a failure. The package `temper` itself is not
installed: tests take it from python/src of their own tree, so that one environment serves many trees.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: group -> requirements. A group is there as a whole or not at all; later ones may need earlier ones.
GROUPS: dict[str, list[str]] = {
    "base": ["pytest>=7", "pytest-timeout>=2", "msgpack>=1.0.4", "numpy>=1.24", "pyzmq>=25", "xxhash>=3"],
    "build": ["build>=1", "hatchling>=1.20"],
    # The smallest wheel with FSDP2 on PyPI (527 MB; 2.6 has 767 MB, 2.11 531 MB, 2.15 539 MB).
    "torch": ["torch==2.13.0"],
    "tokenizers": ["tokenizers>=0.22", "jinja2>=3.1"],
    "safetensors": ["safetensors>=0.8"],
    "transformers": ["transformers==5.23.0"],
    "sentencepiece": ["sentencepiece>=0.2", "protobuf>=5"],
    "pyarrow": ["pyarrow==26.0.1"],
    "datasets": ["datasets==5.2.0"],
    "trl": ["trl==1.16.0", "accelerate==1.15.0", "aiohttp>=3.9", "requests>=2"],
    "peft": ["peft==0.21.2"],
    "reasoning_gym": ["reasoning-gym==0.1.25"],
    "redis": ["redis[hiredis]>=4.3"],
}

#: Programs that collect metrics, which want other versions of what the packages above want: they are in an
#: environment of their own, beside the other one.
TRACKERS: dict[str, list[str]] = {
    "base": GROUPS["base"],
    "tensorboard": ["tensorboard==2.21.0"],
    "wandb": ["wandb==0.31.0"],
    "trackio": ["trackio==0.43.0"],
}

#: What torch needs beside CUDA's libraries: it is installed without its requirements.
TORCH_NEEDS = ["filelock", "typing-extensions>=4.10", "sympy>=1.13", "networkx", "jinja2", "fsspec", "setuptools"]


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no word"


class Broken(RuntimeError):
    """A package that could be fetched does not work."""


class Environment:
    """A virtual environment at `folder` with these groups of packages."""

    def __init__(self, folder: Path, wanted: dict[str, list[str]] = GROUPS):
        self.folder = folder
        self.wanted = wanted
        self.python = folder / "bin" / "python"
        self.report = folder / "packages.json"

    def packages(self) -> dict[str, str]:
        """group -> "" where it is there, else the reason why it is not."""
        groups: dict[str, str] = json.loads(self.report.read_text())["groups"]
        return groups

    def broken(self) -> list[str]:
        """Groups that could be fetched and do not work."""
        groups: list[str] = json.loads(self.report.read_text())["broken"]
        return groups

    def make(self) -> None:
        """Raises RuntimeError, with the reason, where not even the tests' own packages can be had."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self.folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be making it; a holder's end frees it
            self._make()

    def _make(self) -> None:
        if not self.python.exists():
            self._run([sys.executable, "-m", "venv", str(self.folder)])
        recipe = hashlib.sha256((ROOT / "python/tools/torch_without_cuda.py").read_bytes()).hexdigest()
        before = json.loads(self.report.read_text()) if self.report.exists() else {}
        old = before.get("requirements", {}) if before.get("recipe") == recipe else {}
        groups: dict[str, str] = {}
        broken: list[str] = []
        for group, wanted in self.wanted.items():
            there = old.get(group) == wanted and before["groups"][group] == ""
            try:
                if not there:
                    self._torch(wanted) if group == "torch" else self._pip(wanted)
                groups[group] = ""
            except RuntimeError as error:
                if group == "base":
                    raise
                groups[group] = str(error)
                broken += [group] if isinstance(error, Broken) else []
            self.report.write_text(json.dumps({"recipe": recipe, "requirements": self.wanted, "broken": broken,
                                               "groups": {name: "not tried" for name in self.wanted} | groups}, indent=1))

    def _torch(self, wanted: list[str]) -> None:
        self._pip(TORCH_NEEDS)
        self._pip(["--no-deps", *wanted])
        try:
            self._run([str(self.python), str(ROOT / "python/tools/torch_without_cuda.py")])
            self._run([str(self.python), "-c", "import torch; torch.ones(2).sum().item()"])
        except RuntimeError as error:
            raise Broken(str(error)) from error

    def _pip(self, wanted: list[str]) -> None:
        self._run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"{' '.join(command[-3:])}: {error}") from error
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command[-3:])}: status {done.returncode}: "
                               f"{last_line(done.stderr or done.stdout)}")


def integration_environment() -> Environment:
    """That of TEMPER_INTEGRATION_ENV, else build/integration of this tree."""
    return Environment(Path(os.environ.get("TEMPER_INTEGRATION_ENV") or ROOT / "build" / "integration"))


def trackers_environment() -> Environment:
    folder = integration_environment().folder
    return Environment(folder.with_name(folder.name + "-trackers"), TRACKERS)


if __name__ == "__main__":
    environment = Environment(Path(sys.argv[1])) if len(sys.argv) > 1 else integration_environment()
    try:
        environment.make()
    except RuntimeError as error:
        print(f"environment: {error}", file=sys.stderr)
        sys.exit(77)
    for group, reason in environment.packages().items():
        if reason:
            print(f"environment: without {group}: {reason}", file=sys.stderr)
    print(environment.python)
