"""bench/gpu/measure_card.py, which is for a machine with a GPU, on a processor: what it writes is what calibrate reads."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from environment import ROOT

pytestmark = [pytest.mark.needs("torch"), pytest.mark.timeout(300)]

CARD = """
name: my-card
cards_per_node: 1
die: {bf16: 0.1TFLOP/s, vector: 0.05TFLOP/s, cores: 1, memory: 8GiB, memory_bandwidth: 10GB/s, cache: 1MiB}
host: {memory: 16GB, to_device: 5GB/s, from_device: 5GB/s, latency: 1us}
levels: [{name: node, devices: 0, bandwidth: 1GB/s, latency: 1us}]
"""
MODEL = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 128, "vocab_size": 512,
}


def test_what_a_card_is_measured_at_calibrates_its_own_description(temper, tmp_path):
    model = tmp_path / "config.json"
    model.write_text(json.dumps(MODEL))
    hardware = tmp_path / "card.yaml"
    hardware.write_text(CARD)
    rows = tmp_path / "rows.csv"
    script = [sys.executable, str(ROOT / "bench/gpu/measure_card.py"), "--device", "cpu", "--sizes", "tiny", "--hardware", "my-card",
              "--out", str(rows), "--models", str(model)]
    subprocess.run(script, check=True, cwd=tmp_path, timeout=200)
    measured = list(csv.DictReader(rows.open()))
    assert {row["kind"] for row in measured} == {
        "gemm", "attention_prefill", "attention_decode", "device_copy", "host_to_device", "device_to_host", "kernel_launch_eager",
        "decode_step", "prefill", "logprob_pass", "train_step"}
    assert all(float(row["value"]) > 0 for row in measured)
    again = subprocess.run(script, check=True, cwd=tmp_path, timeout=60, capture_output=True, text=True)
    assert again.stderr.strip() == f"{len(measured)} rows in {rows}; 0 skipped", "what is there is not measured again"

    fitted = subprocess.run([temper, "calibrate", str(rows), "--hardware-file", str(hardware)], cwd=tmp_path, capture_output=True, text=True)
    assert fitted.returncode == 0, fitted.stderr
    assert f"written: {tmp_path / 'card.calibration.yaml'}" in fitted.stdout
    validated = subprocess.run([temper, "validate", str(rows), "--hardware-file", str(hardware)], cwd=tmp_path, capture_output=True, text=True)
    assert validated.returncode == 0, validated.stderr
