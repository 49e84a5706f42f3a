#!/usr/bin/env python3
"""What the package costs: responses/s through an engine and a trainer that do nothing, in Python and our
own, of 256 tokens each.

    TEMPER=build/release/bin/temper build/python/bin/python python/bench.py

Measures whole runs, from the fifth update to the last: generated, judged by our own reward actor, trained.
Prints the median of three runs of each, with the least and the most.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import temper

HERE = pathlib.Path(__file__).resolve().parent
UPDATE = 1024  # responses
RUNS = 3

CONFIG = """
name: bench
policy: synthetic
steps: 60
algorithm: {groups_per_update: 64, responses_per_group: 16}
sampling: {max_new_tokens: 256}
synthetic: {tokens: 256}
rollout: {replicas: 1, concurrency: 2048}
reference: {replicas: 0}
checkpoint: {every: 0}
"""
PYTHON = {
    "engine": ["rollout.engine.kind=python", "rollout.engine.use=bench:Engine"],
    "trainer": ["trainer.engine.kind=python", "trainer.engine.use=bench:Trainer"],
}


def rate(folder: pathlib.Path, sets: list[str]) -> float:
    config = folder / "config.yaml"
    config.write_text(CONFIG)
    command = [os.environ["TEMPER"], "run", str(config), "--plain"]
    for item in [f"run_dir={folder / 'run'}", *sets]:
        command += ["--set", item]
    path = os.pathsep.join([str(HERE), str(HERE / "src")])
    environment = {**os.environ, "TEMPER_PYTHON": sys.executable, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    lines = (folder / "run/metrics.jsonl").read_text().splitlines()
    first, last = json.loads(lines[4]), json.loads(lines[-1])
    return (last["step"] - first["step"]) * UPDATE / (last["time"] - first["time"])


def main() -> None:
    cases = {
        "our own engine and trainer": [],
        "engine in Python": PYTHON["engine"],
        "trainer in Python": PYTHON["trainer"],
        "both in Python": PYTHON["engine"] + PYTHON["trainer"],
    }
    for name, sets in cases.items():
        rates = []
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                rates.append(rate(pathlib.Path(folder), sets))
        print(
            f"{name:<28} {statistics.median(rates):8.0f} responses/s of 256 tokens "
            f"({min(rates):.0f} to {max(rates):.0f})",
            flush=True,
        )


class Engine(temper.Engine):
    def __init__(self) -> None:
        self.tokens = (2 + np.arange(256) % 12).astype(np.int32)
        self.logprobs = np.full(256, -1.0, np.float32)

    def generate(self, requests: list[temper.Request]) -> list[temper.Completion]:
        return [r.done(self.tokens, self.logprobs, "length") for r in requests]


class Trainer(temper.Trainer):
    def update(self, batch: temper.Batch) -> None:
        pass

    def publish(self) -> dict[str, np.ndarray]:
        return {"w": np.zeros(1, np.float32)}

    def save(self, folder: pathlib.Path) -> None:
        pass


if __name__ == "__main__":
    main()
