"""Moves responses from a producer to a consumer through Temper, Ray's object store and TransferQueue, alternating, and
prints responses/s and processor time of each.

    ./x bench stores [--runs N] [--seconds N] [--producers N] [--stores NAME...] [--only TOKENS,BYTES,BATCH ...]

Temper's row is a whole run, as in bench/tensors.py: an engine and a trainer in Python that do nothing, and the
orchestrator, which also schedules requests, has each response judged, applies the staleness rule, logs, certifies and
publishes weights for each step; a batch is what a step trains, while engines pass on each response alone. `temper,
native` has Temper's own engine and trainer in the place of those in Python. The peers have a producer and a consumer
process that do nothing else (bench/peers/store_run/peers.py), and a batch is what they put and get at once. `ray` puts
arrays of all rows of a batch, `ray, list` a list of rows. TransferQueue uses its default storage, and its client as in
its tutorials (put, get_meta, get_data, clear_samples). The environment with both is made in build/integration-stores."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "bench"), str(ROOT / "python/src")]

from environment import GROUPS, Environment, integration_environment  # noqa: E402

WANTED = {"base": GROUPS["base"], "torch": GROUPS["torch"], "ray": ["ray[default]==2.60.0"],
          "transfer_queue": ["TransferQueue==0.1.11"]}
STORES = ("temper", "temper, native", "ray", "ray, list", "transfer_queue")

#: Tokens of a response, bytes of its column, responses of a batch.
SHAPES = [(256, 0, 1), (256, 0, 64), (256, 0, 1024), (256, 1 << 16, 64), (256, 8 << 20, 8), (8192, 0, 64),
          (8192, 8 << 20, 8), (32768, 60_000_000, 2)]

Shape = tuple[int, int, int]
Figures = tuple[float, float]  # responses per second, processor seconds for one


def stores_environment() -> Environment:
    folder = integration_environment().folder
    return Environment(folder.with_name(folder.name + "-stores"), WANTED)


def with_temper(shape: Shape, producers: int, native: bool, seconds: float) -> Figures:
    """A step has as many responses as a batch of the others."""
    from tensors import Case, run

    tokens, size, batch = shape
    steps = round(seconds * (8 if size >= 1 << 20 else 60 if batch > 64 or size or tokens > 256 else 200))
    steps = max(20, steps * (4 if native else 1))
    groups = max(1, batch // 8)
    case = Case(tokens, size, "shm", producers, steps, groups, batch // groups, max(1, 64 // batch) if not size else 1, not native)
    found = run(case)
    return found.rate, found.processor


class Peers:
    """One process with the producers and consumers of all peers, which wait while another store is measured."""

    def __init__(self, stores: list[str], producers: int, log: Path):
        words = [sys.executable, str(HERE / "store_run/peers.py"), str(producers), *stores]
        with log.open("wb") as output:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True)
        self.log = log
        self.answer("ready")

    def answer(self, expected: str = "") -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(expected or "["):
                return line
        raise SystemExit(f"stores: the process of the peers ended\n{self.log.read_text()[-3000:]}")

    def measure(self, store: str, shape: Shape, seconds: float) -> Figures:
        assert self.process.stdin is not None
        print(json.dumps([store, *shape, seconds]), file=self.process.stdin, flush=True)
        rate, processor = json.loads(self.answer())
        return rate, processor

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def alternating(stores: list[str], asked: argparse.Namespace, log: Path) -> dict[str, list[dict[Shape, Figures]]]:
    """The figures of each store, run by run."""
    found: dict[str, list[dict[Shape, Figures]]] = {store: [{} for _ in range(asked.runs)] for store in stores}
    others = [store for store in stores if not store.startswith("temper")]
    peers = Peers(others, asked.producers, log) if others else None
    for number in range(asked.runs):
        for shape in asked.only:
            for store in stores:
                if store == "temper, native" and shape[1]:
                    continue  # it attaches no tensors
                if store.startswith("temper"):
                    figures = with_temper(shape, asked.producers, store != "temper", asked.seconds)
                else:
                    assert peers is not None
                    figures = peers.measure(store, shape, asked.seconds)
                found[store][number][shape] = figures
                print(f"stores: {json.dumps([number, store, *shape, *figures])}", file=sys.stderr, flush=True)
    if peers is not None:
        peers.close()
    return found


def print_table(stores: list[str], shapes: list[Shape], found: dict[str, list[dict[Shape, Figures]]]) -> None:
    print("| tokens | bytes of a column | batch | store | responses/s (least to most) | of `temper` | processor, ms of one | of `temper` |")
    print("|---:|---:|---:|---|---:|---:|---:|---:|")
    for shape in shapes:
        medians: dict[str, Figures] = {}
        for store in stores:
            measured = [one[shape] for one in found[store] if shape in one]
            if not measured:
                continue
            rates = [rate for rate, _ in measured]
            medians[store] = (statistics.median(rates), statistics.median(seconds for _, seconds in measured))
            rate, seconds = medians[store]
            ratios = ("", "")
            if "temper" in medians:
                ratios = (f"{rate / medians['temper'][0]:.2f}", f"{seconds / medians['temper'][1]:.2f}")
            print(f"| {shape[0]:,} | {shape[1]:,} | {shape[2]:,} | {store} | {rate:,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) "
                  f"| {ratios[0]} | {seconds * 1e3:.3g} | {ratios[1]} |")


def shape_of(text: str) -> Shape:
    tokens, size, batch = (int(x) for x in text.split(","))
    return tokens, size, batch


def main() -> int:
    words = argparse.ArgumentParser(prog="./x bench stores", description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--runs", type=int, default=3, help="of each store")
    words.add_argument("--seconds", type=float, default=2, help="of a measurement, about")
    words.add_argument("--producers", type=int, default=1)
    words.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    words.add_argument("--only", nargs="+", type=shape_of, default=SHAPES, metavar="TOKENS,BYTES,BATCH")
    asked = words.parse_args()
    environment = stores_environment()
    if Path(sys.prefix) != environment.folder:
        environment.make()
        os.execv(environment.python, [str(environment.python), *sys.argv])
    missing = {group: why for group, why in environment.packages().items() if why}
    for group, why in missing.items():
        print(f"stores: without {group}: {why}", file=sys.stderr)
    stores = [s for s in asked.stores if s.partition(",")[0] not in missing and not (s.startswith("ray") and "ray" in missing)]
    print(f"Ray {version('ray')}, TransferQueue {version('TransferQueue')}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print_table(stores, asked.only, alternating(stores, asked, Path(folder, "log")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
