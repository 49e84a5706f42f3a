"""llama.cpp's own server in an environment of its own, from a wheel: nothing is compiled.

    python3 tests/integration/llamacpp_environment.py FOLDER       makes it, or finds it; prints its interpreter
"""

from __future__ import annotations

from server_environment import ServerEnvironment, main

PACKAGE = "xllamacpp==2026.10.11549"


class LlamacppEnvironment(ServerEnvironment):
    name = "llamacpp"
    variable = "TEMPER_LLAMACPP"

    def _fill(self) -> None:
        self._pip("--only-binary", ":all:", PACKAGE)
        self._run([str(self.python), "-c", "import xllamacpp"])


if __name__ == "__main__":
    main(LlamacppEnvironment)
