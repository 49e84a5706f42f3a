#!/usr/bin/env python3
"""Samples the resident memory of all processes of a local run and compares it with the ledger of `temper check`.

    python3 bench/card_memory.py build/release/bin/temper CONFIG [--set KEY=VALUE ...]

Prints the peak of all workers together, by process, and the total of the ledger.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20
EVERY = 0.004


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def held(pid: int) -> tuple[str, int]:
    """Returns name and resident bytes; none if the process has ended."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        return name, int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return "", 0


def ledger(temper: str, arguments: list[str]) -> float:
    said = subprocess.run([temper, "check", *arguments], check=True, capture_output=True, text=True)
    found = re.search(r"all cards\s+([0-9.]+)", said.stdout)
    if found is None:
        sys.exit("the configuration has no memory ledger; expected hardware local and policy torch")
    return float(found[1])


def main() -> None:
    temper, *arguments = sys.argv[1:]
    predicted = ledger(temper, arguments)
    most: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [temper, "run", "--plain", *arguments, "--set", f"run_dir={folder}/run"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while run.poll() is None:
            now = dict(held(child) for child in children(run.pid))
            if sum(now.values()) > sum(most.values()):
                most = now
            time.sleep(EVERY)
    if run.returncode != 0:
        sys.exit(f"the run failed with status {run.returncode}")
    measured = sum(most.values()) / MIB
    for name, size in sorted(most.items()):
        print(f"{name or '(ended)':<16} {size / MIB:8.1f} MiB")
    print(f"{'all cards':<16} {measured:8.1f} MiB, by the ledger {predicted:.1f} ({measured / predicted - 1:+.1%})")


if __name__ == "__main__":
    main()
