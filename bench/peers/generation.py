"""Generates with Temper's rollout engine, transformers and llama.cpp, alternating, and prints tokens/s of each.

    ./x bench generation [--runs N] [--batches N...] [--tokens N] [--prompt N] [--half F16 BF16] [--prompts FILE]
                       [--model FOLDER] [--threads N] [--dtypes float32 bfloat16] [--llama-server PROGRAM]

All get the same model, token ids of prompts, number of new tokens (the most likely ones, past end tokens) and threads. A
batch is generated at once. The rate counts new tokens and the whole time, with prompts. Each program is started anew in
each run, loads the model and generates one response before it is measured. Processor time is that of the program while
it generates: on a machine with other work it differs less than the time. llama.cpp runs as its own server, with its
defaults: a KV cache in float16, and flash attention. It is a wheel that is built for AVX2, or a program `llama-server`
that you compile for the processor."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "tests/integration"), str(HERE)]

from environment import integration_environment  # noqa: E402
from llamacpp_environment import LlamacppEnvironment, free_port  # noqa: E402
from side_by_side import TEMPER, smollm2  # noqa: E402

DTYPES = ("float32", "bfloat16")
PROGRAM = Path(TEMPER).parents[1] / "bench/generation"
Prompts = list[list[int]]


@dataclass
class Measured:
    """One batch. Times in seconds."""

    seconds: float
    processor_s: float
    tokens: int
    of_read: tuple[float, float] | None = None  # bytes of weights in decode steps, of those of a plain read: per second, and
    # per second of processor time


def asked_of(command: list[str], what: dict[str, Any], threads: int) -> Any:
    """The answer of a program that reads JSON from its standard input."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, input=json.dumps(what), capture_output=True, text=True, timeout=3600, env=environment)
    if done.returncode:
        raise SystemExit(f"{command[0]}: status {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def with_temper(dtype: str, what: dict[str, Any], threads: int) -> list[Measured]:
    answer = asked_of([str(PROGRAM)], {**what, "compute_dtype": dtype}, threads)
    read = answer["read"]

    def share(decode: dict[str, float], of: str) -> float:
        return decode["bytes"] / decode[of] / (read["bytes"] / read[of])

    print(f"plain read: {read['bytes'] / read['seconds'] / 1e9:.1f} GB/s", file=sys.stderr)
    return [Measured(one["seconds"], one["processor_s"], one["tokens"],
                     (share(one["decode"], "seconds"), share(one["decode"], "processor_s"))) for one in answer["batches"]]


def with_transformers(what: dict[str, Any], threads: int) -> list[Measured]:
    python = str(integration_environment().python)
    return [Measured(**one) for one in asked_of([python, str(HERE / "transformers_generate.py")], what, threads)]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def compiled_server(program: Path, model: Path, log: Path, *words: str) -> Iterator[tuple[str, int]]:
    """The address and the process of a server with a GGUF file."""
    port = free_port()
    with open(log, "wb") as output:
        process = subprocess.Popen([str(program), "--model", str(model), "--port", str(port), "--no-webui", *words],
                                   stdout=output, stderr=output)
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
    try:
        while True:
            with suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=5):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{program}: expected it to serve within 120 s\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.2)
        yield address, process.pid
    finally:
        process.kill()
        process.wait()


@contextmanager
def wheel_server(model: Path, log: Path, *words: str) -> Iterator[tuple[str, int]]:
    with LlamacppEnvironment().server(model, log, *words, "--half-cache") as address:
        yield address, int(re.findall(r"listening on \d+ as (\d+)", log.read_text(errors="replace"))[0])


def with_llama_cpp(program: Path | None, model: Path, what: dict[str, Any], threads: int) -> list[Measured]:
    """With `program`, a llama-server, or else with the wheel."""
    batches: list[Prompts] = what["batches"]
    slots = max(map(len, batches))
    longest = max(len(prompt) for batch in batches for prompt in batch) + what["new_tokens"] + 8
    log = model.with_suffix(".log")

    def complete(prompt: list[int]) -> int:
        asked = {"prompt": prompt, "n_predict": what["new_tokens"], "temperature": 0, "ignore_eos": True, "cache_prompt": False}
        request = urllib.request.Request(f"{address}/completion", json.dumps(asked).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=3600) as reply:
            return int(json.load(reply)["tokens_predicted"])

    words = ["--parallel", str(slots), "--ctx-size", str(slots * longest), "--threads", str(threads)]
    measured = []
    server = compiled_server(program, model, log, *words) if program else wheel_server(model, log, *words)
    with server as (address, pid), ThreadPoolExecutor(slots) as pool:
        complete(batches[0][0])
        for batch in batches:
            processor, begin = processor_seconds(pid), time.monotonic()
            tokens = sum(pool.map(complete, batch))
            measured.append(Measured(time.monotonic() - begin, processor_seconds(pid) - processor, tokens))
    return measured


def prompt_ids(model: Path, task: Path, most: int) -> Prompts:
    """Of the first rows of a task, in the chat format of the model if it has one."""
    code = ("import json, sys; from transformers import AutoTokenizer; folder, file, most = sys.argv[1:]; "
            "t = AutoTokenizer.from_pretrained(folder); rows = [json.loads(line) for line in open(file)][:int(most)]; "
            "print(json.dumps([t.apply_chat_template(r['prompt'] if isinstance(r['prompt'], list) else "
            "[{'role': 'user', 'content': r['prompt']}], add_generation_prompt=True, return_dict=False) for r in rows]))")
    done = subprocess.run([str(integration_environment().python), "-c", code, str(model), str(task), str(most)], check=True,
                          capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    found: Prompts = json.loads(done.stdout.splitlines()[-1])
    if len(found) < most:
        raise SystemExit(f"{task}: expected at least {most} rows, found {len(found)}")
    return found


def main() -> int:
    words = argparse.ArgumentParser(prog="./x bench generation", description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--model", type=Path, help="model folder (default: SmolLM2-135M-Instruct)")
    words.add_argument("--prompts", type=Path, default=ROOT / "configs/tasks/sums.jsonl", help="rows with a prompt each")
    words.add_argument("--runs", type=int, default=3, help="of each program")
    words.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64], help="prompts that are generated at once")
    words.add_argument("--tokens", type=int, default=32, help="of a response")
    words.add_argument("--prompt", type=int, default=64, help="tokens of a prompt, at most: the last ones")
    words.add_argument("--half", nargs="*", choices=["F16", "BF16"], default=["F16", "BF16"], help="weights of llama.cpp")
    words.add_argument("--dtypes", nargs="+", choices=DTYPES, help="of Temper (default: bfloat16 if the processor has it)",
                       default=[DTYPES[0], *(DTYPES[1:] if "avx512_bf16" in Path("/proc/cpuinfo").read_text() else [])])
    words.add_argument("--llama-server", type=Path, help="a compiled llama-server instead of the wheel")
    words.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    asked = words.parse_args()
    peers, llama_cpp = integration_environment(), LlamacppEnvironment()
    for environment in (peers, llama_cpp):
        environment.make()
    if absent := {name: why for name in ("torch", "transformers") if (why := peers.packages()[name])}:
        print(f"generation: cannot be fetched: {absent}", file=sys.stderr)
        return 1
    model = (asked.model or smollm2()).resolve()
    prompts = prompt_ids(model, asked.prompts.resolve(), max(asked.batches))
    what = {"folder": str(model), "threads": asked.threads, "new_tokens": asked.tokens,
            "batches": [[prompt[-asked.prompt:] for prompt in prompts[:count]] for count in asked.batches]}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = {kind: folder / f"{kind}.gguf" for kind in asked.half}
        for kind, file in files.items():
            subprocess.run([str(peers.python), str(ROOT / "tests/integration/folder_to_gguf.py"), str(model), str(file), kind],
                           check=True)
        programs = {**{f"Temper, {dtype}": (lambda d=dtype: with_temper(d, what, asked.threads)) for dtype in asked.dtypes},
                    "transformers, float32": lambda: with_transformers(what, asked.threads),
                    **{f"llama.cpp, {kind}": (lambda f=file: with_llama_cpp(asked.llama_server, f, what, asked.threads)) for kind, file in files.items()}}
        measured: dict[str, list[list[Measured]]] = {name: [] for name in programs}
        for number in range(asked.runs):
            for name, generate in programs.items():
                measured[name].append(generate())
                print(f"run {number + 1}, {name}: {measured[name][-1]}", file=sys.stderr, flush=True)
    print_table(asked, measured)
    return 0


def print_table(asked: argparse.Namespace, measured: dict[str, list[list[Measured]]]) -> None:
    def middle(name: str, batch: int, of: Any) -> float:
        return statistics.median(of(run[batch]) for run in measured[name])

    print("| batch | program | tokens/s | lowest, highest | processor time of a token | tokens/s of Temper / this "
          "| processor time of this / Temper | weights read, of a plain read: by time, by processor time |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    temper = next(iter(measured))
    for place, batch in enumerate(asked.batches):
        for name, runs in measured.items():
            rates = [run[place].tokens / run[place].seconds for run in runs]
            shares = [both for run in runs if (both := run[place].of_read) is not None]
            of_read = ", ".join(f"{statistics.median(column):.0%}" for column in zip(*shares))
            rate = middle(name, place, lambda one: one.tokens / one.seconds)
            processor = middle(name, place, lambda one: one.processor_s / one.tokens)
            print(f"| {batch} | {name} | {rate:.1f} | {min(rates):.1f}, {max(rates):.1f} | {1e3 * processor:.1f} ms "
                  f"| {middle(temper, place, lambda one: one.tokens / one.seconds) / rate:.2f} "
                  f"| {processor / middle(temper, place, lambda one: one.processor_s / one.tokens):.2f} "
                  f"| {of_read} |")


if __name__ == "__main__":
    sys.exit(main())
