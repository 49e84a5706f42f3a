#!/usr/bin/env python3
"""What tensors of responses cost: the bytes per second that reach the trainer through each store, beside a plain copy
through shared memory, and the memory of the orchestrator.

    ./x bench tensors [RUNS]

An engine attaches one array of each size to every response, and the trainer reads all of it. Without tensors, the
same run is the baseline. A plain copy writes the same array into a file in /dev/shm and reads it through a mapping,
in one process. `redis` is a server on this machine that this program starts; without redis-server, its rows are
missing. Prints a Markdown table with the medians of RUNS (3) alternating runs.
"""

from __future__ import annotations

import json
import mmap
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import temper

HERE = pathlib.Path(__file__).resolve().parent
UPDATE = 64  # responses

CONFIG = """
name: tensors
policy: synthetic
steps: {steps}
algorithm: {{groups_per_update: 8, responses_per_group: 8}}
sampling: {{max_new_tokens: 256}}
rollout: {{replicas: 1, concurrency: 64, engine: {{kind: python, use: "tensors:Engine", with: {{size: {size}}}}}}}
trainer: {{engine: {{kind: python, use: "tensors:Trainer"}}}}
reference: {{replicas: 0}}
checkpoint: {{every: 0}}
staleness: {{bound: 1}}
payloads: {{store: {store}, redis: "127.0.0.1:{port}"}}
"""


class Engine(temper.Engine):
    def __init__(self, size: int) -> None:
        self.tensor = np.random.default_rng(1).integers(0, 255, size, np.uint8)

    def load(self, version: int, weights: temper.Weights) -> None:
        pass

    def generate(self, requests: list[temper.Request]):  # noqa: ANN201
        tokens = np.full(256, self.role.vocabulary.first, np.int32)
        logprobs = np.full(256, -1.0, np.float32)
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


def run(size: int, steps: int, store: str, port: int) -> tuple[float, float]:
    """Responses per second from the fifth update to the last, and the orchestrator's most memory (MB)."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "config.yaml").write_text(CONFIG.format(steps=steps, size=size, store=store, port=port))
        path = os.pathsep.join([str(HERE), str(HERE.parent / "python/src")])
        process = subprocess.Popen(
            [os.environ["TEMPER"], "run", str(folder / "config.yaml"), "--plain", "--set", f"run_dir={folder / 'run'}"],
            env={**os.environ, "TEMPER_PYTHON": sys.executable, "PYTHONPATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        most = 0.0
        while process.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                most = max(most, int(status.partition("VmHWM:")[2].split()[0]) / 1000)
            except (OSError, IndexError):
                pass
            time.sleep(0.1)
        if process.returncode != 0:
            raise SystemExit(process.stdout.read() if process.stdout else "")
        at = [json.loads(line)["time"] for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
        return UPDATE * (len(at) - 5) / (at[-1] - at[4]), most


def plain_copy(size: int) -> float:
    """Bytes per second of a write into /dev/shm and a read of it through a mapping."""
    data = np.random.default_rng(1).integers(0, 255, size, np.uint8)
    count = max(8, (1 << 28) // size)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        begin = time.monotonic()
        for i in range(count):
            file = pathlib.Path(folder, str(i))
            file.write_bytes(data.data)
            with file.open("rb") as opened:
                np.frombuffer(mmap.mmap(opened.fileno(), size, prot=mmap.PROT_READ), np.uint8).sum(dtype=np.uint64)
            file.unlink()
        return count * size / (time.monotonic() - begin)


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


def measure(runs: int, stores: list[str], port: int) -> None:
    for size, steps in ((0, 100), (1 << 16, 100), (8 << 20, 20)):
        figures: dict[str, list[tuple[float, float, float]]] = {store: [] for store in stores if size or store == "shm"}
        for _ in range(runs):  # alternating
            copy = plain_copy(size) if size else 0.0
            for store, found in figures.items():
                found.append((*run(size, steps, store, port), copy))
        for store, found in figures.items():
            rate, memory, copy = (statistics.median(column) for column in zip(*found))
            mb = rate * size / 1e6
            share = f"{mb * 1e6 / copy:.2f}" if size else ""
            print(
                f"| {size:,} | {store if size else 'none'} | {rate:,.0f} | {mb:,.0f} | {copy / 1e6:,.0f} | {share} "
                f"| {memory:,.0f} |",
                flush=True,
            )


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    server, port = start_redis()
    print("| bytes of a response's tensor | store | responses/s | MB/s | plain copy, MB/s | share | orchestrator's memory, MB |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    try:
        measure(runs, ["shm", "redis"] if server else ["shm"], port)
    finally:
        if server:
            server.kill()


if __name__ == "__main__":
    main()
