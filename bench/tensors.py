#!/usr/bin/env python3
"""What tensors of responses cost: responses and bytes per second that reach the trainer through each store, beside a
plain copy through shared memory; processor time; the memory of the orchestrator, and the bytes of its sockets.

    ./x bench tensors [RUNS] [PART...]

An engine attaches one array of each size to every response, and the trainer reads all of it. Without tensors, the
same run is the baseline. A plain copy writes the same array into a file in /dev/shm and reads it through a mapping,
in one process. `redis` is a server on this machine that this program starts; without redis-server, its rows are
missing. A run has one process that trains, so it has one reader; a response is 256 or 8,192 tokens, or 32,768 with a
column of 60 MB, as large as the routes of its experts. Prints Markdown tables with the medians of RUNS (3) alternating
runs. A PART is `sizes`, `engines` or `sockets`; without one, all. `sockets` runs under strace, which slows a run, and
counts what the orchestrator's process sends and receives for each response after the first ones.
"""

from __future__ import annotations

import json
import mmap
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import temper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "docs"))

from figures_program import family  # noqa: E402

#: Steps before a measurement starts.
WARM = 5

CONFIG = """
name: tensors
policy: synthetic
steps: {steps}
algorithm: {{groups_per_update: {groups}, responses_per_group: {responses}, minibatches: 1}}
sampling: {{max_new_tokens: {tokens}}}
synthetic: {{tokens: {tokens}}}
rollout: {{replicas: {engines}, concurrency: {concurrency}{engine}}}
{trainer}reference: {{replicas: 0}}
checkpoint: {{every: 0}}
staleness: {{bound: {bound}}}
payloads: {{store: {store}{redis}}}
"""
ENGINE = ', engine: {{kind: python, use: "tensors:Engine", with: {{size: {size}, tokens: {tokens}}}}}'
TRAINER = 'trainer: {engine: {kind: python, use: "tensors:Trainer"}}\n'


@dataclass(frozen=True)
class Case:
    """One run. `size`: bytes of a response's tensor; a step has `groups` x `responses` responses."""

    tokens: int = 256
    size: int = 0
    store: str = "shm"
    engines: int = 1
    steps: int = 100
    groups: int = 8
    responses: int = 8
    bound: int = 1
    python: bool = True  # roles in Python, or those of Temper, which have no tensors

    @property
    def update(self) -> int:
        return self.groups * self.responses

    def config(self, port: int) -> str:
        words = {"steps": self.steps, "groups": self.groups, "responses": self.responses, "tokens": self.tokens,
                 "engines": self.engines, "bound": self.bound, "store": self.store}
        words["redis"] = f', redis: "127.0.0.1:{port}"' if self.store == "redis" else ""
        words["concurrency"] = -(-max(64, (2 if self.update > 64 else 1) * self.update) // self.engines)
        words["engine"] = ENGINE.format(size=self.size, tokens=self.tokens) if self.python else ""
        return CONFIG.format(trainer=TRAINER if self.python else "", **words)


@dataclass(frozen=True)
class Figures:
    rate: float  # responses per second
    memory: float  # of the orchestrator, the most, MB
    processor: float  # seconds of all processes for a response


class Engine(temper.Engine):
    def __init__(self, size: int, tokens: int) -> None:
        self.tensor = np.random.default_rng(1).integers(0, 255, size, np.uint8)
        self.count = tokens

    def load(self, version: int, weights: temper.Weights) -> None:
        pass

    def generate(self, requests: list[temper.Request]):  # noqa: ANN201
        tokens = np.full(self.count, self.role.vocabulary.first, np.int32)
        logprobs = np.full(self.count, -1.0, np.float32)
        tensors = {"routes": self.tensor} if self.tensor.size else None
        for r in requests:
            yield r.done(tokens, logprobs, "length", tensors=tensors)


class Trainer(temper.Trainer):
    def update(self, batch: temper.Batch) -> None:
        for row in batch:
            for tensor in row.tensors.values():
                tensor.sum(dtype=np.uint64)

    def publish(self) -> dict[str, np.ndarray]:
        return {"w": np.zeros(4, np.float32)}

    def save(self, folder: pathlib.Path) -> None:
        pass

    def load(self, folder: pathlib.Path) -> None:
        pass


def add_processor_seconds(used: dict[int, float], pids: list[int]) -> float:
    """Of all processes in `used`, which keeps what those had that are gone."""
    for pid in pids:
        try:
            words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used[pid] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return sum(used.values())


def steps_of(run: pathlib.Path) -> list[float]:
    """When each step ended, in seconds."""
    try:
        return [json.loads(line)["time"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    except (OSError, ValueError):  # not yet, or in the middle of a line
        return []


def command(case: Case, folder: pathlib.Path, port: int) -> tuple[list[str], dict[str, str]]:
    (folder / "config.yaml").write_text(case.config(port))
    path = os.pathsep.join([str(HERE), str(HERE.parent / "python/src")])
    words = [os.environ["TEMPER"], "run", str(folder / "config.yaml"), "--plain", "--set", f"run_dir={folder / 'run'}"]
    return words, {**os.environ, "TEMPER_PYTHON": sys.executable, "PYTHONPATH": path}


def run(case: Case, port: int = 0, server: int = 0) -> Figures:
    """Measured from the fifth step to the last; processor time also of the process `server`."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        words, environment = command(case, folder, port)
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
        most = 0.0
        samples: list[tuple[int, float]] = []
        used: dict[int, float] = {}
        while process.poll() is None:
            done = len(steps_of(folder / "run"))
            samples.append((done, add_processor_seconds(used, [*family(process.pid), *([server] if server else [])])))
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                most = max(most, int(status.partition("VmHWM:")[2].split()[0]) / 1000)
            except (OSError, IndexError):
                pass
            time.sleep(0.1)
        if process.returncode != 0:
            raise SystemExit(log.read_text())
        at = steps_of(folder / "run")
        return Figures(case.update * (len(at) - WARM) / (at[-1] - at[WARM - 1]), most, per_response(samples, case))


def per_response(samples: list[tuple[int, float]], case: Case) -> float:
    """Processor seconds, from samples of (steps done, seconds); NaN if the run was too short to tell."""
    during = [sample for sample in samples if WARM <= sample[0] < case.steps]
    if len(during) < 2 or during[-1][0] == during[0][0]:
        return float("nan")
    return (during[-1][1] - during[0][1]) / (case.update * (during[-1][0] - during[0][0]))


def socket_bytes(case: Case, port: int) -> tuple[float, float]:
    """Received and sent by the orchestrator's process for each response after the first steps."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        words, environment = command(case, folder, port)
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
            while process.poll() is None and len(steps_of(folder / "run")) < WARM:
                time.sleep(0.01)
            trace = ["strace", "-ff", "-qq", "-s", "0", "-e", "trace=sendto,sendmsg,recvfrom,recvmsg", "-e", "signal=none",
                     "-o", str(folder / "trace"), "-p", str(process.pid)]  # of its threads, not of its workers
            tracer = subprocess.Popen(trace, stdout=output, stderr=output)
            while process.poll() is None and not any(file.stat().st_size for file in folder.glob("trace.*")):
                time.sleep(0.001)
            first = len(steps_of(folder / "run"))
            process.wait()
            tracer.wait()
        if process.returncode != 0:
            raise SystemExit(log.read_text())
        if first > case.steps // 2:
            raise SystemExit(f"tensors: strace attached after step {first} of {case.steps}, expected the first half\n{log.read_text()}")
        received, sent = traced_bytes(folder)
        responses = case.update * (case.steps - first)
        return received / responses, sent / responses


def traced_bytes(folder: pathlib.Path) -> tuple[int, int]:
    """Received and sent, in the files of strace."""
    received = sent = 0
    for file in folder.glob("trace.*"):
        for call, count in re.findall(r"^(send|recv)\w+\(.* = (\d+)$", file.read_text(), re.MULTILINE):
            received, sent = (received + int(count), sent) if call == "recv" else (received, sent + int(count))
    return received, sent


@dataclass(frozen=True)
class Copy:
    rate: float  # bytes per second
    processor: float  # seconds for one array


def plain_copy(size: int) -> Copy:
    """A write into /dev/shm and a read of it through a mapping."""
    data = np.random.default_rng(1).integers(0, 255, size, np.uint8)
    count = max(8, (1 << 28) // size)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        begin, used = time.monotonic(), time.process_time()
        for i in range(count):
            file = pathlib.Path(folder, str(i))
            file.write_bytes(data.data)
            with file.open("rb") as opened:
                np.frombuffer(mmap.mmap(opened.fileno(), size, prot=mmap.PROT_READ), np.uint8).sum(dtype=np.uint64)
            file.unlink()
        return Copy(count * size / (time.monotonic() - begin), (time.process_time() - used) / count)


def start_redis() -> tuple[subprocess.Popen[bytes] | None, int]:
    """A server that stores nothing on disk, and its port."""
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    if shutil.which("redis-server") is None:
        return None, port
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(words, cwd=tempfile.gettempdir(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while server.poll() is None and time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return server, port
        time.sleep(0.01)
    server.kill()
    raise SystemExit(f"redis-server: expected it to listen on port {port} within 30 s")


def alternating(cases: dict[str, Case], runs: int, redis: tuple[int, int]) -> dict[str, tuple[Figures, Copy]]:
    """Medians by name, with those of the plain copy. `redis`: its port and process."""
    found: dict[str, list[Figures]] = {name: [] for name in cases}
    copies: dict[str, list[Copy]] = {name: [] for name in cases}
    for _ in range(runs):
        copy = {size: plain_copy(size) if size else Copy(0, 0) for size in {case.size for case in cases.values()}}
        for name, case in cases.items():
            copies[name].append(copy[case.size])
            found[name].append(run(case, redis[0], redis[1] if case.store == "redis" else 0))
    return {name: (medians(Figures, found[name]), medians(Copy, copies[name])) for name in cases}


def medians(kind: type, measured: list[Any]) -> Any:
    return kind(*(statistics.median(getattr(one, field.name) for one in measured) for field in fields(kind)))


def shapes(stores: list[str]) -> list[Case]:
    """Without tensors once, and through each store; a step has at most 512 MB of tensors."""
    out: list[Case] = []
    for tokens, size, steps, groups in ((256, 0, 100, 8), (256, 1 << 16, 100, 8), (256, 8 << 20, 20, 8), (8192, 0, 100, 8),
                                        (8192, 1 << 16, 100, 8), (8192, 8 << 20, 20, 8), (32768, 60_000_000, 20, 1)):
        out += [Case(tokens, size, store, 1, steps, groups) for store in (stores if size else stores[:1])]
    return out


def print_sizes(runs: int, stores: list[str], redis: tuple[int, int]) -> None:
    print("| tokens | bytes of a response's tensor | store | responses/s | MB/s | plain copy, MB/s | share | processor, ms of one "
          "| plain copy | share | orchestrator's memory, MB |\n|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    cases = {str(i): case for i, case in enumerate(shapes(stores))}
    for name, (f, copy) in alternating(cases, runs, redis).items():
        case = cases[name]
        rate, processor = f"{f.rate:,.0f} | | | ", f"{f.processor * 1e3:.3g} | | "
        if case.size:
            mb = f.rate * case.size / 1e6
            rate = f"{f.rate:,.0f} | {mb:,.0f} | {copy.rate / 1e6:,.0f} | {mb * 1e6 / copy.rate:.2f}"
            processor = f"{f.processor * 1e3:.3g} | {copy.processor * 1e3:.3g} | {copy.processor / f.processor:.2f}"
        print(f"| {case.tokens:,} | {case.size:,} | {case.store if case.size else 'none'} | {rate} | {processor} | {f.memory:,.0f} |",
              flush=True)


def print_engines(runs: int, redis: tuple[int, int]) -> None:
    print("| engines | bytes of a response's tensor | responses/s | ratio | processor, ms of one |\n|---:|---:|---:|---:|---:|",
          flush=True)
    for size, steps in ((0, 100), (8 << 20, 20)):
        found = alternating({str(n): Case(size=size, steps=steps, engines=n) for n in (1, 2, 4, 8)}, runs, redis)
        for n, (f, _) in found.items():
            print(f"| {n} | {size:,} | {f.rate:,.0f} | {f.rate / found['1'][0].rate:.2f} | {f.processor * 1e3:.3g} |", flush=True)


def print_sockets(stores: list[str], port: int) -> None:
    print("| tokens | bytes of a response's tensor | store | received, bytes for a response | sent |\n|---:|---:|---|---:|---:|",
          flush=True)
    for case in shapes(stores):
        received, sent = socket_bytes(replace(case, steps=100 if case.size < 1 << 20 else 20), port)
        print(f"| {case.tokens:,} | {case.size:,} | {case.store if case.size else 'none'} | {received:,.0f} | {sent:,.0f} |", flush=True)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    parts = sys.argv[2:] or ["sizes", "engines", "sockets"]
    server, port = start_redis()
    stores = ["shm", "redis"] if server else ["shm"]
    redis = (port, server.pid if server else 0)
    try:
        for part in parts:
            if part == "sizes":
                print_sizes(runs, stores, redis)
            elif part == "engines":
                print_engines(runs, redis)
            elif part == "sockets" and shutil.which("strace"):
                print_sockets(stores, port)
            else:
                raise SystemExit(f"tensors: {part}: expected sizes, engines or sockets (which needs strace)")
            print()
    finally:
        if server:
            server.kill()


if __name__ == "__main__":
    main()
