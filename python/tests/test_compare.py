"""`python -m temper.compare`: without transformers, and what it reports of a tokenizer."""

from __future__ import annotations

import json
import pathlib
import sys
import types
from typing import Any

import pytest

from temper import compare
from temper.errors import PERMANENT_EXIT


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_a_missing_package_has_its_own_exit_code_and_the_next_step(
    missing: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setitem(sys.modules, missing, None)
    assert compare.main([str(tmp_path), str(tmp_path)]) == PERMANENT_EXIT
    said = capsys.readouterr().err
    assert missing in said and f"{sys.executable} -m pip install" in said
    assert "TEMPER_PYTHON" in said and said.count("\n") == 1
    assert (tmp_path / "started").exists() and not (tmp_path / "answer.json").exists()


def test_an_error_of_transformers_is_one_line(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no such\nmodel type")

    monkeypatch.setattr(compare, "compare", fail)
    assert compare.main(["MODEL", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("transformers cannot run MODEL: ValueError: no such; model type")
    assert said.count("\n") == 1


class Tokenizer:
    """Encodes characters. Rejects chats that begin with the assistant."""

    chat_template: str | None = "a template"

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [ord(c) for c in text]}

    def apply_chat_template(self, chat: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        assert not tokenize and add_generation_prompt
        if chat[0]["role"] == "assistant":
            raise ValueError("who asked?")
        return "".join(turn["content"] for turn in chat) + ">"


def fake_tokenizer(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
    def from_pretrained(folder: str, local_files_only: bool) -> Any:
        assert local_files_only
        if tokenizer is None:
            raise OSError(f"{folder} has no tokenizer")
        return tokenizer

    module = types.ModuleType("transformers")
    module.AutoTokenizer = types.SimpleNamespace(from_pretrained=from_pretrained)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)


def test_texts_and_chats_are_those_of_the_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tokenizer(monkeypatch, Tokenizer())
    chats = [[{"role": "user", "content": "b"}], [{"role": "assistant", "content": "c"}]]
    found = compare._of_tokenizer("MODEL", ["a", "bc"], chats)
    assert found["tokenizer_error"] == ""
    assert found["tokens"] == [[97], [98, 99]]
    assert found["chats"][0] == {"text": "b>"}
    assert found["chats"][1]["error"].startswith("ValueError: who asked?")
    json.dumps(found)
    Tokenizer.chat_template = None
    assert compare._of_tokenizer("MODEL", ["a"], chats)["chats"] is None


def test_a_tokenizer_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tokenizer(monkeypatch, None)
    found = compare._of_tokenizer("MODEL", ["a"], [])
    assert "MODEL has no tokenizer" in found["tokenizer_error"]
    assert compare._of_tokenizer("MODEL", [], []) == {
        "tokenizer_error": "", "tokens": [], "chats": None
    }
