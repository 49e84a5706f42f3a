"""TRL's unmodified AsyncGRPOTrainer as the trainer of a run."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from environment import ROOT
from runs import Run

pytestmark = [pytest.mark.needs("torch", "transformers", "trl", "datasets", "tokenizers"), pytest.mark.timeout(900)]

STEPS, BOUND = 50, 2

CONFIG = f"""
name: trl
policy: synthetic
steps: {STEPS}
task: {{kind: addition, digits: 1}}
verifier: {{kind: python, function: "sevens:sevens"}}
algorithm: {{groups_per_update: 4, responses_per_group: 4, minibatches: 1, learning_rate: 5e-3}}
sampling: {{max_new_tokens: 4}}
placement: {{mode: separate, cards: 2}}
rollout: {{concurrency: 64, engine: {{kind: python, use: "temper.torch:Engine", with: {{model: MODEL}}}}}}
trainer: {{engine: {{kind: command, command: [{sys.executable}, train.py]}}}}
staleness: {{bound: {BOUND}}}
checkpoint: {{every: 10}}
deadlines: {{start: 300s}}
transport: {{heartbeat_timeout: 120s}}
"""

REWARD = '''
def sevens(completions, **columns):
    return [c.count("7") / 4 for c in completions]
'''

TRAIN = f'''
import torch
torch.cuda.get_device_name = lambda device=None: "none"  # TRL asks for it on a CPU, too
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from temper.trl import Run

with Run("MODEL") as run:
    config = AsyncGRPOConfig(output_dir="trl", max_steps={STEPS} - run.version, use_cpu=True, bf16=False, dtype="float32",
                             logging_steps=1, disable_tqdm=True, max_staleness={BOUND}, **run.config(micro_batches=2))
    AsyncGRPOTrainer(model=str(run.model), args=config, train_dataset=run.dataset(), processing_class=run.tokenizer(),
                     rollout_worker=run, weight_transfer=run, callbacks=[run.callback()]).train()
'''


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_trl_trains_from_certified_batches_and_outlives_a_kill(temper, tmp_path, tiny_llama):
    (tmp_path / "sevens.py").write_text(REWARD)
    (tmp_path / "train.py").write_text(TRAIN.replace("MODEL", str(tiny_llama)))
    stand_ins = str(ROOT / "tests/integration/trl_on_cpu")
    with Run(temper, tmp_path, CONFIG.replace("MODEL", str(tiny_llama)), path=stand_ins) as run:
        run.await_updates(15)
        for pid in run.pids_of("trainer"):
            os.kill(pid, signal.SIGKILL)
        run.finish()
        metrics = run.metrics()
        assert [one["step"] for one in metrics] == list(range(1, STEPS + 1))
        assert metrics[-1]["resumes"] == 1
        assert max(one["staleness"]["max"] for one in metrics) <= BOUND
        rewards = [one["reward"] for one in metrics]
        assert mean(rewards[-10:]) > mean(rewards[:10]) + 0.1, rewards
        run.assert_audit_is_clean()
        log = (run.run_dir / "logs/trainer.log").read_text()
        ages = [float(age) for age in re.findall(r"'sample/staleness_max': '?([-\d.]+)", log)]
        assert len(ages) >= STEPS and max(ages) <= BOUND, "what TRL itself counted"
        assert "dropped_stale" not in log
