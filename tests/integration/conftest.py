"""Fixtures of the integration tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from environment import ROOT, Environment

TEMPER = os.environ.get("TEMPER") or str(ROOT / "build/release/bin/temper")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*groups): packages of environment.py without which this is skipped")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    there = Environment(Path(sys.prefix)).packages()
    for item in items:
        for mark in item.iter_markers("needs"):
            for group in mark.args:
                if there[group]:
                    item.add_marker(pytest.mark.skip(reason=f"{group} is not here: {there[group]}"))


@pytest.fixture(scope="session")
def temper() -> str:
    """The program. That it is missing is a failure: ./x builds it first."""
    assert Path(TEMPER).is_file(), f"no program {TEMPER}: ./x test integration builds it, or name it with TEMPER"
    return TEMPER


@pytest.fixture
def run_temper(temper: str, tmp_path: Path):
    """run_temper(WORD..., timeout=SECONDS) -> what it printed; fails with it where its status is not 0."""

    def run(*words: str, timeout: float = 300, status: int = 0) -> str:
        done = subprocess.run([temper, *words], capture_output=True, text=True, timeout=timeout, cwd=tmp_path)
        assert done.returncode == status, f"{words}: status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    return run


def write_tiny_llama(folder: Path, vocabulary: int) -> None:
    """A model folder of random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=32, rms_norm_eps=1e-6, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0}, bos_token_id=None, eos_token_id=1,
        initializer_range=0.1)
    LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of random weights whose vocabulary is that of the task `addition`."""
    folder = tmp_path_factory.mktemp("tiny-llama")
    write_tiny_llama(folder, 14)
    return folder
