"""Complete runs, started as by a user."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from environment import ROOT

PATIENCE = 420


class Run:
    """`temper run` of this configuration, with its roles' modules in the folder of the configuration."""

    def __init__(self, temper: str, folder: Path, config: str, *sets: str, path: str = "", tree: bool = True,
                 start: Path | None = None, **variables: str) -> None:
        """`path`: more folders of modules; `tree`: the package is that of this tree, not of the interpreter; `start`: what
        the run starts from (--from)."""
        self.temper_program, self.folder, self.run_dir = temper, folder, folder / "run"
        file = folder / "config.yaml"
        file.write_text(config)
        paths = [str(folder), path, *([str(ROOT / "python/src")] if tree else [])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}
        words = [word for given in (f"run_dir={self.run_dir}", *sets) for word in ("--set", given)]
        words += ["--from", str(start)] if start else []
        self.output = folder / "output"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen([temper, "run", str(file), "--plain", *words], stdout=output,
                                            stderr=subprocess.STDOUT, cwd=folder, env=environment)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """What it printed, and the ends of its actors' logs: for messages of failures."""
        logs = sorted((self.run_dir / "logs").glob("*.log"))
        return self.output.read_text() + "".join(f"\n-- {p.name}\n{p.read_text()[-1500:]}" for p in logs)

    def finish(self, status: int = 0, patience: float = PATIENCE) -> str:
        """Waits for its end; what it printed."""
        try:
            got = self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not finished in {patience} s:\n{self.said()}") from None
        assert got == status, f"status {got}:\n{self.said()}"
        return self.output.read_text()

    def stop(self, after: int) -> None:
        """Lets it make so many updates in all, then stops it. A test that acts on a run in progress gives it more steps
        than it could ever make, so that the run cannot end first."""
        self.await_updates(after)
        self.process.send_signal(signal.SIGINT)
        self.finish(status=130)

    def metrics(self) -> list[dict[str, Any]]:
        """Of each update; where one was made again, of the last time."""
        file = self.run_dir / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        by_step = {}
        for line in lines:
            try:
                one = json.loads(line)
            except ValueError:
                continue  # not yet whole
            by_step[one["step"]] = one
        return [by_step[step] for step in sorted(by_step)]

    def updates(self) -> int:
        metrics = self.metrics()
        return int(metrics[-1]["step"]) if metrics else 0

    def await_updates(self, count: int) -> None:
        until = time.monotonic() + PATIENCE
        while self.updates() < count:
            assert self.process.poll() is None, f"ended before update {count}:\n{self.said()}"
            assert time.monotonic() < until, f"no update {count} in {PATIENCE} s:\n{self.said()}"
            time.sleep(0.1)

    def pids_of(self, name: str) -> list[int]:
        """Processes below the run's whose name (of the kernel) is this."""
        found, waiting = [], [self.process.pid]
        while waiting:
            pid = waiting.pop()
            try:
                for task in Path(f"/proc/{pid}/task").iterdir():
                    waiting += [int(child) for child in (task / "children").read_text().split()]
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    found.append(pid)
            except OSError:
                continue  # it has ended
        return found

    def assert_audit_is_clean(self) -> None:
        done = subprocess.run([self.temper_program, "audit", str(self.run_dir)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr


def canaries(run: Run) -> list[float]:
    """How far off a server's log-probs were for each version that counted, in order."""
    text = (run.run_dir / "logs" / "rollout-0.log").read_text()
    return [float(x) for x in re.findall(r"version committed .*canary=(\S+)", text)]
