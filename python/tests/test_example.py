"""The policy in numpy: its gradients, its cache, and its roles against each other."""

from __future__ import annotations

import pathlib

import numpy as np
import numpy_policy
import pytest
from conftest import user

import temper
from temper import messages as m
from temper.wire import pack

MODEL = m.ModelConfig(hidden=16, layers=2, heads=4, kv_heads=2, ffn=24, context=32, rope_base=100.0)
VOCABULARY = 14


def tensors(dtype: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    d, f = MODEL.hidden, MODEL.ffn
    shapes: dict[str, tuple[int, ...]] = {
        "embedding.weight": (VOCABULARY, d),
        "norm.weight": (d,),
        "head.weight": (VOCABULARY, d),
    }
    for i in range(MODEL.layers):
        shapes[f"layers.{i}.attention_norm.weight"] = (d,)
        shapes[f"layers.{i}.ffn_norm.weight"] = (d,)
        shapes[f"layers.{i}.attention.qkv.weight"] = (2 * d, d)
        shapes[f"layers.{i}.attention.out.weight"] = (d, d)
        shapes[f"layers.{i}.ffn.gate_up.weight"] = (2 * f, d)
        shapes[f"layers.{i}.ffn.down.weight"] = (d, f)
    return {
        name: (random.normal(size=shape) * 0.4 + (len(shape) == 1)).astype(dtype)
        for name, shape in shapes.items()
    }


def test_gradients_are_those_of_finite_differences() -> None:
    network = numpy_policy.Network(MODEL)
    network.cos, network.sin = network.cos.astype("f8"), network.sin.astype("f8")
    w = tensors("f8")
    random = np.random.default_rng(1)
    tokens = random.integers(0, VOCABULARY, (3, 7))
    d_out = random.normal(size=(3, 7, MODEL.hidden))
    tape: list[object] = []
    network.forward(w, tokens, tape=tape)
    gradients = network.backward(w, tokens, d_out, tape)
    assert set(gradients) == set(w) - {"head.weight"}
    for name, gradient in gradients.items():
        at = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        value = w[name][at]
        sums = []
        for step in (1e-5, -1e-5):
            w[name][at] = value + step
            sums.append((network.forward(w, tokens) * d_out).sum())
        w[name][at] = value
        assert gradient[at] == pytest.approx((sums[0] - sums[1]) / 2e-5, rel=1e-5), name


def test_names_outside_are_translated_and_back() -> None:
    w = tensors("f4")
    outside = numpy_policy.stored(MODEL, w)
    assert outside["model.layers.1.self_attn.k_proj.weight"].shape == (8, 16)
    again = numpy_policy.fused(MODEL, outside)
    assert set(again) == set(w)
    for name, tensor in w.items():
        np.testing.assert_array_equal(again[name], tensor)


def test_a_cache_changes_nothing() -> None:
    network = numpy_policy.Network(MODEL)
    w = tensors("f4")
    tokens = np.random.default_rng(2).integers(0, VOCABULARY, (2, 9))
    cache: list[object] = []
    parts = [network.forward(w, tokens[:, a:b], cache) for a, b in ((0, 5), (5, 6), (6, 9))]
    np.testing.assert_allclose(np.concatenate(parts, 1), network.forward(w, tokens), atol=2e-5)


def test_engine_reference_and_trainer_agree_on_log_probs(tmp_path: pathlib.Path) -> None:
    image = temper.make_image(numpy_policy.stored(MODEL, tensors("f4")))
    (tmp_path / "model.safetensors").write_bytes(image)
    sampling = m.SamplingConfig(temperature=0.9, max_new_tokens=6)
    rollout = pack(m.RolloutSettings(sampling=sampling).pack())
    training = pack(m.TrainerSettings(algorithm=m.AlgorithmConfig(kl=0.01), temperature=0.9).pack())
    engine = user(numpy_policy.NumpyEngine, "rollout", model=MODEL, settings=rollout)
    engine.load(0, temper.Weights(image))
    told = {"model": MODEL, "settings": training, "base_weights": str(tmp_path)}
    reference = user(numpy_policy.NumpyReference, "reference", **told)
    trainer = user(numpy_policy.NumpyTrainer, "trainer", **told)

    prompts = [np.array(p, np.int32) for p in ([3, 4, 5], [6, 7], [3, 4, 5])]
    none = np.empty(0, np.int32)
    requests = [temper.Request(i, p, none, 6) for i, p in enumerate(prompts)]
    done = [c for c in engine.generate(requests) if c is not None]
    assert sorted(c.request.id for c in done) == [0, 1, 2]
    rows = []
    for c in done:
        response = np.array(c.tokens, np.int32)
        (scored,) = reference.score([temper.Scored(c.request.prompt, response)])
        np.testing.assert_allclose(scored, c.logprobs, atol=1e-4)
        ones = np.ones(response.size, np.uint8)
        zeros = np.zeros(response.size, np.float32)
        logprobs = np.array(c.logprobs, np.float32)
        reward = float(c.request.id)
        prompt = c.request.prompt
        rows.append(
            temper.Row(1, prompt, response, logprobs, np.array(scored), reward, ones, zeros, [])
        )
    metrics = trainer.update(temper.Batch(0, 2, rows, m.Certificate()))
    assert metrics["ratio_mean"] == pytest.approx(1, abs=1e-3)
    assert metrics["log_ratio"] < 1e-3 and abs(metrics["kl"]) < 1e-3
    assert metrics["gradient_norm"] > 0
