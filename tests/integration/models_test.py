"""The C++ policy against transformers on the same model folders: three architectures, random weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TEMPER

pytestmark = pytest.mark.needs("torch", "transformers", "safetensors")

PROBE = Path(TEMPER).parents[1] / "tests/actors/policy/policy_probe"
LENGTHS = [1, 2, 7, 33, 120]
NEW_TOKENS = 12
TOLERANCE = 1e-4

#: What differs between models of an architecture: sizes that divide in more than one way, a head of another width than
#: hidden / heads, an epsilon and a base that are not the defaults, a tied head.
SHAPES = {
    "llama": ("LlamaForCausalLM", {"rms_norm_eps": 1e-5, "rope_theta": 500000.0}),
    # Original context and factors such that, of the eight angles, some stay, some are in between and some are slow.
    "llama3_rope": ("LlamaForCausalLM", {"rope_parameters": {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}}),
    "llama_head_dim": ("LlamaForCausalLM", {"head_dim": 24, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2ForCausalLM", {"rope_theta": 1000000.0, "tie_word_embeddings": True}),
    "qwen2_untied": ("Qwen2ForCausalLM", {"num_key_value_heads": 4, "tie_word_embeddings": False}),
    "qwen3": ("Qwen3ForCausalLM", {"head_dim": 32, "rope_theta": 1000000.0, "tie_word_embeddings": True}),
    "qwen3_untied": ("Qwen3ForCausalLM", {"head_dim": 16, "num_key_value_heads": 1, "tie_word_embeddings": False}),
}


def make_model(name: str):
    """A small model of transformers with random weights, none of which is at the value that it starts with."""
    import torch
    import transformers

    architecture, more = SHAPES[name]
    config_class = getattr(transformers, architecture.replace("ForCausalLM", "Config"))
    config = config_class(**{"hidden_size": 64, "intermediate_size": 152, "num_hidden_layers": 3, "num_attention_heads": 4,
                             "num_key_value_heads": 2, "vocab_size": 211, "max_position_embeddings": 256, "bos_token_id": None,
                             "eos_token_id": 1, "pad_token_id": None, **more})
    torch.manual_seed(len(name))
    model = getattr(transformers, architecture)(config).float().eval()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(torch.randn_like(tensor) * 0.1)
    return model


def sequences(config) -> list[list[int]]:
    """Of several lengths, as far as they and what follows fit the context."""
    import torch

    generator = torch.Generator().manual_seed(3)
    room = config.max_position_embeddings - NEW_TOKENS
    return [torch.randint(config.vocab_size, (n,), generator=generator).tolist() for n in {min(n, room) for n in LENGTHS}]


def ask(folder: Path, tokens: list[list[int]]) -> list[dict]:
    asked = json.dumps({"folder": str(folder), "sequences": tokens, "new_tokens": NEW_TOKENS})
    done = subprocess.run([PROBE], input=asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def largest_difference(model, folder: Path) -> float:
    """Of logits and log-probs; asserts that the most likely tokens are the same."""
    import torch

    worst = 0.0
    tokens = sequences(model.config)
    for own, said in zip(tokens, ask(folder, tokens)):
        with torch.no_grad():
            logits = model(torch.tensor([own])).logits[0].float()
        ours = torch.tensor(said["logits"]).reshape(logits.shape)
        worst = max(worst, (ours - logits).abs().max().item())
        if len(own) > 1:
            theirs = logits[:-1].log_softmax(-1).gather(1, torch.tensor(own[1:])[:, None])[:, 0]
            worst = max(worst, (torch.tensor(said["logprobs"]) - theirs).abs().max().item())
        with torch.no_grad():
            greedy = model.generate(torch.tensor([own]), attention_mask=torch.ones(1, len(own), dtype=torch.long),
                                    max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False,
                                    eos_token_id=None, pad_token_id=0)[0, len(own):]
        assert said["greedy"] == greedy.tolist(), f"{len(own)} tokens"
    return worst


@pytest.fixture(autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)  # several wait for each other by spinning, which on a busy machine takes minutes


@pytest.mark.parametrize("name", SHAPES)
def test_logits_and_greedy_tokens_are_those_of_transformers(name, tmp_path):
    model = make_model(name)
    model.save_pretrained(tmp_path)
    worst = largest_difference(model, tmp_path)
    print(f"{name}: largest difference {worst:.2e}")
    assert worst <= TOLERANCE


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_a_folder_in_shards_and_in_bfloat16_is_read(name, tmp_path):
    """The weights are rounded once; what both compute from them in float32 is the same."""
    import torch
    import transformers

    make_model(name).to(torch.bfloat16).save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert largest_difference(again, tmp_path) <= TOLERANCE


CONFIG = """
name: exported
seed: 3
steps: 2
hardware: local
policy: torch
model: {model}
task: {{kind: addition, digits: 1}}
pretrain: {{max_steps: 5, target_accuracy: 1, check_problems: 8, problems: 100, batch: 8}}
# A model that knows nothing is never right: it learns from being too long.
algorithm: {{groups_per_update: 2, responses_per_group: 2, learning_rate: 1e-3, advantage_mean: none, advantage_std: none,
  overlong_buffer: 4}}
sampling: {{max_new_tokens: 4}}
placement: {{mode: colocated, cards: 1}}
rollout: {{concurrency: 4}}
checkpoint: {{every: 2}}
"""


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"])
def test_what_a_run_exports_is_loaded_by_transformers_unchanged(architecture, tmp_path, run_temper):
    """Base and checkpoint of a run: loaded without a missing or unexpected tensor, same logits, same tokens."""
    import torch
    import transformers

    shape = f"{{architecture: {architecture}, hidden: 32, layers: 2, heads: 4, kv_heads: 2, ffn: 48, tie_embeddings: true}}"
    (tmp_path / "run.yaml").write_text(CONFIG.format(model=shape))
    run_temper("run", "run.yaml", "--set", f"run_dir={tmp_path / 'run'}")
    run_temper("audit", str(tmp_path / "run"))
    for source, dtype in (("run@0", "float32"), ("run", "float32"), ("run", "bfloat16")):
        folder = tmp_path / f"{source}-{dtype}"
        run_temper("export", source, str(folder), "--dtype", dtype)
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True)
        assert type(model).__name__ == architecture
        assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"], report
        assert largest_difference(model.eval(), folder) <= TOLERANCE
    found = json.loads(run_temper("model", "run-float32", "--compare", "--json"))
    assert found["agrees"] and found["tokenizer"] == {"equal": 1, "compared": 1, "note": ""}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run-float32")
    assert tokenizer("12+3=", add_special_tokens=False)["input_ids"] == [3, 4, 12, 5, 13]
    assert tokenizer.decode([3, 4, 12, 5, 13, 1], skip_special_tokens=True) == "12+3="


def test_a_run_begins_with_a_folder_of_transformers_and_gives_one_back(tmp_path, run_temper):
    """What a run was given and what version 0 of it exports are the same weights, and training changes them."""
    import torch
    import transformers

    model = make_model("qwen3")
    model.save_pretrained(tmp_path / "given", max_shard_size="100KB")
    run_temper("model", "given")
    (tmp_path / "run.yaml").write_text(CONFIG.format(model="{path: given, context: 32}"))
    run_temper("run", "run.yaml", "--set", f"run_dir={tmp_path / 'run'}", "--set", "task.tokenizer=characters")
    run_temper("audit", str(tmp_path / "run"))
    run_temper("export", "run@0", "before")
    run_temper("export", "run@2", "after")
    before = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "before", dtype=torch.float32)
    after = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "after", dtype=torch.float32)
    changed = 0
    for (name, given), (_, first), (_, last) in zip(model.named_parameters(), before.named_parameters(),
                                                    after.named_parameters()):
        assert torch.equal(given, first), name
        changed += not torch.equal(first, last)
    assert changed > 0
    assert largest_difference(after.eval(), tmp_path / "after") <= TOLERANCE


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_compare_finds_that_temper_and_transformers_agree(name, tmp_path, run_temper):
    make_model(name).save_pretrained(tmp_path / "model")
    found = json.loads(run_temper("model", "model", "--compare", "--json"))
    assert found["agrees"] is True
    assert found["architecture"] == SHAPES[name][0]
    assert [one["tokens"] for one in found["sequences"]] == [1, 2, 7, 33, 64]
    assert all(one["same_best"] == one["tokens"] for one in found["sequences"])
    assert max(one["largest"] for one in found["sequences"]) <= TOLERANCE
    assert found["tokenizer"]["note"] == "none"


@pytest.mark.parametrize("change", ["rope_theta", "weights"])
def test_compare_finds_that_the_two_models_differ(change, tmp_path, temper):
    """transformers gets another folder than Temper, from an interpreter that replaces the argument."""
    import torch

    model = make_model("llama")
    model.save_pretrained(tmp_path / "model")
    if change == "weights":
        with torch.no_grad():
            model.model.layers[1].self_attn.o_proj.weight[3] += 0.05
    model.save_pretrained(tmp_path / "other")
    if change == "rope_theta":
        file = tmp_path / "other/config.json"
        assert "500000" in file.read_text()
        file.write_text(file.read_text().replace("500000", "600000"))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$1" "$2" {tmp_path / "other"} "$4"\n')
    python.chmod(0o755)
    done = subprocess.run([temper, "model", str(tmp_path / "model"), "--compare"], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "TEMPER_PYTHON": str(python)})
    print(done.stdout)
    assert done.returncode == 3, done.stderr
    assert "differ in log-probabilities: " in done.stdout


def test_compare_names_the_package_that_is_missing(tmp_path, temper):
    make_model("llama").save_pretrained(tmp_path / "model")
    (tmp_path / "transformers.py").write_text("raise ImportError('No module named transformers')\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    done = subprocess.run([temper, "model", str(tmp_path / "model"), "--compare"], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 2
    assert "No module named transformers" in done.stderr and "-m pip install 'transformers" in done.stderr


def test_what_we_do_not_compute_is_refused_by_its_name(tmp_path, temper):
    """Rather than computed as if it was not there."""
    make_model("llama").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for key, value in {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "attention_bias": True,
                       "architectures": ["MixtralForCausalLM"], "hidden_act": "gelu"}.items():
        (tmp_path / "config.json").write_text(json.dumps({**config, key: value}))
        done = subprocess.run([temper, "model", str(tmp_path)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert (key if key != "architectures" else "MixtralForCausalLM") in done.stderr
