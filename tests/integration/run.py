"""The integration tests: Temper beside the real packages it works with, in an environment of their own.

    ./x test integration [NAME...] [--budget SECONDS] [--jobs N] [-- ARGUMENTS of pytest...]

Runs tests/integration/*_test.py, or those whose name holds a NAME, each file in a process of its own, two at a time
unless told. What cannot be fetched here is skipped with its reason; anything else that does not work has failed, also a
package that was fetched and cannot be loaded, and a file that is not done when the time of all of them together
(2,700 s unless told) is over. The last line has the counts.

Variables: TEMPER, the program; TEMPER_INTEGRATION_ENV, an environment to use in the place of build/integration.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path

from environment import ROOT, integration_environment

HERE = Path(__file__).resolve().parent
BUDGET = 2700.0
RUNNING: set[subprocess.Popen[bytes]] = set()


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __iadd__(self, other: Counts) -> Counts:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def counts_of(report: Path, status: int) -> Counts:
    """Of one file. One that ended badly without a failed test (a crash, an import) is one failure."""
    counts = Counts()
    if report.exists():
        for suite in xml.parse(report).getroot().iter("testsuite"):
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            counts += Counts(int(suite.get("tests", 0)) - bad - skipped, bad, skipped)
    if status not in (0, 5) and counts.failed == 0:
        counts.failed = 1
    return counts


def run_file(python: Path, file: Path, end: float, more: list[str]) -> tuple[Counts, str]:
    """Until `end` of the monotonic clock. The counts, and what pytest printed with a line of ours before and after."""
    path = os.pathsep.join([str(ROOT / "python/src"), str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    environment = {**os.environ, "PYTHONPATH": path, "TEMPER_PYTHON": str(python), "HF_HUB_OFFLINE": "1",
                   "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1",
                   "COLUMNS": "400"}  # a line of pytest's summary has the reason too
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, output = Path(folder) / "report.xml", Path(folder) / "output"
        with output.open("wb") as to:
            process = subprocess.Popen(
                [str(python), "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", "--timeout=600",
                 "--rootdir", str(HERE), f"--junitxml={report}", str(file), *more],
                cwd=HERE, env=environment, start_new_session=True, stdout=to, stderr=to)
        RUNNING.add(process)
        late = ""
        try:
            status = process.wait(timeout=max(end - begin, 1))
        except subprocess.TimeoutExpired:
            late, status = f"failed: {file.name}: not done when the time of all was over\n", 124
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        RUNNING.discard(process)
        if status not in (0, 1, 5, 124):
            late = f"failed: {file.name}: pytest ended with {status}\n"
        counts = counts_of(report, status)
        text = output.read_text(errors="replace")
    return counts, (f"-- {file.name}\n{text}{late}"
                    f"-- {file.name}: {counts}; {time.monotonic() - begin:.0f} s")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("name", nargs="*", help="part of the name of a file")
    words.add_argument("--budget", type=float, default=BUDGET, help="seconds for all files together")
    words.add_argument("--jobs", type=int, default=2, help="files at a time")
    mine, more = sys.argv[1:], []
    if "--" in mine:
        at = mine.index("--")
        mine, more = mine[:at], mine[at + 1:]
    asked = words.parse_args(mine)
    files = [file for file in sorted(HERE.glob("*_test.py"))
             if not asked.name or any(name in file.name for name in asked.name)]
    if not files:
        print(f"no file of {HERE} has a name with {' or '.join(asked.name)}", file=sys.stderr)
        return 1
    environment = integration_environment()
    try:
        environment.make()
    except RuntimeError as error:
        print(f"no environment for these tests: {error}\n0 passed, 0 failed, {len(files)} skipped")
        return 0
    for group, reason in environment.packages().items():
        if reason:
            print(f"{'BROKEN' if group in environment.broken() else 'without'} {group}: {reason}")
    total, end = Counts(failed=len(environment.broken())), time.monotonic() + asked.budget
    with ThreadPoolExecutor(asked.jobs) as pool:
        tests = [pool.submit(run_file, environment.python, file, end, more) for file in files]
        try:
            for done in as_completed(tests):
                counts, text = done.result()
                print(text, flush=True)
                total += counts
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in RUNNING.copy():
                os.killpg(process.pid, signal.SIGKILL)
            raise
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
