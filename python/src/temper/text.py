"""What token ids mean: the characters of a built-in tokenizer, or the tokenizer.json of a model folder."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, Protocol

from .errors import RoleError
from .messages import Vocabulary


class Text(Protocol):
    def decode(self, tokens: Sequence[int]) -> str:
        """Without special tokens; ids that mean nothing are skipped."""

    def encode(self, text: str) -> list[int]:
        """Without special tokens added."""


class Characters:
    """One token per character of the alphabet, or per byte where there is none."""

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
            raise RoleError(f"encode: {text!r} is not of the alphabet {self._alphabet.decode()!r}")
        return [self._first + i for i in places]


class OfFolder:
    """The tokenizer of a model folder, by the library `tokenizers`."""

    def __init__(self, folder: pathlib.Path) -> None:
        file = folder / "tokenizer.json"
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise RoleError(
                f"the text of {file} needs the package tokenizers (pip install tokenizers): {error}"
            ) from error
        self._tokenizer: Any = Tokenizer.from_file(str(file))

    def decode(self, tokens: Sequence[int]) -> str:
        there = [token for token in tokens if token >= 0]
        return str(self._tokenizer.decode(there, skip_special_tokens=True))

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


class IdsOnly:
    """A model folder without a tokenizer.json: rows of the task bring their ids."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def decode(self, tokens: Sequence[int]) -> str:
        return ""

    def encode(self, text: str) -> list[int]:
        raise RoleError(f"encode: {self._folder} has no tokenizer.json")


def text_of(vocabulary: Vocabulary) -> Text:
    """Raises RoleError where the folder's tokenizer needs a package that is not here."""
    if not vocabulary.folder:
        return Characters(vocabulary)
    folder = pathlib.Path(vocabulary.folder)
    return OfFolder(folder) if (folder / "tokenizer.json").is_file() else IdsOnly(folder)
