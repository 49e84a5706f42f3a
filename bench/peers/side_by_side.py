"""Trains one model on one task with Temper and with TRL's GRPOTrainer, alternating, and prints what each needs.

    ./x bench trl [--runs N] [--steps N] [--groups N] [--responses N] [--tokens N] [--dtype TYPE]
        [--model FOLDER --task FILE]

Both get the same folder, prompts, reward, batch, lengths, learning rate, data type and number of threads, one optimizer
step for a batch, and no reference. With bfloat16 both keep float32 weights: Temper rounds operands of matrix products
(`model.compute_dtype`), TRL trains under PyTorch's autocast (`bf16`). A step is measured from the second one on; memory
is the largest sum over all processes, with shared pages divided among those that share them.

TRL's asynchronous trainer is not here: it generates through a vLLM server, which needs a GPU."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "docs")]

from environment import integration_environment  # noqa: E402
from figures_program import family, memory_of  # noqa: E402

TEMPER = os.environ.get("TEMPER") or str(ROOT / "build/release/bin/temper")

CONFIG = """
name: beside_trl
steps: {steps}
task: {{kind: jsonl, path: {task}}}
verifier: {{kind: numeric}}
model: {{path: {model}, context: {context}, compute_dtype: {dtype}}}
algorithm: {{groups_per_update: {groups}, responses_per_group: {responses}, minibatches: 1, learning_rate: {rate}}}
sampling: {{temperature: {temperature}, max_new_tokens: {tokens}}}
reference: {{replicas: 0}}
placement: {{mode: colocated, cards: {threads}}}
rollout: {{concurrency: {slots}}}
staleness: {{bound: {bound}}}
checkpoint: {{every: 0}}
"""


@dataclass
class Measured:
    """What one training needed. Times in seconds, memory in bytes."""

    step_s: float
    processor_s: float  # of a step
    tokens_per_s: float  # of responses, generated and trained
    memory: int
    first_rewards: float  # mean of the first quarter of the steps
    last_rewards: float
    total_s: float


class Watched:
    """Runs a command to its end and records the largest memory of its processes."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]):
        self.peak = 0
        begin = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            ended = threading.Event()
            watch = threading.Thread(target=self._watch, args=(process.pid, ended))
            watch.start()
            try:
                status = process.wait(timeout=3600)
            finally:
                process.kill()
                ended.set()
                watch.join()
        self.seconds = time.monotonic() - begin
        if status:
            raise SystemExit(f"{' '.join(command[:3])}: status {status}\n{log.read_text()[-3000:]}")

    def _watch(self, pid: int, ended: threading.Event) -> None:
        while not ended.wait(0.25):
            self.peak = max(self.peak, 1024 * memory_of(family(pid)))


def quarter_means(rewards: list[float]) -> tuple[float, float]:
    part = max(1, len(rewards) // 4)
    return statistics.fmean(rewards[:part]), statistics.fmean(rewards[-part:])


def processor_seconds() -> float:
    """Of the processes that this one has waited for, and theirs."""
    times = os.times()
    return times.children_user + times.children_system


def with_temper(asked: argparse.Namespace, model: Path, folder: Path, bound: int) -> Measured:
    config, run = folder / "config.yaml", folder / "run"
    config.write_text(CONFIG.format(**{**vars(asked), "model": model}, bound=bound,
                                    slots=asked.groups * asked.responses))
    before = processor_seconds()
    watched = Watched([TEMPER, "run", str(config), "--plain", "--set", f"run_dir={run}"], folder / "log", dict(os.environ))
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = rows[1:]
    seconds = steps[-1]["time"] - rows[0]["time"]
    tokens = sum(row["length"]["mean"] * asked.groups * asked.responses for row in steps)
    first, last = quarter_means([row["rewards"]["mean"] for row in rows])
    return Measured(seconds / len(steps), (processor_seconds() - before) / len(rows), tokens / seconds, watched.peak, first, last,
                    watched.seconds)


def with_trl(asked: argparse.Namespace, model: Path, folder: Path) -> Measured:
    words = {**vars(asked), "model": str(model), "out": str(folder / "steps.json")}
    before = processor_seconds()
    python = str(integration_environment().python)
    environment = {**os.environ, "OMP_NUM_THREADS": str(asked.threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    watched = Watched([python, str(HERE / "trl_run/train.py"), json.dumps(words, default=str)], folder / "log", environment)
    rows = json.loads((folder / "steps.json").read_text())
    seconds = rows[-1]["at"] - rows[0]["at"]
    tokens = sum(row["completions/mean_length"] * asked.groups * asked.responses for row in rows[1:])
    first, last = quarter_means([row["reward"] for row in rows])
    return Measured(seconds / (len(rows) - 1), (processor_seconds() - before) / len(rows), tokens / seconds, watched.peak, first,
                    last, watched.seconds)


def smollm2() -> Path:
    """The folder of SmolLM2 in the cache of temper, made if it is not there."""
    subprocess.run([TEMPER, "model", "smollm2"], check=True, capture_output=True)
    cache = Path(os.environ.get("TEMPER_CACHE") or Path.home() / ".cache/temper")
    return max(cache.glob("smollm2-*/model/config.json"), key=lambda file: file.stat().st_mtime).parent


def main() -> int:
    words = argparse.ArgumentParser(prog="./x bench trl", description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--model", type=Path, help="model folder (default: SmolLM2-135M-Instruct)")
    words.add_argument("--task", type=Path, default=ROOT / "configs/tasks/sums.jsonl", help="prompts and numeric answers")
    words.add_argument("--runs", type=int, default=3, help="of each trainer")
    words.add_argument("--steps", type=int, default=4, help="of a run")
    words.add_argument("--groups", type=int, default=8, help="prompts of a batch")
    words.add_argument("--responses", type=int, default=8, help="of a group")
    words.add_argument("--tokens", type=int, default=16, help="of a response, at most")
    words.add_argument("--prompt", type=int, default=32, help="tokens of a prompt, at most")
    words.add_argument("--rate", type=float, default=2e-5, help="learning rate")
    words.add_argument("--temperature", type=float, default=0.7)
    words.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    words.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32", help="type of computation of both")
    words.add_argument("--micro-batch", type=int, default=16, dest="micro_batch",
                       help="responses that TRL trains at a time, which bounds its memory")
    words.add_argument("--bounds", type=int, nargs="*", default=[0, 1], help="staleness bounds of Temper")
    asked = words.parse_args()
    peers = integration_environment()
    peers.make()
    if absent := {name: why for name in ("torch", "transformers", "datasets", "trl") if (why := peers.packages()[name])}:
        print(f"trl: cannot be fetched: {absent}", file=sys.stderr)
        return 1
    model = (asked.model or smollm2()).resolve()
    asked.task = asked.task.resolve()
    asked.context = asked.prompt + asked.tokens
    trainers = {f"Temper, bound {bound}": (lambda folder, b=bound: with_temper(asked, model, folder, b)) for bound in asked.bounds}
    trl = f"TRL, {asked.micro_batch} responses at a time"
    trainers[trl] = lambda folder: with_trl(asked, model, folder)
    measured: dict[str, list[Measured]] = {name: [] for name in trainers}
    for number in range(asked.runs):
        for name, train in trainers.items():
            with tempfile.TemporaryDirectory() as folder:
                one = train(Path(folder))
            measured[name].append(one)
            print(f"run {number + 1}, {name}: {one}", file=sys.stderr, flush=True)

    def middle(name: str, field: str) -> float:
        return statistics.median(getattr(one, field) for one in measured[name])

    print("| trainer | step | processor time of a step | tokens/s | memory | reward, first and last quarter | step of TRL / step | memory / that of TRL |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in trainers:
        print(f"| {name} | {middle(name, 'step_s'):.2f} s | {middle(name, 'processor_s'):.1f} s | {middle(name, 'tokens_per_s'):.0f} "
              f"| {middle(name, 'memory') / 1e9:.2f} GB | {middle(name, 'first_rewards'):.2f}, {middle(name, 'last_rewards'):.2f} "
              f"| {middle(trl, 'step_s') / middle(name, 'step_s'):.2f} "
              f"| {middle(name, 'memory') / middle(trl, 'memory'):.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
