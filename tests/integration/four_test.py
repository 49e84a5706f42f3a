"""The quickstart's task, learned from one base folder by each combination of our rollout and trainer with those in
PyTorch. One YAML each; what they are held to is the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from runs import Run

pytestmark = [pytest.mark.needs("torch", "transformers", "safetensors"), pytest.mark.timeout(600)]

UPDATES, BOUND = 100, 2

#: The quickstart with numbers of one digit, a smaller model and batches of a quarter of its size.
TASK = f"""
name: NAME
steps: {UPDATES}
task: {{kind: addition, digits: 1}}
model: MODEL
algorithm: {{groups_per_update: 16, responses_per_group: 8, minibatches: 1, kl: 0, learning_rate: 1e-3}}
sampling: {{temperature: 1.0, max_new_tokens: 3}}
placement: {{mode: separate, cards: 2}}
reference: {{replicas: 0}}
staleness: {{bound: {BOUND}}}
checkpoint: {{every: 0}}
deadlines: {{start: 300s}}
transport: {{heartbeat_timeout: 120s}}
"""
BASE = TASK.replace("MODEL", "{hidden: 64, layers: 2, heads: 4, kv_heads: 2, ffn: 128, context: 16, rope_base: 100}") + """
pretrain: {target_accuracy: 0.15, label_noise: 0.3}
rollout: {concurrency: 128}
"""
ENGINES = {"cpp": "{kind: native}", "python": '{kind: python, use: "temper.torch:Engine"}'}
TRAINERS = {"cpp": "{kind: native}", "python": '{kind: python, use: "temper.torch:Trainer"}'}


@pytest.fixture(scope="module")
def base(temper, tmp_path_factory) -> Path:
    """A model folder that is right in about a seventh of its answers: that of a run of one update."""
    folder = tmp_path_factory.mktemp("base")
    with Run(temper, folder, BASE, "steps=1") as run:
        run.finish()
    return run.run_dir / "base"


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_task_is_learned_by_every_combination(engine, trainer, base, temper, tmp_path):
    config = TASK.replace("NAME", f"{engine}-{trainer}").replace("MODEL", f"{{path: {base}}}") + (
        f"rollout: {{concurrency: 128, engine: {ENGINES[engine]}}}\ntrainer: {{engine: {TRAINERS[trainer]}}}\n")
    with Run(temper, tmp_path, config) as run:
        run.finish()
    rewards = [one["reward"] for one in run.metrics()]
    summary = json.loads((run.run_dir / "summary.json").read_text())
    ages = {int(age): groups for age, groups in summary["staleness"]["histogram"].items()}
    first, last = run.metrics()[0], run.metrics()[-1]
    trained = summary["tokens"]["trained"] * (UPDATES - 1) / UPDATES / (last["time"] - first["time"])
    print(f"\n{engine} rollout, {trainer} trainer: reward {mean(rewards[:5]):.3f} to {mean(rewards[-10:]):.3f}, "
          f"{trained:.0f} tokens/s trained, {last['time']:.0f} s, groups by age {ages}")
    assert mean(rewards[:5]) < 0.5, "the base knows the task already"
    assert mean(rewards[-10:]) >= 0.9
    run.assert_audit_is_clean()
    # The rollout goes on until it is as far ahead as it may be: most groups are of the greatest age, whoever
    # samples and trains them.
    assert sum(ages.values()) == 16 * UPDATES and max(ages) == BOUND
    assert ages[BOUND] >= 0.5 * 16 * UPDATES
    replayed = subprocess.run([temper, "replay", str(run.run_dir)], capture_output=True, text=True, timeout=120)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
