"""GGUF files with a SentencePiece tokenizer: the ids of Temper beside those of llama.cpp on the same file, of the package
sentencepiece on the model that the file was made from, and of `tokenizers` on the folder that Temper makes. The models
are trained here, and Mistral 7B's own."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import folder_to_gguf
import pytest
from conftest import write_tiny_llama
from llamacpp_environment import LlamacppEnvironment
from tokenizer_test import ROOT, SENTENCES, ask, corpus, mistral, mixed_texts, random_ids  # noqa: F401

pytestmark = pytest.mark.needs("sentencepiece", "tokenizers", "torch", "transformers", "safetensors")

ADDED = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "\n\n"]


def trained(prefix: bool) -> bytes:
    """A model whose alphabet is small, so that other characters become bytes."""
    import sentencepiece

    lines = [line for file in sorted((ROOT / "docs").rglob("*.md")) for line in file.read_text().splitlines()]
    draw = random.Random(19)
    lines = [*SENTENCES, *lines[:3000], *("".join(draw.choices("ab ", k=draw.randint(1, 80))) for _ in range(1000)),
             *(" " * count + "x" for count in range(1, 60))]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=2000, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=prefix,
        allow_whitespace_only_pieces=True, character_coverage=0.995, control_symbols=["<|im_start|>", "<|im_end|>"],
        user_defined_symbols=["<think>", "\n\n"], minloglevel=2)
    return model.getvalue()


def keys_of(pieces: Any, prefix: bool) -> dict[str, object]:
    """The metadata that convert_hf_to_gguf.py of llama.cpp writes for a SentencePiece model."""
    count = pieces.get_piece_size()
    kinds = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 5 if pieces.is_unused(i) else 6 if pieces.is_byte(i)
             else 4 if pieces.id_to_piece(i) in ADDED else 1 for i in range(count)]
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in range(count)],
            "tokenizer.ggml.scores": [pieces.get_score(i) for i in range(count)],
            "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.unknown_token_id": 0,
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_space_prefix": prefix}


@dataclass
class Model:
    pieces: Any  # of sentencepiece
    folder: Path  # that Temper makes of the file
    server: str  # the address of llama.cpp with the file

    def llama_cpp(self, path: str, **what: object) -> Any:
        request = urllib.request.Request(f"{self.server}/{path}", json.dumps(what).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)


@pytest.fixture(scope="module", params=["prefix", "no prefix", "mistral"])
def model(request: pytest.FixtureRequest, temper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    import sentencepiece

    llama_cpp = LlamacppEnvironment()
    try:
        llama_cpp.make()
    except RuntimeError as reason:
        pytest.skip(f"llama.cpp's server is not here: {reason}")
    prefix = request.param != "no prefix"
    proto = ((request.getfixturevalue("mistral") / "tokenizer.model").read_bytes() if request.param == "mistral"
             else trained(prefix))
    pieces = sentencepiece.SentencePieceProcessor(model_proto=proto)
    here = tmp_path_factory.mktemp("model")
    write_tiny_llama(here / "source", pieces.get_piece_size())
    config = here / "source/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"rope_theta": 100.0}))
    folder_to_gguf.main(here / "source", here / "model.gguf", tokenizer=keys_of(pieces, prefix))
    done = subprocess.run([temper, "model", str(here / "model.gguf")], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TEMPER_CACHE": str(here / "cache")})
    assert done.returncode == 0, done.stderr
    assert "SentencePiece BPE" in done.stdout, done.stdout
    with llama_cpp.server(here / "model.gguf", here / "log", "--parallel", "1", "--ctx-size", "32") as address:
        yield Model(pieces, next(here.glob("cache/gguf-*/model/config.json")).parent, address)


def random_bytes(count: int) -> list[str]:
    draw = random.Random(23)
    texts = [draw.randbytes(draw.randint(1, 40)) for _ in range(count)]
    return [text.decode("utf-8", "replace") if draw.random() < 0.5 else text.decode("latin-1") for text in texts]


def all_texts() -> list[str]:
    draw = random.Random(29)
    spaces = ["".join(draw.choices(["a", "b", " ", "  ", " " * 7, " " * 15, " " * 33, "the", "return", "\n"], k=draw.randint(1, 30))) for _ in range(500)]
    return [*corpus(), *mixed_texts(1500), *random_bytes(500), *spaces, *(" " * count + "a" for count in range(70))]


def test_ids_are_those_of_llama_cpp(model: Model) -> None:
    texts = all_texts()
    tokens = 0
    for text, ours in zip(texts, ask(model.folder, texts=texts)["texts"], strict=True):
        theirs = model.llama_cpp("tokenize", content=text, add_special=False, parse_special=True)["tokens"]
        assert ours.get("ids") == theirs, (text, ours)
        tokens += len(theirs)
    print(f"{len(texts)} texts, {tokens} tokens")
    assert len(texts) > 2000


def test_ids_and_texts_are_those_of_sentencepiece(model: Model) -> None:
    """It finds no control symbols in a text, and adds no space after a user-defined one."""
    texts = [text for text in all_texts() if not any(added in text for added in ADDED)]
    for text, ours in zip(texts, ask(model.folder, texts=texts)["texts"], strict=True):
        theirs = model.pieces.encode(text)
        assert ours.get("ids") == theirs, (text, ours)
        assert ours["text"] == model.pieces.decode(theirs), text
    print(f"{len(texts)} texts")
    assert len(texts) > 2000


def test_the_folder_is_read_alike_by_tokenizers(model: Model) -> None:
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(str(model.folder / "tokenizer.json"))
    texts, ids = all_texts(), random_ids(model.pieces.get_piece_size(), 1000)
    answer = ask(model.folder, texts=texts, ids=ids)
    for text, ours in zip(texts, answer["texts"], strict=True):
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours == {"ids": expected, "text": theirs.decode(expected, skip_special_tokens=True)}, text
    for those, ours in zip(ids, answer["ids"], strict=True):
        assert ours == theirs.decode(those, skip_special_tokens=True), those


def test_a_unigram_model_is_rejected(temper: str, tmp_path: Path) -> None:
    """Also one that a converter took for BPE."""
    import sentencepiece

    lines = [line for file in sorted((ROOT / "docs").rglob("*.md")) for line in file.read_text().splitlines()]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines[:3000]), model_writer=model, vocab_size=1000,
                                             model_type="unigram", byte_fallback=True, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    write_tiny_llama(tmp_path / "source", pieces.get_piece_size())
    config = tmp_path / "source/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"rope_theta": 100.0}))
    for kind, expected in {"llama": "Temper does not support Unigram", "t5": "found t5"}.items():
        file = tmp_path / f"{kind}.gguf"
        folder_to_gguf.main(tmp_path / "source", file, tokenizer=keys_of(pieces, True) | {"tokenizer.ggml.model": kind})
        done = subprocess.run([temper, "model", str(file)], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "TEMPER_CACHE": str(tmp_path / "cache")})
        assert done.returncode != 0 and expected in done.stderr, done.stderr
