"""Adapters (model.lora) of temper.torch beside those of the C++ roles, and both beside peft."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch_parity_test as parity
from torch_parity_test import CLOSE, InProcess, Worker, base, differ, native  # noqa: F401 (fixtures)

from temper import messages as m
from temper.weights import Publisher, make_image
from temper.wire import pack

pytestmark = pytest.mark.needs("torch", "transformers", "safetensors")

TARGETS = ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]
LORA = m.LoraConfig(rank=4, alpha=6.0, targets=TARGETS)


def with_lora(role: m.RoleConfig) -> m.RoleConfig:
    role.model.lora = LORA
    return role


def trainer_role(base: Path, a: m.AlgorithmConfig, use: str | None, **arguments: object) -> m.RoleConfig:
    return with_lora(parity.trainer_role(base, a, use, **arguments))


def far(ours, theirs) -> dict[str, float]:
    assert set(ours) == set(theirs)
    return {k: d for k in ours if (d := differ(ours[k], theirs[k])) > CLOSE}


@pytest.mark.parametrize("name", [m.AlgorithmName.GRPO, m.AlgorithmName.TIS, m.AlgorithmName.GSPO], ids=lambda n: n.name.lower())
def test_updates_of_the_two_trainers_agree(name, base, temper, native, tmp_path):
    a = parity.algorithm(name, temper)
    results = []
    with Worker(tmp_path / "cpp", trainer_role(base, a, None), native) as worker:
        results.append(parity.updates(worker, tmp_path / "cpp/checkpoint", 3))
    with InProcess(trainer_role(base, a, "temper.torch:Trainer")) as worker:
        (tmp_path / "python").mkdir()
        results.append(parity.updates(worker, tmp_path / "python/checkpoint", 3))
    (cpp, their_weights, their_moments), (python, weights, moments) = results
    for ours, theirs in zip(python, cpp):
        parity.assert_metrics_agree(ours, theirs)
    assert len(weights) == 2 * 2 * len(TARGETS), "an image has the adapter only"
    assert far(weights, their_weights) == {}
    assert far(moments, their_moments) == {}
    # Both write the same adapter_config.json.
    ours, theirs = (json.loads((tmp_path / kind / "checkpoint/adapter_config.json").read_text()) for kind in ("python", "cpp"))
    assert ours == theirs


def test_two_ranks_make_the_update_that_one_makes(base, temper, tmp_path):
    a = parity.algorithm(m.AlgorithmName.TIS, temper)
    results = []
    for ranks in (1, 2):
        (tmp_path / str(ranks)).mkdir()
        with InProcess(trainer_role(base, a, "temper.torch:Trainer", ranks=ranks)) as worker:
            results.append(parity.updates(worker, tmp_path / str(ranks) / "checkpoint", 2))
    (_, one_weights, one_moments), (_, weights, moments) = results
    assert far(weights, one_weights) == {}
    assert far(moments, one_moments) == {}


@pytest.mark.parametrize("first", ["cpp", "python"])
def test_a_checkpoint_of_either_trainer_is_gone_on_from_by_the_other(first, base, temper, native, tmp_path):
    a = parity.algorithm(m.AlgorithmName.TIS, temper)

    def trainer(kind: str, name: str, checkpoint: str = "", version: int = 0) -> Worker | InProcess:
        role = trainer_role(base, a, None if kind == "cpp" else "temper.torch:Trainer")
        role.resume_from, role.version = checkpoint, version
        return Worker(tmp_path / name, role, native) if kind == "cpp" else InProcess(role)

    second = "python" if first == "cpp" else "cpp"
    with trainer(first, "one") as worker:
        parity.updates(worker, tmp_path / "checkpoint", 2)
        parity.prove(tmp_path / "checkpoint")
        worker.send(parity.work_of(2))
        expected = dict(worker.weights(worker.await_one(m.Trained).weights))
    with trainer(second, "other", str(tmp_path / "checkpoint"), 2) as worker:
        worker.await_one(m.TrainerReady)
        worker.send(parity.work_of(2))
        assert far(dict(worker.weights(worker.await_one(m.Trained).weights)), expected) == {}


def random_adapter(seed: int) -> dict[str, np.ndarray]:
    """An adapter whose A and B are both nonzero, by the names of peft."""
    sides = {"q_proj": (32, 32), "v_proj": (16, 32), "o_proj": (32, 32), "up_proj": (48, 32), "down_proj": (32, 48)}
    random, tensors = np.random.default_rng(seed), {}
    for layer in range(2):
        for target, (rows, columns) in sides.items():
            part = "mlp" if target in ("up_proj", "down_proj") else "self_attn"
            name = f"base_model.model.model.layers.{layer}.{part}.{target}"
            tensors[f"{name}.lora_A.weight"] = random.normal(0, 0.3, (LORA.rank, columns)).astype(np.float32)
            tensors[f"{name}.lora_B.weight"] = random.normal(0, 0.3, (rows, LORA.rank)).astype(np.float32)
    return tensors


def put(worker: Worker | InProcess, version: int, image: bytes) -> None:
    Publisher(shared_memory=True).publish(version, image, lambda h: worker.send(m.StageWeights(h)), worker.send)
    assert worker.await_one(m.WeightsStaged).error == ""
    worker.send(m.CommitWeights(version))
    assert worker.await_one(m.WeightsCommitted).error == ""


def test_the_engines_sample_from_adapters_of_any_version_as_from_merged_weights(base, native, tmp_path):
    import safetensors.numpy

    merged = safetensors.numpy.load_file(base / "model.safetensors")
    adapter = random_adapter(3)
    for name, b in adapter.items():
        if name.endswith("lora_B.weight"):
            of = name.removeprefix("base_model.model.").removesuffix(".lora_B.weight") + ".weight"
            merged[of] = merged[of] + LORA.alpha / LORA.rank * b @ adapter[name.replace("lora_B", "lora_A")]
    results = []
    for use, lora in ((None, True), ("temper.torch:Engine", True), (None, False)):
        role = parity.role_of(m.RoleKind.ROLLOUT, base, use)
        role.model.lora = LORA if lora else None
        sampling = m.SamplingConfig(temperature=1.0, top_p=1.0, max_new_tokens=parity.LONGEST)
        role.settings = pack(m.RolloutSettings(sampling=sampling, concurrency=8).pack())
        with InProcess(role) if use else Worker(tmp_path / f"cpp-{lora}", role, native) as worker:
            if lora:  # Another version comes before it: nothing of it may stay.
                put(worker, 1, make_image(random_adapter(9)))
            put(worker, 2, make_image(adapter if lora else merged))
            items = [m.GenerateItem(response=k) for k in range(8)]
            worker.send(m.Generate(lease=1, prompt=np.array([3, 4, 5], np.int32), items=items))
            found: dict[int, m.GeneratedItem] = {}
            while len(found) < 8:
                found |= {item.response: item for item in worker.await_one(m.Generated).items}
            results.append(found)
    expected = results.pop()
    for result in results:
        for i, response in result.items():
            assert response.tokens.tolist() == expected[i].tokens.tolist()
            np.testing.assert_allclose(response.logprobs, expected[i].logprobs, atol=CLOSE)


@pytest.mark.needs("peft")
def test_peft_computes_what_the_trainers_log_probs_say(base, temper, tmp_path):
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    from temper.torch.lora import add_adapters
    from temper.torch.model import open_model

    with InProcess(trainer_role(base, parity.algorithm(m.AlgorithmName.GRPO, temper), "temper.torch:Trainer")) as worker:
        parity.updates(worker, tmp_path / "checkpoint", 2)
    theirs = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), tmp_path / "checkpoint")
    ours = open_model(base, torch.float32, torch.device("cpu"))
    add_adapters(ours, LORA, seed=1)
    import safetensors.torch

    from temper.torch.lora import adapter_tensors

    for name, tensor in safetensors.torch.load_file(tmp_path / "checkpoint/adapter_model.safetensors").items():
        adapter_tensors(ours)[name].data.copy_(tensor)
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    torch.testing.assert_close(ours(ids).logits, theirs(ids).logits, atol=1e-5, rtol=1e-5)
