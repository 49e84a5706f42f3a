"""Figures of docs/how-to/emit.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("exact", "cheap")
def rollout(fig):
    words = "model=qwen3-235b-a22b hardware=nvidia-h200 cards=16 prompt=512 response=4000 p99_over_median=6 cap=16384"
    for engine in ("vllm", "sglang", "verl"):
        said = fig.text(f"temper plan task=rollout {words} --emit {engine} 2>/dev/null")
        fig.say("    $ temper plan task=rollout ... --emit " + engine + "\n" + "\n".join("    " + x for x in said.strip().splitlines()) + "\n")


@figures("exact", "cheap")
def training(fig):
    words = "model=qwen3-235b-a22b hardware=nvidia-h200 cards=64 batch=256 seq=8192"
    for engine in ("megatron", "verl"):
        said = fig.text(f"temper plan task=train {words} --emit {engine} 2>/dev/null")
        fig.say("    $ temper plan task=train ... --emit " + engine + "\n" + "\n".join("    " + x for x in said.strip().splitlines()) + "\n")
