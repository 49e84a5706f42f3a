#!/usr/bin/env python3
"""Writes sums.jsonl: "What is A + B?" for A and B from 0 to 20.

The prompts are in the format of SmolLM2's chat template.
"""

import json
import pathlib

SYSTEM = "Answer with a number."


def messages(a, b):
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"What is {a} + {b}?"},
    ]


def prompt(conversation):
    turns = [f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in conversation]
    return "".join(turns) + "<|im_start|>assistant\n"


with open(pathlib.Path(__file__).with_name("sums.jsonl"), "w") as file:
    for a in range(21):
        for b in range(21):
            row = {"prompt": prompt(messages(a, b)), "answer": str(a + b)}
            file.write(json.dumps(row) + "\n")
