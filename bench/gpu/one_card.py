#!/usr/bin/env python3
"""Measures rollout and trainer in PyTorch on one time-shared card: the time of an update, the memory that the roles release
and take back, and the forecast of `temper cost`.

    TEMPER=build/release/bin/temper build/python/bin/python bench/gpu/one_card.py --hardware nvidia-h100
    TEMPER=build/release/bin/temper build/python/bin/python bench/gpu/one_card.py --shape tiny --device cpu

Needs python/[transformers]. The model has the shape of Qwen3-0.6B and random weights, so nothing is downloaded
and every response has the maximum length. `colocated`: rollout and trainer share the card; `fused`: the
reference shares it too. After every switch each role records its memory and the memory in use on the card.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import temper.torch
from temper.weights import Weights

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = {
    "qwen3-0.6b": {
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960,
    },
    "tiny": {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 512, "max_position_embeddings": 128,
    },
}
MODES = ("colocated", "fused")

CONFIG = """
name: one-card
steps: {updates}
hardware: local
policy: torch
model: {{path: {model}, context: {context}}}
task: {{kind: jsonl, path: {prompts}}}
# Random weights are never right, so the length penalty is trained, which gives a gradient.
algorithm: {{groups_per_update: {groups}, responses_per_group: {group}, minibatches: 1, learning_rate: 1e-6, kl: {kl},
  advantage_mean: none, advantage_std: none, overlong_buffer: {response}, micro_batch_tokens: {micro_batch}}}
sampling: {{max_new_tokens: {response}}}
placement: {{mode: {mode}, cards: 1}}
staleness: {{bound: 0}}
rollout: {{concurrency: {rows}, engine: {{kind: python, use: "one_card:Engine", with: {given}}}}}
trainer: {{engine: {{kind: python, use: "one_card:Trainer", with: {given}}}}}
{reference}
checkpoint: {{every: 0}}
deadlines: {{start: 600s, generate: 600s}}
transport: {{heartbeat_timeout: 600s}}
"""


# --- The roles, which note what they hold


class Noted:
    """Appends a line to the file `notes` after each switch."""

    role: temper.Role
    _notes: pathlib.Path

    def _note(self, action: str) -> None:
        memory = self.memory()  # type: ignore[attr-defined]
        line = {"role": self.role.kind, "action": action, "device": memory.device, "host": memory.host}
        if torch.cuda.is_available():
            free, total = torch.cuda.mem_get_info()
            line["card"] = total - free
        with open(self._notes, "a") as file:
            file.write(json.dumps(line) + "\n")


class Engine(Noted, temper.torch.Engine):
    def __init__(self, notes: str, **given: Any) -> None:
        super().__init__(**given)
        self._notes = pathlib.Path(notes)

    def load(self, version: int, weights: Weights) -> None:
        super().load(version, weights)
        self._note("load")

    def free_kv(self) -> None:
        self._note("before")
        super().free_kv()
        self._note("free_kv")

    def free_weights(self) -> None:
        super().free_weights()
        self._note("free_weights")


class _Parked(Noted):
    def offload(self) -> None:
        self._note("before")
        super().offload()  # type: ignore[misc]
        self._note("offload")

    def onload(self) -> None:
        super().onload()  # type: ignore[misc]
        self._note("onload")


class Trainer(_Parked, temper.torch.Trainer):
    def __init__(self, notes: str, **given: Any) -> None:
        super().__init__(**given)
        self._notes = pathlib.Path(notes)


class Reference(_Parked, temper.torch.Reference):
    def __init__(self, notes: str, **given: Any) -> None:
        super().__init__(**given)
        self._notes = pathlib.Path(notes)


# --- The bench


@dataclasses.dataclass
class Work:
    """The size of one update, and its device."""

    shape: str
    device: str
    hardware: str
    updates: int
    groups: int
    group: int
    prompt: int
    response: int
    micro_batch: int


def make_inputs(work: Work, folder: pathlib.Path) -> None:
    """Writes a model folder without a tokenizer, and prompts of token ids."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(1)
    config = Qwen3Config(**SHAPES[work.shape], tie_word_embeddings=True, bos_token_id=None, eos_token_id=1,
                         dtype=torch.bfloat16)
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder / "model")
    draw = np.random.default_rng(1)
    with open(folder / "prompts.jsonl", "w") as file:
        for _ in range(4 * work.groups):
            ids = draw.integers(2, config.vocab_size, work.prompt).tolist()
            file.write(json.dumps({"prompt": "ids", "prompt_token_ids": ids, "answer": "none"}) + "\n")


def temper_says(*words: str) -> str:
    done = subprocess.run([os.environ["TEMPER"], *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"temper {' '.join(words)}: status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """Environment in which workers use this Python and find this file."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(HERE), str(HERE.parents[1] / "python/src"), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    os.environ["TEMPER_PYTHON"] = sys.executable
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(work: Work, mode: str, folder: pathlib.Path) -> dict[str, Any]:
    """Returns seconds per update by card state, tokens/s, and the roles' memory notes."""
    fused = mode == "fused"
    out, notes = folder / f"run-{mode}", folder / f"notes-{mode}.jsonl"
    given = f"{{notes: {notes}, device: {work.device}}}"
    config = folder / f"{mode}.yaml"
    config.write_text(CONFIG.format(
        mode=mode, model=folder / "model", prompts=folder / "prompts.jsonl", given=given, kl=0.001 if fused else 0,
        context=work.prompt + work.response, rows=work.groups * work.group,
        reference=f'reference: {{engine: {{kind: python, use: "one_card:Reference", with: {given}}}}}' if fused
        else "reference: {replicas: 0}",
        **{name: getattr(work, name) for name in ("updates", "groups", "group", "response", "micro_batch")}))
    with environment():
        temper_says("run", str(config), "--plain", "--set", f"run_dir={out}")
    temper_says("audit", str(out))
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    first, last = lines[0], lines[-1]  # the first update loads kernels
    seconds = (last["time"] - first["time"]) / (len(lines) - 1)
    states = {name: share / (len(lines) - 1) for name in lines[0]["states"]
              for share in [sum(line["states"][name] * line["seconds"] for line in lines[1:])]}
    tokens = work.groups * work.group * (work.prompt + work.response)
    memory = [json.loads(line) for line in notes.read_text().splitlines()]
    return {"seconds": seconds, "states": states, "tokens_per_s": tokens / seconds, "memory": memory}


def forecast(work: Work, mode: str, folder: pathlib.Path) -> dict[str, float]:
    """Returns the forecast of the cost model for the same model folder on one time-shared card of this hardware."""
    planner = folder / "model.yaml"
    planner.write_text(temper_says("model", str(folder / "model"), "--planner"))
    said = json.loads(temper_says(
        "cost", "--json", "kind=rl_iteration", f"model={planner}", f"hardware={work.hardware}", "cards=1",
        f"prompts={work.groups}", f"group={work.group}", f"prompt_len={work.prompt}", f"response_len={work.response}",
        "placement=colocated"))
    found = {one["name"]: float(one["value"]) for one in said["metrics"]}
    if mode == "colocated":  # no reference
        found["time"] -= found.pop("reference_logprobs")
    return found


def given_back(memory: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """By role: peak bytes on the card, bytes while another role had it, and peak after it was taken back."""
    found = {}
    for role in dict.fromkeys(line["role"] for line in memory):
        own = [line for line in memory if line["role"] == role]
        away = [i for i, line in enumerate(own) if line["action"] in ("free_weights", "offload")]
        if not away:
            continue
        later = [line["device"] for line in own[away[0] + 1:]]
        found[role] = (max(line["device"] for line in own), min(own[i]["device"] for i in away), max(later, default=0))
    return found


def print_table(work: Work, mode: str, got: dict[str, Any], told: dict[str, float]) -> None:
    states = got["states"]
    rows = [("update, whole", got["seconds"], told["time"]),
            ("rollout", states["decode"] + states["prefill"], told["rollout"]),
            ("reference", states["reference"], told.get("reference_logprobs")),
            ("training", states["train"], told["update"]),
            ("switch and weights", states["switch"] + states["weight-sync"], told["offload"])]
    print(f"\n{mode}: {work.groups} groups of {work.group}, {work.prompt} + {work.response} tokens, on {work.device}; "
          f"{got['tokens_per_s']:.0f} tokens/s")
    print(f"| seconds of an update | measured | forecast for {work.hardware} | measured / forecast |\n|---|---|---|---|")
    for name, measured, expected in rows:
        if expected is not None:
            print(f"| {name} | {measured:.3f} | {expected:.3f} | {measured / expected if expected else float('inf'):.2f} |")
    print("| memory, MB | held | given back | taken again |\n|---|---|---|---|")
    for role, sizes in given_back(got["memory"]).items():
        held, left, again = (size / 1e6 for size in sizes)
        print(f"| {role} | {held:.3f} | {held - left:.3f} | {again:.3f} |")
    cards = [line["card"] for line in got["memory"] if "card" in line]
    if cards:
        print(f"in use on the card, after switches: {min(cards) / 1e9:.2f} to {max(cards) / 1e9:.2f} GB")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--shape", choices=SHAPES, default="qwen3-0.6b")
    words.add_argument("--device", default="cuda")
    words.add_argument("--hardware", default="nvidia-h100", help="hardware of the forecast, from configs/hardware/")
    words.add_argument("--updates", type=int, default=10)
    words.add_argument("--groups", type=int, default=8)
    words.add_argument("--group", type=int, default=16, help="responses per prompt")
    words.add_argument("--prompt", type=int, default=64, help="tokens per prompt")
    words.add_argument("--response", type=int, default=512, help="tokens per response")
    words.add_argument("--micro-batch", type=int, default=8192, help="tokens per trainer pass")
    words.add_argument("--json", action="store_true", help="figures as one JSON object")
    asked = vars(words.parse_args())
    as_json = asked.pop("json")
    work = Work(**asked)
    if work.updates < 2:
        raise SystemExit("--updates: expected at least 2; the first update loads kernels and is not counted")
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_inputs(work, folder)
        for mode in MODES:
            got, told = run(work, mode, folder), forecast(work, mode, folder)
            if not as_json:
                print_table(work, mode, got, told)
            found[mode] = {**got, "forecast": told, "given_back": given_back(got["memory"])}
    if as_json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
