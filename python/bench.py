#!/usr/bin/env python3
"""What the package costs: responses/s through an engine and a trainer that do nothing, in Python and our
own, of 256 tokens each.

    ./x bench sdk [RUNS]

Measures whole runs, from the fifth update to the last: generated, judged by our own reward actor, trained.
Prints the median of three runs of each (or of RUNS), with the least and the most; and the processor time of all
processes of a run, its start included, by thousands of responses: a busy machine changes the first figure more.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import temper

HERE = pathlib.Path(__file__).resolve().parent
UPDATE = 1024  # responses

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


def processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rate(folder: pathlib.Path, sets: list[str]) -> tuple[float, float]:
    """Responses per second, and processor seconds for a thousand of them."""
    config = folder / "config.yaml"
    config.write_text(CONFIG)
    command = [os.environ["TEMPER"], "run", str(config), "--plain"]
    for item in [f"run_dir={folder / 'run'}", *sets]:
        command += ["--set", item]
    path = os.pathsep.join([str(HERE), str(HERE / "src")])
    environment = {**os.environ, "TEMPER_PYTHON": sys.executable, "PYTHONPATH": path}
    before = processor_seconds()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    lines = (folder / "run/metrics.jsonl").read_text().splitlines()
    first, last = json.loads(lines[4]), json.loads(lines[-1])
    used = (processor_seconds() - before) / (last["step"] * UPDATE / 1000)
    return (last["step"] - first["step"]) * UPDATE / (last["time"] - first["time"]), used


def main() -> None:
    cases = {
        "our own engine and trainer": [],
        "engine in Python": PYTHON["engine"],
        "trainer in Python": PYTHON["trainer"],
        "both in Python": PYTHON["engine"] + PYTHON["trainer"],
    }
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{'of 256 tokens':<28} responses/s (least to most)   processor s of 1,000")
    for name, sets in cases.items():
        found = []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                found.append(rate(pathlib.Path(folder), sets))
        rates, used = zip(*found)
        span = f"({min(rates):.0f} to {max(rates):.0f})"
        print(
            f"{name:<28} {statistics.median(rates):11.0f} {span:<17} {statistics.median(used):20.3f}",
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
