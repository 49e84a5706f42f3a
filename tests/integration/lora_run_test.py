"""Complete runs with model.lora: kill, resume, audit, evaluation, and what `temper export` writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from runs import Run

pytestmark = [pytest.mark.needs("torch", "transformers", "safetensors"), pytest.mark.timeout(600)]

CONFIG = """
name: lora
seed: 5
steps: STEPS
task: {kind: addition, digits: 1}
model:
  hidden: 32
  layers: 2
  heads: 4
  kv_heads: 2
  ffn: 48
  context: 16
  lora: {rank: 4, alpha: 8}
pretrain: {target_accuracy: 0.2}
algorithm: {groups_per_update: 16, responses_per_group: 8, minibatches: 1, kl: 0.001, learning_rate: 1e-2}
sampling: {max_new_tokens: 4}
placement: PLACEMENT
rollout: {concurrency: 128, engine: ENGINE}
trainer: {engine: TRAINER}
evaluation: {every: 10, problems: 10}
samples: {share: 1}
checkpoint: {every: 2, keep: 3}
deadlines: {start: 300s, generate: 120s}
transport: {heartbeat_timeout: 120s}
"""
NATIVE = "{kind: native}"


def python(role: str) -> str:
    return '{kind: python, use: "temper.torch:%s", with: {device: cpu}}' % role


def config(**given: object) -> str:
    text = CONFIG
    for name, value in {"STEPS": 20, "PLACEMENT": "{mode: separate, cards: 2}", "ENGINE": NATIVE, "TRAINER": NATIVE, **given}.items():
        text = text.replace(name, str(value))
    return text


@pytest.fixture(scope="module")
def finished(temper: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose engine and trainer were killed on the way."""
    folder = tmp_path_factory.mktemp("lora")
    with Run(temper, folder, config()) as run:
        for count, name in enumerate(("rollout-0", "trainer")):
            run.await_updates(1 + 2 * count)
            os.kill(run.pids_of(name)[0], signal.SIGKILL)
        run.finish()
        run.assert_audit_is_clean()
        return Path(run.run_dir)


def test_checkpoints_have_the_adapter_only(finished: Path) -> None:
    checkpoint = finished / "checkpoints/step-000020"
    names = {file.name for file in checkpoint.iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "optimizer.safetensors"} <= names
    assert "model.safetensors" not in names


def test_the_commands_for_finished_runs_read_it(finished: Path, run_temper) -> None:
    run_temper("fsck", str(finished))
    run_temper("replay", str(finished))
    assert "prompt" in run_temper("samples", str(finished), "--limit", "1")
    assert "pass@1" in run_temper("eval", str(finished))


def test_it_cannot_be_resumed_with_another_adapter(finished: Path, temper: str) -> None:
    words = [temper, "run", "--resume", str(finished), "--plain", "--set", "model.lora.rank=2"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert said.returncode != 0
    assert "model.lora.rank: 4 -> 2: the checkpoint holds an adapter of this shape and scale" in said.stderr + said.stdout


def test_the_exported_adapter_merges_to_the_merged_export(finished: Path, run_temper, tmp_path: Path) -> None:
    """An independent merge in numpy of the files that peft reads."""
    import safetensors.numpy

    run_temper("export", str(finished) + "@20", str(tmp_path / "adapter"))
    run_temper("export", str(finished) + "@20", str(tmp_path / "merged"), "--merge")
    settings = json.loads((tmp_path / "adapter/adapter_config.json").read_text())
    assert (settings["r"], settings["lora_alpha"], settings["peft_type"]) == (4, 8, "LORA")
    adapter = safetensors.numpy.load_file(tmp_path / "adapter/adapter_model.safetensors")
    weights = safetensors.numpy.load_file(finished / "base/model.safetensors")
    changed = 0
    for name, b in adapter.items():
        if name.endswith("lora_B.weight"):
            of = name.removeprefix("base_model.model.").removesuffix(".lora_B.weight") + ".weight"
            change = settings["lora_alpha"] / settings["r"] * b @ adapter[name.replace("lora_B", "lora_A")]
            changed += bool(np.abs(change).max() > 0)
            weights[of] = weights[of] + change
    assert changed == 2 * 7
    merged = safetensors.numpy.load_file(tmp_path / "merged/model.safetensors")
    assert set(merged) == set(weights)
    for name in merged:
        np.testing.assert_allclose(merged[name], weights[name], atol=1e-6, err_msg=name)
    said = run_temper("model", str(tmp_path / "merged"), "--compare", "--json", timeout=300)
    assert json.loads(said)["agrees"] is True


@pytest.mark.parametrize(("engine", "trainer"), [(NATIVE, python("Trainer")), (python("Engine"), NATIVE)], ids=["trainer", "engine"])
def test_native_and_python_roles_can_be_mixed_and_share_cards(engine, trainer, temper, tmp_path) -> None:
    given = {"ENGINE": engine, "TRAINER": trainer, "STEPS": 4, "PLACEMENT": "{mode: colocated, cards: 1}"}
    with Run(temper, tmp_path, config(**given)) as run:
        run.finish()
        assert len(run.metrics()) == 4
        run.assert_audit_is_clean()
