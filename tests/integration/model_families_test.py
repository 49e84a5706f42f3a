"""Which role runs a model family: the verdict on the config.json of each entry of model_families.json.

| verdict | meaning |
|---|---|
| `runs` | the C++ roles run it |
| `refused: KEY` | one of their architectures with a setting that they do not compute; temper.torch runs it |
| `python role` | another architecture that temper.torch runs |
| `own role` | neither does |
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import model_families
import pytest
from environment import ROOT
from runs import Run

ENTRIES = model_families.read()
PAGE = ROOT / "docs/how-to/your-model.md"

#: Sizes of a small model by the names that configurations have for them.
SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 211,
    "max_position_embeddings": 128, "num_key_value_heads": 2, "num_kv_heads": 2, "head_dim": 16, "ffn_dim": 96, "n_inner": 96,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "intermediate_size_mlp": 96, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16,
    "v_head_dim": 16, "word_embed_proj_dim": 64, "rotary_dim": 8, "sliding_window": 16, "window_size": 16,
    "bos_token_id": None, "eos_token_id": 1, "pad_token_id": None}
#: What does not follow from those.
ALSO = {"GPT-Neo": {"attention_types": [[["global", "local"], 1]]}, "SmolLM3": {"num_hidden_layers": 4}}


def verdicts(*kinds: str) -> list:
    return [pytest.param(e, id=e["family"]) for e in ENTRIES if e["verdict"].split(":")[0] in kinds]


def said(temper: str, folder: Path, config: dict) -> str:
    """What `temper model` says of a folder that has only a config.json."""
    (folder / "config.json").write_text(json.dumps(config))
    done = subprocess.run([temper, "model", str(folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    return done.stderr.replace(str(folder), "FOLDER")


def test_each_entry_names_its_source_and_families_are_unique():
    for entry in ENTRIES:
        source = entry["source"]
        assert set(source) >= {"class", "version"} or set(source) == {"repository", "path", "commit"}, entry["family"]
    names = [entry["family"] for entry in ENTRIES]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("entry", [pytest.param(e, id=e["family"]) for e in ENTRIES if "class" in e["source"]])
def test_the_configuration_is_what_transformers_writes(entry):
    import transformers

    if entry["source"]["version"] != transformers.__version__:
        pytest.skip(f"written by transformers {entry['source']['version']}")
    assert model_families.written(entry["source"]) == entry["config"]


@pytest.mark.parametrize("entry", verdicts("runs"))
def test_the_cpp_roles_accept_the_configuration(entry, temper, tmp_path):
    """Then they look for weights, which are not here."""
    assert "FOLDER has neither model.safetensors nor " in said(temper, tmp_path, entry["config"])


@pytest.mark.parametrize("entry", verdicts("refused", "python role", "own role"))
def test_a_refusal_is_one_line_that_names_its_cause_and_the_python_roles(entry, temper, tmp_path):
    text = said(temper, tmp_path, entry["config"])
    assert text.count("\n") == 1
    assert "temper.torch:Engine" in text and "temper.torch:Trainer" in text
    kind, _, key = entry["verdict"].partition(": ")
    assert (f"`{key}" if kind == "refused" else entry["config"]["architectures"][0]) in text
    assert len(text) < 500, "a reader must find the cause"


def small_model(entry: dict, vocabulary: int = 211):
    """A model of the family with random weights."""
    import torch
    import transformers

    kind = transformers.CONFIG_MAPPING[entry["config"]["model_type"]]
    aliases = getattr(kind, "attribute_map", {})
    known = kind().to_dict()
    sizes = {aliases.get(name, name): value for name, value in {**SMALL, "vocab_size": vocabulary}.items() if aliases.get(name, name) in known}
    config = kind(**{**sizes, **entry["source"].get("arguments", {}), **ALSO.get(entry["family"], {})})
    if "kv_lora_rank" in sizes:  # latent attention has as many key heads as query heads
        config.num_key_value_heads = config.num_attention_heads
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(torch.randn_like(tensor) * 0.1)
    return model


@pytest.mark.needs("torch", "transformers")
@pytest.mark.parametrize("entry", verdicts("python role", "refused"))
def test_temper_torch_computes_the_same_logits_in_a_padded_batch_and_with_its_cache(entry):
    """As one pass over each text alone. A model that ignores masks, positions or its cache would differ."""
    import numpy as np
    import torch
    from types import SimpleNamespace

    from temper.torch.engine import Engine, check_cache
    from temper.torch.model import response_logprobs

    torch.set_num_threads(1)
    model = small_model(entry)
    check_cache(type(model), model.config)
    random = np.random.default_rng(1)
    texts = [(random.integers(2, 211, size), random.integers(2, 211, 20)) for size in (3, 9, 5)]
    with torch.no_grad():
        alone = [model(input_ids=torch.tensor(np.concatenate(text))[None], use_cache=False).logits[0].float()
                 for text in texts]

    engine = object.__new__(Engine)  # of it, only the computation
    engine._device, engine._model, engine._recorder = torch.device("cpu"), model, None
    order = [0, 1, 2, 1]  # equal prompts are computed once
    engine._rows = [SimpleNamespace(request=SimpleNamespace(tokens=texts[i][0]), tokens=[], finish="", text=i) for i in order]
    worst = 0.0
    with torch.inference_mode():
        logits, mask = engine._prefill()
        for step in range(20):
            for row, own in zip(engine._rows, logits):
                expected = alone[row.text][texts[row.text][0].size - 1 + step]
                worst = max(worst, (own.float() - expected).abs().max().item())
                row.tokens.append(int(texts[row.text][1][step]))
            if step == 10:
                engine._rows[0].finish = engine._rows[1].finish = "end"
                mask = engine._shrink(mask)
            logits, mask = engine._decode(mask)
    with torch.no_grad():
        trained = response_logprobs(model, texts, 1.0, engine._device)
    for (prompt, response), logits, own in zip(texts, alone, trained):
        expected = logits[prompt.size - 1:-1].log_softmax(-1).gather(1, torch.tensor(response)[:, None])[:, 0]
        worst = max(worst, (own[:20] - expected).abs().max().item())
    scale = max(logits.abs().max().item() for logits in alone)
    print(f"{entry['family']}: {worst:.1e} of {scale:.1f}")
    assert worst <= 1e-4 * max(scale, 1.0)


@pytest.mark.needs("torch", "transformers")
@pytest.mark.parametrize("entry", verdicts("own role"))
def test_temper_torch_does_not_run_the_family(entry):
    """Either AutoModelForCausalLM does not know it, or the engine refuses it before it starts."""
    import transformers

    from temper.errors import RoleError
    from temper.torch.engine import check_cache

    model_type = entry["config"]["model_type"]
    if model_type not in transformers.CONFIG_MAPPING:
        return
    kind = transformers.CONFIG_MAPPING[model_type]
    if kind not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        return
    with pytest.raises(RoleError, match="recurrent state"):
        check_cache(transformers.MODEL_FOR_CAUSAL_LM_MAPPING[kind], kind(**entry["source"].get("arguments", {})))


RUN = """
name: gemma
policy: synthetic
steps: 4
model: {path: gemma, vocabulary: 211, context: 64, end_tokens: [1]}
task: {kind: jsonl, path: train.jsonl}
verifier: {kind: python, function: "rewards:short"}
algorithm: {groups_per_update: 4, responses_per_group: 8, learning_rate: 1e-3}
sampling: {max_new_tokens: 8}
placement: {mode: colocated, cards: 1}
rollout: {concurrency: 16, engine: {kind: python, use: "temper.torch:Engine", with: {model: MODEL}}}
trainer: {engine: {kind: python, use: "temper.torch:Trainer", with: {model: MODEL}}}
checkpoint: {every: 2}
deadlines: {start: 300s}
"""
REWARDS = """
def short(completion_ids, **columns):
    return [float(len(ids) <= 4) for ids in completion_ids]
"""


@pytest.mark.timeout(600)
@pytest.mark.needs("torch", "transformers", "safetensors")
def test_a_run_trains_gemma_2_on_token_ids_as_the_page_on_python_roles_says(temper, tmp_path):
    import safetensors.numpy

    model = tmp_path / "gemma"
    small_model(next(e for e in ENTRIES if e["family"] == "Gemma 2")).save_pretrained(model)
    (tmp_path / "rewards.py").write_text(REWARDS)
    rows = [{"prompt": f"{a}+{b}=", "prompt_token_ids": [10 + a, 40, 10 + b, 41], "answer": ""} for a in range(20) for b in range(5)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Run(temper, tmp_path, RUN.replace("MODEL", str(model))) as run:
        run.finish()
        assert [one["step"] for one in run.metrics()] == [1, 2, 3, 4]
        run.assert_audit_is_clean()
        given = safetensors.numpy.load_file(model / "model.safetensors")
        trained = safetensors.numpy.load_file(run.run_dir / "checkpoints/step-000004/model.safetensors")
        assert set(given) == set(trained)
        assert any((given[name] != trained[name]).any() for name in given)


TEXT_RUN = """
name: text
policy: synthetic
steps: 2
model: {path: MODEL, vocabulary: 600, context: 64, end_tokens: [1]}
task: {kind: jsonl, path: train.jsonl, template: chat}
verifier: VERIFIER
algorithm: {groups_per_update: 4, responses_per_group: 8, learning_rate: 1e-3}
sampling: {max_new_tokens: 8}
samples: {share: 1}
placement: {mode: colocated, cards: 1}
rollout: {concurrency: 16, engine: {kind: python, use: "temper.torch:Engine", with: {model: MODEL}}}
trainer: {engine: {kind: python, use: "temper.torch:Trainer", with: {model: MODEL}}}
deadlines: {start: 300s}
"""
CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TEXT_REWARDS = """
def even(completions, prompts, **columns):
    assert all(prompt.startswith("<user>What is ") for prompt in prompts), prompts
    return [float(len(text) % 2 == 0) for text in completions]
"""


def write_tokenizer(kind: str, folder: Path):
    """A tokenizer of 600 tokens: byte-level, or as converted from SentencePiece."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    special = ["<unk>", "</s>"]
    if kind == "byte-level":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        made.normalizer = normalizers.Replace(" ", "\u2581")
        made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
        alphabet, special = [], [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, special_tokens=special, show_progress=False)
    made.train_from_iterator(PAGE.read_text().splitlines(), trainer)
    file = json.loads(made.to_str())  # the trainer made the bytes special tokens, which published files do not
    file["added_tokens"] = [token for token in file["added_tokens"] if not token["content"].startswith("<0x")]
    (folder / "tokenizer.json").write_text(json.dumps(file))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHAT}))
    return Tokenizer.from_str(json.dumps(file))


@pytest.mark.timeout(600)
@pytest.mark.needs("torch", "transformers", "safetensors", "tokenizers")
@pytest.mark.parametrize(("family", "kind", "verifier", "is_right"), [
    ("Gemma 2", "SentencePiece", '{kind: regex, pattern: "[aeiou]"}', lambda text: any(x in "aeiou" for x in text)),
    ("OLMo 2", "byte-level", '{kind: python, function: "rewards:even"}', lambda text: len(text) % 2 == 0)])
def test_a_run_trains_a_family_of_temper_torch_on_texts_with_its_chat_template(family, kind, verifier, is_right, temper, tmp_path):
    model = tmp_path / "model"
    small_model(next(e for e in ENTRIES if e["family"].split(" (")[0] == family), 600).save_pretrained(model)
    tokenizer = write_tokenizer(kind, model)
    (tmp_path / "rewards.py").write_text(TEXT_REWARDS)
    rows = [{"prompt": f"What is {a} + {b}?", "answer": str(a + b)} for a in range(20) for b in range(5)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Run(temper, tmp_path, TEXT_RUN.replace("MODEL", str(model)).replace("VERIFIER", verifier)) as run:
        run.finish()
        assert [one["step"] for one in run.metrics()] == [1, 2]
        run.assert_audit_is_clean()
        samples = [json.loads(line) for line in (run.run_dir / "samples.jsonl").read_text().splitlines()]
    assert len(samples) >= 32
    for sample in samples:
        tokens = sample["tokens"][:sample["tokens"].index(1)] if 1 in sample["tokens"] else sample["tokens"]
        assert sample["response"] == tokenizer.decode(tokens), sample
        assert sample["prompt"].startswith("<user>What is ") and sample["prompt"].endswith("?\n<assistant>"), sample
        assert sample["reward"] == float(is_right(sample["response"])), sample
    assert {sample["reward"] for sample in samples} == {0.0, 1.0}


def table() -> str:
    """The table of the page: which roles run a family. Without the sizes and settings in parentheses."""
    rows = {"runs": "C++, or `temper.torch`", "python role": "`temper.torch`", "own role": "neither"}
    lines = ["| roles | families |", "|---|---|"]
    for verdict, roles in rows.items():
        families = dict.fromkeys(e["family"].split(" (")[0] for e in ENTRIES if e["verdict"] == verdict)
        lines.append(f"| {roles} | {', '.join(families)} |")
    return "\n".join(lines)


def test_the_page_has_the_table():
    assert table() in PAGE.read_text(), f"expected in {PAGE.name}:\n{table()}"
