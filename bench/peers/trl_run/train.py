"""One run of TRL's GRPOTrainer for bench/peers/side_by_side.py. The argument is JSON with the fields of its flags."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

asked: dict[str, Any] = json.loads(sys.argv[1])
torch.set_num_threads(asked["threads"])


def numeric(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 where the last number of a response is the answer, as Temper's verifier of this name."""
    numbers = [re.findall(r"-?\d+(?:\.\d+)?", text) for text in completions]
    return [float(bool(found) and float(found[-1]) == float(right)) for found, right in zip(numbers, answer)]


class Steps(TrainerCallback):
    """Writes what the trainer logs of each step, with the time of its end."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.at = 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.at = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if logs and "reward" in logs:
            self.rows.append({**logs, "at": self.at})


with open(asked["task"]) as file:
    problems = [json.loads(line) for line in file]
tokenizer = AutoTokenizer.from_pretrained(asked["model"])
batch, micro = asked["groups"] * asked["responses"], min(asked["micro_batch"], asked["groups"] * asked["responses"])
steps = Steps()
config = GRPOConfig(
    output_dir=asked["out"] + ".trl", max_steps=asked["steps"], use_cpu=True, bf16=asked["dtype"] == "bfloat16",
    logging_steps=1, report_to=[],
    save_strategy="no", disable_tqdm=True, gradient_checkpointing=False, learning_rate=asked["rate"], lr_scheduler_type="constant",
    beta=0.0, num_iterations=1, num_generations=asked["responses"], per_device_train_batch_size=micro,
    gradient_accumulation_steps=batch // micro, max_completion_length=asked["tokens"], temperature=asked["temperature"])
model = AutoModelForCausalLM.from_pretrained(asked["model"], dtype=torch.float32)
GRPOTrainer(model=model, args=config, reward_funcs=numeric, train_dataset=Dataset.from_list(problems), processing_class=tokenizer,
            callbacks=[steps]).train()
with open(asked["out"], "w") as file:
    json.dump(steps.rows, file)
