"""Measures the publication of a version of the weights to engines on other hosts, by relay and by broadcast, and compares
it with the prediction of the simulated publication from sizes and links.

    ./x bench relay [RECEIVERS...]      default: 2, 4 and 8
    ./x bench relay --trainer [MIB...]  default: 10 and 100

Hosts are network namespaces with links of 20 Mbit/s (needs root, ip and tc); each engine has its own host, each version has
16 MiB, and the time is the mean over two versions of a run whose connections are open. Prints a table.

With --trainer, the trainer has its own host too, there are two engines, and links have no limit. The table has what passes the
orchestrator's link for each version of so many MiB, and the most memory that the orchestrator holds."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/integration"))

from hosts import unable  # noqa: E402
from publications import Publications, predicted, run_of, run_with_trainer  # noqa: E402

TEMPER = os.environ.get("TEMPER") or str(ROOT / "build/release/bin/temper")
MEASURED = 2
STEPS_MEASURED = 5


def measured(folder: Path, receivers: int, weights: str, expected: float) -> float:
    with run_of(TEMPER, folder, receivers, weights) as (run, _):
        # The first version reaches engines one by one; the second opens connections.
        run.until(lambda: len(Publications(run).whole(receivers)) > MEASURED, "versions that all engines have",
                  patience=60 + 10 * expected * (MEASURED + 2))
        run.stop()
        run.is_whole(None)
        published = Publications(run)
    return statistics.fmean([published.seconds(v) for v in published.whole(receivers)][1 : MEASURED + 1])


def peak_memory(name: str) -> int:
    """Of the largest `temper run` of this run folder, in bytes."""
    peak = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            line = (status.parent / "cmdline").read_text()
            if f"run_dir={name}" in line and "\0run\0" in line:
                peak = max(peak, next(int(row.split()[1]) << 10 for row in status.read_text().splitlines() if row.startswith("VmHWM")))
        except (OSError, StopIteration):
            continue  # it has ended
    return peak


def through_the_orchestrator(folder: Path, mib: int) -> tuple[float, float, int]:
    """MB that its link carries in and out for each version, and its peak memory in bytes."""
    with run_with_trainer(TEMPER, folder, 2, image=mib << 20, rate=None) as (run, _, _trainer):
        run.until(lambda: run.updates() >= STEPS_MEASURED, "the versions to measure")
        peak = peak_memory(str(run.run_dir))
        run.stop()
        run.is_whole(None)
        versions = 1 + len(run.events("trained"))
        received, sent = (total / versions / 1e6 for total in run.hosts.traffic(0))
    return received, sent, peak


def trainer_table(sizes: list[int]) -> None:
    print("| image | orchestrator receives | sends | its peak memory |\n|---:|---:|---:|---:|", flush=True)
    for mib in sizes:
        with tempfile.TemporaryDirectory() as folder:
            received, sent, peak = through_the_orchestrator(Path(folder), mib)
        print(f"| {mib} MiB | {received:.2f} MB | {sent:.2f} MB | {peak / 1e6:.0f} MB |", flush=True)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # also ends the hosts
    if why := unable():
        print(f"relay: {why}", file=sys.stderr)
        return 1
    if "--trainer" in sys.argv[1:]:
        trainer_table([int(word) for word in sys.argv[1:] if word != "--trainer"] or [10, 100])
        return 0
    print("| receivers | | measured | predicted | off |\n|---:|---|---:|---:|---:|", flush=True)
    for receivers in [int(word) for word in sys.argv[1:]] or [2, 4, 8]:
        for weights, replicas in (("relay", "tree"), ("broadcast", "direct")):
            expected = predicted(TEMPER, receivers, replicas)
            with tempfile.TemporaryDirectory() as folder:
                seconds = measured(Path(folder), receivers, weights, expected)
            print(f"| {receivers} | {weights} | {seconds:.2f} s | {expected:.2f} s | {100 * (seconds / expected - 1):+.1f} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
