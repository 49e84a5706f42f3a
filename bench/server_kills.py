"""Measures the recovery of a run after kill -9 of its inference server, repeatedly at random moments.

    python bench/server_kills.py [--kind vllm] [--kills 20] [--seed 1] [--start COMMAND] [--set KEY=VALUE]...

Without --start the servers are fakes with a real network (tests/support/fake_server.py, needs numpy); otherwise COMMAND
is a value of `engine.start`. Prints a table: each kill, how it was detected, and the seconds until the server had its
version again; then the attempts that were sampled again, and the audit of the run. Exit code 1: the run did not
recover, or its audit found violations. TEMPER names the program (default: build/release/bin/temper).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEMPER = os.environ.get("TEMPER") or str(ROOT / "build/release/bin/temper")
PATIENCE = 600.0

CONFIG = """
name: kills
steps: 100000
task: {{kind: addition, digits: 1}}
model: {{hidden: 64, layers: 2, heads: 2, kv_heads: 1, ffn: 128, context: 32, rope_base: 100}}
pretrain: {{target_accuracy: 0.15, label_noise: 0.3}}
algorithm: {{groups_per_update: 16, responses_per_group: 8, minibatches: 1, learning_rate: 1e-4}}
reference: {{replicas: 0}}
sampling: {{max_new_tokens: 4}}
placement: {{cards: 2}}
rollout:
  concurrency: 256
  engine: {{kind: {kind}, start: "{start}"}}
staleness: {{bound: 2}}
deadlines: {{start: 15min, generate: 15min, weights: 15min}}
"""


class Served:
    """A run with one server, which the benchmark kills."""

    def __init__(self, folder: Path, config: str, sets: list[str]):
        self.run_dir = folder / "run"
        (folder / "config.yaml").write_text(config)
        words = [word for one in (f"run_dir={self.run_dir}", *sets) for word in ("--set", one)]
        self.output = open(folder / "output", "w+")
        self.process = subprocess.Popen([TEMPER, "run", str(folder / "config.yaml"), "--plain", *words], cwd=folder,
                                        stdout=self.output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def log(self) -> str:
        path = self.run_dir / "logs/rollout-0.log"
        return path.read_text() if path.exists() else ""

    def await_line(self, words: str, after: int) -> str:
        """Returns the first complete log line with one of these patterns after the first `after` characters."""
        until = time.monotonic() + PATIENCE
        while True:
            for line in self.log()[after:].split("\n")[:-1]:
                if re.search(words, line):
                    return line
            if self.process.poll() is not None or time.monotonic() > until:
                self.output.seek(0)
                sys.exit(f"no log line matched {words}:\n{self.output.read()[-3000:]}\n{self.log()[-3000:]}")
            time.sleep(0.005)

    def server(self) -> int:
        """Returns the pid of the process that answers requests."""
        said = (self.run_dir / "logs/rollout-0.server.log").read_text()
        return int(re.findall(r"(?:APIServer pid=|listening on \d+ as )(\d+)", said)[-1])

    def kill(self) -> None:
        """Kills the server; one that restarts with each version may be gone."""
        while True:
            try:
                return os.kill(self.server(), signal.SIGKILL)
            except ProcessLookupError:
                time.sleep(0.01)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kind", default="vllm")
    words.add_argument("--kills", type=int, default=20)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--start")
    words.add_argument("--set", action="append", default=[], dest="sets")
    asked = words.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # also ends the run
    start = asked.start or (f"{sys.executable} {ROOT}/tests/support/fake_server.py --kind {asked.kind} --network "
                            "--model {model} --host {host} --port {port}")
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = Served(Path(folder), CONFIG.format(kind=asked.kind, start=start), asked.sets)
        try:
            run.await_line("version committed", 0)
            print("| kill | detected by | seconds until it had its version again |\n|---:|---|---:|", flush=True)
            all_seconds = []
            for kill in range(1, asked.kills + 1):
                time.sleep(chance.uniform(0, 2))
                seen = len(run.log())
                run.kill()
                begin = time.monotonic()
                found = run.await_line("server (doubted|away|ended)", seen)
                run.await_line("server back|version committed", len(run.log()[: run.log().index(found, seen)]))
                all_seconds.append(time.monotonic() - begin)
                how = "a failed request" if "doubted" in found else "a failed commit"
                print(f"| {kill} | {how} | {all_seconds[-1]:.2f} |", flush=True)
                run.await_line("version committed", len(run.log()))
            run.process.send_signal(signal.SIGINT)
            status = run.process.wait(timeout=PATIENCE)
            audit = subprocess.run([TEMPER, "audit", str(run.run_dir)], capture_output=True, text=True, check=False)
            middle = sorted(all_seconds)[len(all_seconds) // 2]
            again = re.findall(r"so far=(\d+)", run.log())
            print(f"\nmedian {middle:.2f} s, least {min(all_seconds):.2f} s, most {max(all_seconds):.2f} s; "
                  f"attempts sampled again: {again[-1] if again else 0}\n")
            print(audit.stdout)
            return int(status not in (0, 130) or audit.returncode != 0)
        finally:
            run.process.kill()
            run.process.wait()


if __name__ == "__main__":
    sys.exit(main())
