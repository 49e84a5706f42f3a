"""Measures the publication of a version of the weights to engines on other hosts, by relay and by broadcast, and compares
it with the prediction of the simulated publication from sizes and links.

    ./x bench relay [RECEIVERS...]      default: 2, 4 and 8

Hosts are network namespaces with links of 20 Mbit/s (needs root, ip and tc); each engine has its own host, each version has
16 MiB, and the time is the mean over two versions of a run whose connections are open. Prints a table."""

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
from publications import Publications, predicted, run_of  # noqa: E402

TEMPER = os.environ.get("TEMPER") or str(ROOT / "build/release/bin/temper")
MEASURED = 2


def measured(folder: Path, receivers: int, weights: str, expected: float) -> float:
    with run_of(TEMPER, folder, receivers, weights) as (run, _):
        # The first version reaches engines one by one; the second opens connections.
        run.until(lambda: len(Publications(run).whole(receivers)) > MEASURED, "versions that all engines have",
                  patience=60 + 10 * expected * (MEASURED + 2))
        run.stop()
        run.is_whole(None)
        published = Publications(run)
    return statistics.fmean([published.seconds(v) for v in published.whole(receivers)][1 : MEASURED + 1])


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # also ends the hosts
    if why := unable():
        print(f"relay: {why}", file=sys.stderr)
        return 1
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
