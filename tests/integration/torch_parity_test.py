"""temper.torch beside the C++ roles, each worker given the same messages: losses, gradients, moments and weights of
the trainers, log-probs of the references, tokens of the engines."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from environment import ROOT
from worker import InProcess, Worker

from temper import messages as m
from temper.weights import Publisher, Weights
from temper.wire import pack

pytestmark = pytest.mark.needs("torch", "transformers", "safetensors")

VOCABULARY, CONTEXT, LONGEST = 14, 24, 8
ALGORITHMS = list(m.AlgorithmName)
ENUMS = {"name": m.AlgorithmName, "objective": m.Objective, "proximal": m.Proximal, "advantage_mean": m.AdvantageMean,
         "advantage_std": m.AdvantageStd, "ratio": m.RatioLevel, "average": m.Averaging,
         "behaviour_weight_mode": m.WeightMode, "behaviour_weight_level": m.WeightLevel}
CLOSE = 1e-4


@pytest.fixture
def native(temper) -> str:
    """The C++ worker."""
    return f"{temper}-worker"


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A model folder of random weights, in every tensor."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=CONTEXT, rms_norm_eps=1e-6,
        tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 100.0},
        bos_token_id=None, eos_token_id=1, initializer_range=0.1)
    folder = tmp_path_factory.mktemp("base")
    model = LlamaForCausalLM(config)
    for name, p in model.named_parameters():
        if p.ndim == 1:
            torch.nn.init.normal_(p, 1.0, 0.2)
    model.save_pretrained(folder)
    return folder


def role_of(kind: m.RoleKind, base: Path, use: str | None, **arguments: object) -> m.RoleConfig:
    role = m.RoleConfig(kind=kind, seed=11, base_weights=str(base), shared_memory=True)
    role.model = m.ModelConfig(hidden=32, layers=2, heads=4, kv_heads=2, ffn=48, context=CONTEXT, rope_base=100.0)
    role.model.head_dim, role.model.vocabulary, role.model.norm_epsilon = 8, VOCABULARY, 1e-6
    role.vocabulary = m.Vocabulary(size=VOCABULARY, end=1, first=2)
    role.vocabulary.ends = role.model.end_tokens = np.array([1], np.int32)
    if use:
        role.engine = m.EngineConfig(kind=m.EngineKind.PYTHON, use=use)
        role.engine.with_ = {"device": "cpu", **{name: str(value) for name, value in arguments.items()}}
    return role


def algorithm(name: m.AlgorithmName, temper: str, **over: object) -> m.AlgorithmConfig:
    """As the orchestrator writes it out: every column of the program's own table."""
    settings = {"name": name.name.lower(), "minibatches": 2, "kl": 0.05, "learning_rate": 1e-3, "micro_batch_tokens": 64,
                "gradient_clip": 0.5, "weight_decay": 0.1,
                # With 1e-8, the first step for a gradient near zero is hardly more than its sign, which rounding decides.
                "adam_epsilon": 1e-6, **over}
    words = [word for key, value in settings.items() for word in ("--set", f"algorithm.{key}={value}")]
    words += ["--set", "reference.engine={kind: python, use: 'temper.torch:Reference'}"]  # a teacher, if there is one
    config = ROOT / "configs/quickstart.yaml"
    shown = subprocess.run([temper, "check", str(config), "--json", "--set", f"sampling.max_new_tokens={LONGEST}", *words],
                           capture_output=True, text=True, timeout=60, check=True)
    a = m.AlgorithmConfig()
    for field in dataclasses.fields(a):
        value = json.loads(shown.stdout)["config"]["algorithm"][field.name]
        kind = ENUMS.get(field.name)
        if field.name == "critic":
            value = m.CriticConfig(**value)
        if field.name == "learning_rate_schedule":
            value = m.LearningRateSchedule(**{**value, "decay": m.Decay[value["decay"].upper()]})
        setattr(a, field.name, kind[value.upper()] if kind else value)
    return a


def top_tokens(random: np.random.Generator, size: int, top_k: int) -> m.TopTokens:
    """The most likely tokens of random distributions."""
    p = random.dirichlet(np.ones(VOCABULARY), size)
    ids = np.argsort(-p, axis=1)[:, :top_k]
    return m.TopTokens(ids.astype(np.int32).ravel(), np.log(np.take_along_axis(p, ids, 1)).astype(np.float32).ravel())


def batch(seed: int, top_k: int = 0) -> m.Train:
    """4 groups of 4 responses, sampled from a policy that is some way from the one that is trained. The first token of
    each is of version 0, the others of version 1."""
    random = np.random.default_rng(seed)
    items, entries = [], []
    for group in range(1, 5):
        prompt = random.integers(2, VOCABULARY, 3 + group).astype(np.int32)
        entries.append(m.CertificateEntry(group, 0))
        for _ in range(4):
            size = int(random.integers(1, LONGEST + 1))
            behaviour = random.normal(-math.log(VOCABULARY), 0.4, size).astype(np.float32)
            items.append(m.TrainItem(
                group, prompt, random.integers(2, VOCABULARY, size).astype(np.int32), behaviour,
                reference=(behaviour + random.normal(0, 0.3, size)).astype(np.float32).clip(max=-0.01),
                reward=float(random.integers(0, 3)), first_version=0,
                segments=[m.Segment(0, 1), m.Segment(1, size - 1)] if size > 1 else [m.Segment(0, 1)]))
            if top_k:
                items[-1].top = top_tokens(random, size, top_k)
    return m.Train(1, m.Certificate(0, 2, entries), items)


def updates(worker: Worker | InProcess, folder: Path, count: int, top_k: int = 0) -> tuple[list[m.UpdateMetrics], Weights, dict]:
    """The metrics of `count` updates, the weights after them, and the moments of a checkpoint."""
    import safetensors.numpy

    worker.await_one(m.TrainerReady)
    metrics = []
    for step in range(count):
        work = batch(step, top_k)
        work.certificate.step = step
        worker.send(work)
        done = worker.await_one(m.Trained)
        metrics.append(done.metrics)
    weights = worker.weights(done.weights)
    folder.mkdir()
    worker.send(m.SaveState(count, str(folder)))
    assert worker.await_one(m.StateSaved).error == ""
    return metrics, weights, safetensors.numpy.load_file(folder / "optimizer.safetensors")


def differ(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference, relative to the tensor's size."""
    return float(np.abs(a.astype(np.float64) - b).max() / (np.abs(b).max() + 1e-12))


def assert_metrics_agree(ours: m.UpdateMetrics, theirs: m.UpdateMetrics) -> None:
    for name in ("loss", "kl", "clip_fraction", "ratio_mean", "entropy", "gradient_norm", "reward_mean", "log_ratio",
                 "behaviour_weight", "capped_fraction", "effective_samples", "mismatch", "stale_ratio", "stale_tokens", "learning_rate"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a == b or math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-6), f"{name}: {a} and {b}"
    assert ours.tokens == theirs.tokens


def trainer_role(base: Path, a: m.AlgorithmConfig, use: str | None, **arguments: object) -> m.RoleConfig:
    role = role_of(m.RoleKind.TRAINER, base, use, **arguments)
    role.settings = pack(m.TrainerSettings(algorithm=a, temperature=0.9, longest_response=LONGEST).pack())
    return role


#: Settings beside the name of an algorithm.
VARIANTS = [
    *((name, {}) for name in ALGORITHMS),
    (m.AlgorithmName.ICEPOP, {"behaviour_weight_mode": "clamp"}),
    (m.AlgorithmName.SEQ_MIS, {"behaviour_weight_floor": 0.5}),
    (m.AlgorithmName.GEO_RS, {"behaviour_weight_floor": 0.8, "behaviour_weight_cap": 1.25}),
    (m.AlgorithmName.OPD, {"reward_weight": 1, "distillation": 0.5}),
    (m.AlgorithmName.A3PO, {"minibatches": 4, "behaviour_weight_mode": "clamp"}),
    (m.AlgorithmName.DECOUPLED_PPO, {"scale_by_effective_samples": "true"}),
    (m.AlgorithmName.GRPO, {"learning_rate_schedule": "{warm_up_steps: 1, decay: cosine, decay_steps: 3, end: 0.2}"}),
    (m.AlgorithmName.GRPO, {"kl": 0}),
    (m.AlgorithmName.GSPO, {"distillation": 0.5, "clip_low": 0.2, "clip_high": 0.2}),
    (m.AlgorithmName.OPD, {"distillation_top_k": 4}),
    (m.AlgorithmName.OPD, {"distillation_top_k": VOCABULARY, "average": "sequence"}),
    (m.AlgorithmName.DECOUPLED_PPO, {"distillation": 0.5, "distillation_top_k": 3}),
]


@pytest.mark.parametrize(("name", "over"), VARIANTS, ids=lambda v: v.name.lower() if hasattr(v, "name") else "-".join(v))
def test_updates_of_the_two_trainers_agree(name, over, base, temper, native, tmp_path):
    a = algorithm(name, temper, **over)
    results = []
    with Worker(tmp_path / "cpp", trainer_role(base, a, None), native) as worker:
        results.append(updates(worker, tmp_path / "cpp/checkpoint", 2, a.distillation_top_k))
    with InProcess(trainer_role(base, a, "temper.torch:Trainer")) as worker:
        (tmp_path / "python").mkdir()
        results.append(updates(worker, tmp_path / "python/checkpoint", 2, a.distillation_top_k))
    (cpp, their_weights, their_moments), (python, weights, moments) = results
    for ours, theirs in zip(python, cpp):
        assert_metrics_agree(ours, theirs)
        assert ours.kl > 0, "a reference scored the batch, whether or not the loss uses it"
    assert set(weights) == set(their_weights)
    assert {k: differ(weights[k], their_weights[k]) for k in weights if differ(weights[k], their_weights[k]) > CLOSE} == {}
    # The first moment is the gradient's running mean, the second that of its square: both agree only if gradients do.
    assert set(moments) == set(their_moments)
    assert {k: d for k in moments if (d := differ(moments[k], their_moments[k])) > CLOSE} == {}


@pytest.mark.parametrize("top_k", [0, 4])
def test_log_probs_of_the_two_references_agree(top_k, base, native, tmp_path):
    items = [m.ScoreReferenceItem(prompt=i.prompt, response=i.response) for i in batch(7).items]
    items.append(m.ScoreReferenceItem(prompt=items[0].prompt))  # an empty response
    scores = []
    for use in (None, "temper.torch:Reference"):
        role = role_of(m.RoleKind.REFERENCE, base, use)
        a = m.AlgorithmConfig(distillation_top_k=top_k)
        role.settings = pack(m.TrainerSettings(algorithm=a, temperature=0.9, longest_response=LONGEST).pack())
        with InProcess(role) if use else Worker(tmp_path / "cpp", role, native) as worker:
            worker.send(m.ScoreReference(1, items))
            scores.append(worker.await_one(m.ReferenceScored))
    cpp, python = scores
    assert len(cpp.logprobs) == len(python.logprobs) == len(items)
    for theirs, ours in zip(cpp.logprobs, python.logprobs):
        np.testing.assert_allclose(ours, theirs, atol=CLOSE, rtol=CLOSE)
    if not top_k:
        assert cpp.top is None and python.top is None
        return
    for item, theirs, ours in zip(items, cpp.top, python.top, strict=True):
        assert ours.ids.tolist() == theirs.ids.tolist()
        assert ours.ids.size == top_k * item.response.size
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=CLOSE, rtol=CLOSE)


def generated(worker: Worker | InProcess, base: Path, prompts: list[list[int]]) -> dict[int, m.GeneratedItem]:
    """Four responses to each prompt, by their id."""
    publisher = Publisher(shared_memory=True)
    publisher.publish(1, (base / "model.safetensors").read_bytes(), lambda h: worker.send(m.StageWeights(h)), worker.send)
    assert worker.await_one(m.WeightsStaged).error == ""
    worker.send(m.CommitWeights(1))
    assert worker.await_one(m.WeightsCommitted).error == ""
    for lease, prompt in enumerate(prompts):
        items = [m.GenerateItem(response=4 * lease + k) for k in range(4)]
        worker.send(m.Generate(lease=lease, prompt=np.array(prompt, np.int32), items=items))
    found: dict[int, m.GeneratedItem] = {}
    while len(found) < 4 * len(prompts):
        found |= {item.response: item for item in worker.await_one(m.Generated).items}
    return found


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.8)])
def test_the_two_engines_draw_the_same_tokens_with_the_same_log_probs(temperature, top_p, base, native, tmp_path):
    prompts = [[3, 4, 5], [6], [7, 8, 9, 10, 2, 3, 4], [3, 4, 5]]
    results = []
    for use in (None, "temper.torch:Engine"):
        role = role_of(m.RoleKind.ROLLOUT, base, use)
        sampling = m.SamplingConfig(temperature=temperature, top_p=top_p, max_new_tokens=LONGEST)
        role.settings = pack(m.RolloutSettings(sampling=sampling, concurrency=8).pack())
        with InProcess(role) if use else Worker(tmp_path / "cpp", role, native) as worker:
            results.append(generated(worker, base, prompts))
    cpp, python = results
    assert {i: r.tokens.tolist() for i, r in python.items()} == {i: r.tokens.tolist() for i, r in cpp.items()}
    assert {r.finish for r in python.values()} == {m.FinishReason.END, m.FinishReason.LENGTH}
    for i, response in python.items():
        assert response.finish == cpp[i].finish
        np.testing.assert_allclose(response.logprobs, cpp[i].logprobs, atol=CLOSE)


def test_two_ranks_make_the_update_that_one_makes(base, temper, tmp_path):
    a = algorithm(m.AlgorithmName.TIS, temper)
    results = []
    for ranks in (1, 2):
        (tmp_path / str(ranks)).mkdir()
        with InProcess(trainer_role(base, a, "temper.torch:Trainer", ranks=ranks)) as worker:
            results.append(updates(worker, tmp_path / str(ranks) / "checkpoint", 2))
    (one, one_weights, one_moments), (two, weights, moments) = results
    for ours, theirs in zip(two, one):
        assert_metrics_agree(ours, theirs)
    assert {k: d for k in weights if (d := differ(weights[k], one_weights[k])) > CLOSE} == {}
    assert {k: d for k in moments if (d := differ(moments[k], one_moments[k])) > CLOSE} == {}


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_checkpoint_is_gone_on_from_as_if_nothing_had_been(ranks, base, temper, tmp_path):
    a = algorithm(m.AlgorithmName.GRPO, temper)
    role = trainer_role(base, a, "temper.torch:Trainer", ranks=ranks, checkpointing="true")
    with InProcess(role) as worker:
        updates(worker, tmp_path / "first", 1)
        work = batch(1)
        work.certificate.step = 1
        worker.send(work)
        straight = dict(worker.weights(worker.await_one(m.Trained).weights))
    role.resume_from, role.version = str(tmp_path / "first"), 1
    with InProcess(role) as worker:
        worker.await_one(m.TrainerReady)
        worker.send(work)
        resumed = worker.weights(worker.await_one(m.Trained).weights)
        assert {k: d for k in straight if (d := differ(resumed[k], straight[k])) > 1e-6} == {}


def work_of(step: int) -> m.Train:
    work = batch(step)
    work.certificate.step = step
    return work


def prove(checkpoint: Path) -> None:
    """Writes the manifest, as the orchestrator does once a trainer has saved."""
    import xxhash

    text = "temper manifest 1\n"
    for file in sorted(checkpoint.iterdir()):
        data = file.read_bytes()
        text += f"file {len(data)} {xxhash.xxh3_128_hexdigest(data)} {file.name}\n"
    (checkpoint / "manifest").write_text(f"{text}end {xxhash.xxh3_128_hexdigest(text.encode())}\n")


@pytest.mark.parametrize("first", ["cpp", "python"])
def test_a_checkpoint_of_either_trainer_is_gone_on_from_by_the_other(first, base, temper, native, tmp_path):
    """Weights and moments of the next update are those that the first trainer makes itself."""
    import safetensors.numpy

    a = algorithm(m.AlgorithmName.TIS, temper)

    def trainer(kind: str, name: str, **given: object) -> Worker | InProcess:
        role = trainer_role(base, a, None if kind == "cpp" else "temper.torch:Trainer")
        role.resume_from, role.version = str(given.get("resume_from", "")), int(given.get("version", 0))
        return Worker(tmp_path / name, role, native) if kind == "cpp" else InProcess(role)

    def next_update(worker: Worker | InProcess, folder: Path) -> tuple[Weights, dict]:
        worker.send(work_of(2))
        weights = worker.weights(worker.await_one(m.Trained).weights)
        folder.mkdir()
        worker.send(m.SaveState(3, str(folder)))
        assert worker.await_one(m.StateSaved).error == ""
        return weights, safetensors.numpy.load_file(folder / "optimizer.safetensors")

    second = "python" if first == "cpp" else "cpp"
    checkpoint = tmp_path / "checkpoint"
    with trainer(first, "one") as worker:
        updates(worker, checkpoint, 2)
        prove(checkpoint)
        expected, expected_moments = next_update(worker, tmp_path / "straight")
    with trainer(second, "other", resume_from=checkpoint, version=2) as worker:
        worker.await_one(m.TrainerReady)
        weights, moments = next_update(worker, tmp_path / "resumed")
    assert {k: d for k in weights if (d := differ(weights[k], expected[k])) > CLOSE} == {}
    assert {k: d for k in moments if (d := differ(moments[k], expected_moments[k])) > CLOSE} == {}


@pytest.mark.parametrize(("key", "value", "why"), [("updates", 7, "found step 1"), ("format", 1, "format 1, expected 2")])
def test_a_checkpoint_that_is_a_mixture_or_of_another_format_is_refused(key, value, why, base, temper, tmp_path):
    from temper.errors import RoleError

    role = trainer_role(base, algorithm(m.AlgorithmName.GRPO, temper), "temper.torch:Trainer")
    with InProcess(role) as worker:
        updates(worker, tmp_path / "first", 1)
    counters = tmp_path / "first/trainer.json"
    counters.write_text(json.dumps({**json.loads(counters.read_text()), key: value}))
    role.resume_from, role.version = str(tmp_path / "first"), 1
    with pytest.raises(RoleError, match=why), InProcess(role):
        pass
