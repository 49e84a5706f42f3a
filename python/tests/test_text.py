"""Text and token ids: characters, or the tokenizer of a model folder."""

from __future__ import annotations

import pathlib
import sys
import types

import numpy as np
import pytest
from conftest import welcome

from temper import messages as m
from temper.errors import RoleError
from temper.roles import Role


def role(**vocabulary: object) -> Role:
    return Role(welcome("reward", vocabulary=m.Vocabulary(**vocabulary)), "reward-0")


def test_characters_are_tokens_and_back() -> None:
    one = role(size=14, alphabet="0123456789+=")
    assert one.encode("12+3=").tolist() == [3, 4, 12, 5, 13]
    assert one.decode([3, 4, 12, 5, 13, 1, 3]) == "12+3="
    with pytest.raises(RoleError, match="expected only characters of"):
        one.encode("1-1")


def test_bytes_are_tokens_where_there_is_no_alphabet() -> None:
    one = role(size=258)
    assert one.decode(one.encode("né😀")) == "né😀"
    assert one.decode(one.encode("é")[:1]) == "\ufffd"


def test_a_response_ends_at_any_end_token_and_a_prompt_at_none() -> None:
    one = role(size=14, alphabet="0123456789+=", end=1, ends=np.array([1, 13], np.int32))
    assert one.decode([3, 13, 4]) == "1"
    assert one.decode([3, 1, 4]) == "1"
    assert one.decode([3, 13, 1, 4], to_end=False) == "1=2"


class FakeTokenizer:
    @staticmethod
    def from_file(file: str) -> FakeTokenizer:
        assert pathlib.Path(file).is_file()
        return FakeTokenizer()

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return " ".join(map(str, ids))

    def encode(self, text: str, add_special_tokens: bool) -> object:
        assert not add_special_tokens
        return types.SimpleNamespace(ids=[int(word) for word in text.split()])


def test_a_model_folder_says_what_its_tokens_mean(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = types.SimpleNamespace(Tokenizer=FakeTokenizer)
    monkeypatch.setitem(sys.modules, "tokenizers", fake)
    (tmp_path / "tokenizer.json").write_text("{}")
    one = role(size=300, folder=str(tmp_path), end=7, ends=np.array([7, 8], np.int32))
    assert one.decode([5, 6, 8, 5]) == "5 6"
    assert one.decode([5, 7, 8], to_end=False) == "5 7 8"
    assert one.encode("9 10").tolist() == [9, 10]


def test_a_folder_without_a_tokenizer_has_no_text(tmp_path: pathlib.Path) -> None:
    one = role(size=300, folder=str(tmp_path))
    assert one.decode([5, 6]) == ""
    with pytest.raises(RoleError, match=r"tokenizer\.json, which does not exist"):
        one.encode("5")


def test_a_package_that_is_missing_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(RoleError, match="pip install tokenizers"):
        role(size=300, folder=str(tmp_path)).decode([5])
