"""Runs that start from an adapter that peft wrote (`temper run --from FOLDER`), and give it back to peft."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lora_run_test import NATIVE, config, python
from runs import Run

pytestmark = [pytest.mark.needs("torch", "transformers", "safetensors", "peft"), pytest.mark.timeout(600)]

TARGETS = ["q_proj", "v_proj", "up_proj", "down_proj"]
LORA = "model.lora={rank: 4, alpha: 8, targets: [%s]}" % ", ".join(TARGETS)
#: At bound 0, the sampler has the weights that are trained next.
SHORT = ("steps=3", "staleness.bound=0", "evaluation.every=0")


@pytest.fixture(scope="module")
def base(temper, tmp_path_factory) -> Path:
    """A model folder that transformers reads: the pretrained base of the configuration."""
    folder = tmp_path_factory.mktemp("base")
    with Run(temper, folder, config(), "steps=1", "evaluation.every=0") as run:
        run.finish()
        return run.run_dir / "base"


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory) -> Path:
    """A folder of peft; A and B are both nonzero."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(4)
    settings = peft.LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS, lora_dropout=0.1, init_lora_weights=False, task_type="CAUSAL_LM")
    model = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), settings)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.mul_(0.2)
    folder = tmp_path_factory.mktemp("peft") / "adapter"
    model.save_pretrained(folder)
    return folder


def tensors(folder: Path) -> dict[str, np.ndarray]:
    import safetensors.numpy

    return safetensors.numpy.load_file(folder / "adapter_model.safetensors")


def logits(base: Path, adapter: Path):
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    model = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter)
    with torch.no_grad():
        return model(torch.tensor([[3, 4, 5, 6, 7]])).logits


@pytest.mark.parametrize("trainer", [NATIVE, python("Trainer")], ids=["native", "temper.torch"])
def test_a_run_trains_an_adapter_of_peft_on(trainer, adapter, base, temper, run_temper, tmp_path):
    import torch

    with Run(temper, tmp_path, config(TRAINER=trainer), LORA, *SHORT, start=adapter) as run:
        run.finish()
        run.assert_audit_is_clean()
        assert f"starting from the adapter in {adapter}" in run.said()
        metrics = run.metrics()
    assert metrics[0]["log_ratio"] < 1e-5, "engine and trainer start with the same policy"
    run_temper("export", f"{run.run_dir}@0", str(tmp_path / "start"))
    run_temper("export", f"{run.run_dir}@3", str(tmp_path / "end"))
    given, start, end = tensors(adapter), tensors(tmp_path / "start"), tensors(tmp_path / "end")
    assert given.keys() == start.keys() == end.keys()
    for name, tensor in given.items():
        np.testing.assert_array_equal(start[name], tensor, err_msg=name)
        change = np.abs(end[name] - tensor).max()
        assert 0 < change < 0.2, f"{name}: three steps of Adam at 1e-2 change a value by {change}"
    # What the run sampled from at version 0 is what peft computes with the files that it wrote.
    torch.testing.assert_close(logits(base, adapter), logits(base, tmp_path / "start"))
    assert not torch.allclose(logits(base, adapter), logits(base, tmp_path / "end"), atol=1e-4)


def test_without_model_lora_the_base_is_merged_with_it(adapter, base, temper, tmp_path):
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    with Run(temper, tmp_path, config(), "model.lora=null", *SHORT, start=adapter) as run:
        run.finish()
        run.assert_audit_is_clean()
        assert run.metrics()[0]["log_ratio"] < 1e-5
    merged = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter).merge_and_unload()
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    ours = AutoModelForCausalLM.from_pretrained(run.run_dir / "base")
    torch.testing.assert_close(ours(ids).logits, merged(ids).logits, atol=1e-5, rtol=1e-5)


def test_an_adapter_that_peft_computes_otherwise_is_refused_by_its_setting(adapter, temper, tmp_path):
    changed = tmp_path / "adapter"
    changed.mkdir()
    settings = json.loads((adapter / "adapter_config.json").read_text())
    (changed / "adapter_config.json").write_text(json.dumps({**settings, "use_rslora": True}))
    (tmp_path / "config.yaml").write_text(config())
    words = [temper, "run", str(tmp_path / "config.yaml"), "--plain", "--from", str(changed), "--set", LORA]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert said.returncode != 0
    assert "adapter_config.json: use_rslora: expected false, found true" in said.stderr
