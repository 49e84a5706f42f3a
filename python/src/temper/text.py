"""Converts between text and token ids: built-in character tokenizer, or tokenizer.json of a model folder."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, Protocol

from .errors import RoleError
from .messages import Vocabulary


class Text(Protocol):
    def decode(self, tokens: Sequence[int]) -> str:
        """Decodes without special tokens; unknown ids are skipped."""

    def encode(self, text: str) -> list[int]:
        """Encodes without adding special tokens."""


class CharacterTokenizer:
    """One token per character of the alphabet, or per byte if there is no alphabet."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._first = vocabulary.first
        self._alphabet = vocabulary.alphabet.encode() or bytes(range(256))

    def decode(self, tokens: Sequence[int]) -> str:
        places = (token - self._first for token in tokens)
        known = (self._alphabet[i] for i in places if 0 <= i < len(self._alphabet))
        return bytes(known).decode(errors="replace")

    def encode(self, text: str) -> list[int]:
        places = [self._alphabet.find(byte) for byte in text.encode()]
        if -1 in places:
            raise RoleError(
                f"encode: expected only characters of {self._alphabet.decode()!r}, found {text!r}"
            )
        return [self._first + i for i in places]


class FolderTokenizer:
    """The tokenizer of a model folder, loaded by the package `tokenizers`."""

    def __init__(self, folder: pathlib.Path) -> None:
        file = folder / "tokenizer.json"
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise RoleError(
                f"{file} needs the package tokenizers (pip install tokenizers): {error}"
            ) from error
        self._tokenizer: Any = Tokenizer.from_file(str(file))

    def decode(self, tokens: Sequence[int]) -> str:
        there = [token for token in tokens if token >= 0]
        return str(self._tokenizer.decode(there, skip_special_tokens=True))

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


class MissingTokenizer:
    """A model folder without a tokenizer.json: rows of the task contain token ids."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def decode(self, tokens: Sequence[int]) -> str:
        return ""

    def encode(self, text: str) -> list[int]:
        raise RoleError(f"encode: expected {self._folder}/tokenizer.json, which does not exist")


def text_of(vocabulary: Vocabulary) -> Text:
    """The tokenizer of a vocabulary. Raises RoleError if it needs a package that is not installed."""
    if not vocabulary.folder:
        return CharacterTokenizer(vocabulary)
    folder = pathlib.Path(vocabulary.folder)
    return FolderTokenizer(folder) if (folder / "tokenizer.json").is_file() else MissingTokenizer(folder)
