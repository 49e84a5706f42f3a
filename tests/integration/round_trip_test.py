"""A model through all formats: SmolLM2's GGUF file is trained for two steps and exported; transformers and llama.cpp
then compute with the exported folder what Temper computes."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from environment import ROOT
from llamacpp_environment import LlamacppEnvironment
from runs import Run

pytestmark = pytest.mark.needs("torch", "transformers", "safetensors", "tokenizers")

PROBE = "tests/actors/policy/policy_probe"
PROMPT = "<|im_start|>user\nList the first ten numbers in words.<|im_end|>\n<|im_start|>assistant\n"
NEW_TOKENS = 12
END = 2  # <|im_end|>

CONFIG = """
name: round-trip
seed: 5
steps: 2
policy: torch
task: {kind: jsonl, path: sums.jsonl, held_out: 0}
verifier: {kind: numeric}
model: {path: smollm2, context: 48}
# Two prompts with two responses each; the penalty for long responses gives them an advantage.
algorithm: {groups_per_update: 2, responses_per_group: 2, minibatches: 1, learning_rate: 1e-4, advantage_mean: none,
  advantage_std: none, overlong_buffer: 4}
reference: {replicas: 0}
sampling: {max_new_tokens: 4}
placement: {mode: colocated, cards: 1}
rollout: {concurrency: 4}
checkpoint: {every: 2, keep: 1}
"""


@pytest.fixture(scope="module")
def exported(temper: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `temper export` writes in float32 after two steps from the GGUF file."""
    found = subprocess.run([temper, "model", "smollm2"], capture_output=True, text=True, timeout=600)
    if "cannot install" in found.stderr:
        pytest.skip(f"the model cannot be downloaded: {found.stderr.strip().splitlines()[-1]}")
    assert found.returncode == 0, found.stderr
    folder = tmp_path_factory.mktemp("round-trip")
    rows = [{"prompt": f"<|im_start|>user\n{a} + {b}<|im_end|>\n<|im_start|>assistant\n", "answer": str(a + b)}
            for a, b in ((1, 2), (3, 4), (5, 6), (7, 8))]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Run(temper, folder, CONFIG) as run:
        run.finish()
        run.assert_audit_is_clean()
    for name, source in {"trained": str(run.run_dir), "base": f"{run.run_dir}@0"}.items():
        subprocess.run([temper, "export", source, str(folder / name), "--dtype", "float32"], check=True,
                       capture_output=True, timeout=300)
    return folder


def greedy(temper: str, folder: Path, ids: list[int]) -> list[int]:
    """What Temper's engine continues with where it always takes the most likely token."""
    asked = json.dumps({"folder": str(folder), "sequences": [ids], "new_tokens": NEW_TOKENS})
    done = subprocess.run([Path(temper).parents[1] / PROBE], input=asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    tokens: list[int] = json.loads(done.stdout)[0]["greedy"]
    return tokens


def prompt_ids(folder: Path) -> list[int]:
    from tokenizers import Tokenizer

    ids: list[int] = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(PROMPT, add_special_tokens=False).ids
    return ids


def test_training_changes_the_weights_of_the_gguf_file(exported: Path) -> None:
    """Otherwise the other tests would compare the base with itself."""
    from safetensors import safe_open

    changed = 0
    with safe_open(exported / "base/model.safetensors", "np") as base, \
            safe_open(exported / "trained/model.safetensors", "np") as trained:
        assert set(base.keys()) == set(trained.keys())
        for name in base.keys():
            changed += bool((base.get_tensor(name) != trained.get_tensor(name)).any())
        print(f"{changed} of {len(base.keys())} tensors changed")
        assert changed == len(base.keys())


def test_transformers_computes_with_the_export_what_temper_computes(exported: Path, temper: str) -> None:
    done = subprocess.run([temper, "model", str(exported / "trained"), "--compare", "--json"], capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    print(f"largest difference of a log-probability: {max(one['largest'] for one in found['sequences']):.1e}")
    assert found["agrees"] is True
    assert found["tokenizer"]["equal"] == found["tokenizer"]["compared"] == 5
    assert found["chat_template"]["equal"] == found["chat_template"]["compared"] == 2


@pytest.fixture
def llama_cpp(exported: Path, tmp_path: Path) -> Iterator[str]:
    """The address of llama.cpp's server with the trained model as a GGUF file."""
    environment = LlamacppEnvironment()
    try:
        environment.make()
    except RuntimeError as reason:
        pytest.skip(f"llama.cpp's server is not here: {reason}")
    file = tmp_path / "trained.gguf"
    subprocess.run([str(environment.python), str(ROOT / "tests/integration/folder_to_gguf.py"),
                    str(exported / "trained"), str(file)], check=True, timeout=300)
    with environment.server(file, tmp_path / "log", "--parallel", "1", "--ctx-size", "128", "--threads", "2") as address:
        yield address


def until_end(tokens: list[int]) -> list[int]:
    """llama.cpp stops at the end token."""
    return tokens[:tokens.index(END)] if END in tokens else tokens


def complete(address: str, ids: list[int]) -> dict[str, Any]:
    asked = {"prompt": ids, "n_predict": NEW_TOKENS, "temperature": 0, "return_tokens": True, "cache_prompt": False}
    request = urllib.request.Request(f"{address}/completion", json.dumps(asked).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


def test_llama_cpp_continues_a_prompt_with_the_same_tokens(exported: Path, temper: str, llama_cpp: str) -> None:
    ids = prompt_ids(exported / "trained")
    ours = greedy(temper, exported / "trained", ids)
    theirs = complete(llama_cpp, ids)["tokens"]
    print(f"{len(ids)} tokens of the prompt, then {ours}")
    assert len(until_end(ours)) >= NEW_TOKENS // 2
    assert until_end(theirs) == until_end(ours)
