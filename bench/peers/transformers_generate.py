"""transformers.generate for bench/peers/generation.py: reads what bench/generation.cpp does, and prints a list with the
seconds, processor_s and tokens of each batch."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM

asked: dict[str, Any] = json.load(sys.stdin)
torch.set_num_threads(asked["threads"])
model = AutoModelForCausalLM.from_pretrained(asked["folder"], dtype=torch.float32, local_files_only=True).eval()


def generate(prompts: list[list[int]]) -> dict[str, float]:
    """Shorter prompts are padded on the left."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    processor, begin = time.process_time(), time.monotonic()
    with torch.inference_mode():
        out = model.generate(input_ids=ids, attention_mask=mask, do_sample=False, min_new_tokens=asked["new_tokens"],
                             max_new_tokens=asked["new_tokens"], pad_token_id=0)
    tokens = out[:, longest:].numel()
    return {"seconds": time.monotonic() - begin, "processor_s": time.process_time() - processor, "tokens": tokens}


generate(asked["batches"][0][:1])
print(json.dumps([generate(batch) for batch in asked["batches"]]))
