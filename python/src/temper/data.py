"""Converts prompts from parquet, a `datasets` folder, JSONL or reasoning-gym into the JSONL of `task: {kind: jsonl}`.

    python -m temper.data train.parquet train.jsonl --prompt question --answer solution
    python -m temper.data train.parquet train.jsonl --model Qwen3-0.6B --tokens
    python -m temper.data reasoning_gym:chain_sum sums.jsonl --size 5000 --set max_terms=2

The prompt of a row is a text or a list of messages. Messages become a text by the chat template of a model folder.
Other columns are kept: reward functions receive them by name.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .chat_template import ChatTemplate, ChatTemplateError, find_template, text_of_content
from .errors import RoleError

#: Default columns, in order of preference.
PROMPTS = ("prompt", "messages", "question", "problem", "query", "instruction")
ANSWERS = ("answer", "solution", "ground_truth", "reward_model.ground_truth", "target", "label")

Row = dict[str, Any]


# --- Sources

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def refuse_lfs_pointer(path: pathlib.Path) -> None:
    with open(path, "rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise RoleError(
                f"{path}: expected data, found a git-lfs pointer; run `git lfs pull` in its "
                "folder"
            )


def read_parquet(path: pathlib.Path) -> Iterator[Row]:
    parquet = _needed("pyarrow.parquet", "pyarrow")
    file = parquet.ParquetFile(path)
    for batch in file.iter_batches(batch_size=1024):
        yield from batch.to_pylist()


def read_arrow(path: pathlib.Path) -> Iterator[Row]:
    """Reads a shard that datasets' save_to_disk() wrote."""
    ipc = _needed("pyarrow.ipc", "pyarrow")
    with open(path, "rb") as file:
        for batch in ipc.open_stream(file):
            yield from batch.to_pylist()


def read_jsonl(path: pathlib.Path) -> Iterator[Row]:
    opened = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else open(path, encoding="utf-8")
    )
    with opened as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise RoleError(f"{path}:{number}: {error}") from None
                if not isinstance(row, dict):
                    raise RoleError(
                        f"{path}:{number}: expected an object, found {type(row).__name__}"
                    )
                yield row


def files_of(folder: pathlib.Path, split: str) -> list[pathlib.Path]:
    """The files of a split in a folder saved by `datasets` or in a hub's layout (SPLIT-*.parquet, SPLIT.jsonl)."""
    if (folder / "dataset_dict.json").is_file():
        there = json.loads((folder / "dataset_dict.json").read_text())["splits"]
        if split not in there:
            raise RoleError(f"{folder}: no split {split}; found {', '.join(there)}")
        folder = folder / split
    if (folder / "state.json").is_file():
        state = json.loads((folder / "state.json").read_text())
        return [folder / part["filename"] for part in state["_data_files"]]
    kinds = ("*.parquet", "*.jsonl", "*.jsonl.gz")
    found = sorted(path for kind in kinds for path in folder.rglob(kind))
    of_split = [
        path
        for path in found
        if path.name.split(".")[0].split("-")[0] == split or path.parent.name == split
    ]
    if not of_split:
        names = sorted({path.name.split(".")[0].split("-")[0] for path in found})
        raise RoleError(
            f"{folder}: no files of split {split}"
            + (f"; found {', '.join(names)}" if names else "")
        )
    return of_split


_READERS: dict[str, Callable[[pathlib.Path], Iterator[Row]]] = {
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".jsonl": read_jsonl,
    ".json": read_jsonl,
    ".gz": read_jsonl,
}


def read(source: pathlib.Path, split: str) -> Iterator[Row]:
    if not source.exists():
        raise RoleError(f"{source}: no such file or folder")
    for path in files_of(source, split) if source.is_dir() else [source]:
        reader = _READERS.get(path.suffix)
        if reader is None:
            raise RoleError(f"{path}: expected .parquet, .arrow, .jsonl, .json or .gz")
        refuse_lfs_pointer(path)
        yield from reader(path)


def _needed(module: str, package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise RoleError(
            f"the package {package} is not installed; run pip install 'temper[data]'"
        ) from None


# --- Prompts and answers


def column(row: Row, name: str) -> Any:
    """The value of a column; `a.b` is field b of column a. None if it does not exist."""
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def choose(row: Row, given: str | None, known: Iterable[str], what: str) -> str:
    if given is not None:
        if column(row, given) is None:
            raise RoleError(f"no column {given}; found {', '.join(row)}")
        return given
    for name in known:
        if column(row, name) is not None:
            return name
    raise RoleError(
        f"no known column for the {what}; choose one with --{what}: {', '.join(row)}"
    )


def text_of(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, (int, float, bool)):
        return json.dumps(answer)
    if isinstance(answer, list) and len(answer) == 1:
        return text_of(answer[0])
    raise RoleError(f"answer: expected a text or a number, found {type(answer).__name__}")


class ChatModel:
    """Tokenizer and chat template of a model folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._template: ChatTemplate | None = None
        try:
            if find_template(folder) is not None:
                self._template = ChatTemplate(folder, date=datetime.datetime.now().strftime)
        except ImportError:
            raise RoleError(
                "the package jinja2 is not installed; run pip install 'temper[data]'"
            ) from None
        except ChatTemplateError as error:
            raise RoleError(str(error)) from None
        self._tokenizer: Any = None

    def render(self, messages: list[Row], arguments: Row) -> str:
        """Renders messages to the text that the model continues. Raises RoleError without a usable template."""
        if self._template is None:
            raise RoleError(f"{self._folder} has no chat template; messages need one")
        try:
            return self._template.render(messages, arguments)
        except ChatTemplateError as error:
            raise RoleError(str(error)) from None

    def tokens(self, text: str) -> list[int]:
        if self._tokenizer is None:
            tokenizers = _needed("tokenizers", "tokenizers")
            file = self._folder / "tokenizer.json"
            if not file.is_file():
                raise RoleError(f"expected {file}, which does not exist")
            refuse_lfs_pointer(file)
            self._tokenizer = tokenizers.Tokenizer.from_file(str(file))
        # A rendered template already contains its special tokens.
        return list(self._tokenizer.encode(text, add_special_tokens=self._template is None).ids)


def content_of(message: Row) -> str | None:
    try:
        return text_of_content(message)
    except ChatTemplateError as error:
        raise RoleError(str(error)) from None


def as_messages(prompt: Any, system: str | None) -> list[Row]:
    given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not isinstance(given, list) or not given:
        raise RoleError("a prompt is a text, or a list of messages with role and content")
    messages: list[Row] = []
    for message in given:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RoleError("a prompt is a text, or a list of messages with role and content")
        messages.append({**message, "content": content_of(message)})
    if system and messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": system})
    return messages


class Converter:
    """Converts source rows into rows of the task file."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._model = ChatModel(asked.model) if asked.model else None
        self._arguments = dict(_setting(text) for text in asked.template)

    def convert(self, row: Row) -> Row | None:
        """Converts a row; None if its prompt is too long."""
        asked = self._asked
        prompt_name = choose(row, asked.prompt, PROMPTS, "prompt")
        prompt = column(row, prompt_name)
        answered = None
        if not isinstance(prompt, str):
            messages = as_messages(prompt, asked.system)
            if messages[-1]["role"] == "assistant":
                answered = messages.pop()["content"]
            if not messages:
                raise RoleError(f"column {prompt_name}: expected a message before the assistant's")
            prompt = messages
        elif asked.chat or asked.system:
            prompt = as_messages(prompt, asked.system)
        out: Row = {"prompt": self._text(prompt), "answer": self._answer(row, answered)}
        if asked.tokens or asked.longest:
            tokens = self._tokens(out["prompt"])
            if asked.longest and len(tokens) > asked.longest:
                return None
            if asked.tokens:
                out["prompt_token_ids"] = tokens
        dropped = {prompt_name.split(".")[0], *asked.drop}
        out |= {
            name: value for name, value in row.items() if name not in dropped and name not in out
        }
        if not isinstance(prompt, str):
            out["messages"] = prompt
        return out

    def _text(self, prompt: str | list[Row]) -> str:
        if isinstance(prompt, str):
            return prompt
        if self._model is None:
            raise RoleError(
                "messages need a chat template: name a model folder that has one with --model"
            )
        return self._model.render(prompt, self._arguments)

    def _tokens(self, text: str) -> list[int]:
        if self._model is None:
            raise RoleError(
                "--tokens and --longest need a tokenizer: name a model folder with --model"
            )
        return self._model.tokens(text)

    def _answer(self, row: Row, answered: str | None) -> str:
        asked = self._asked
        if asked.answer is None and answered is not None:
            text = text_of(answered)
        else:
            text = text_of(column(row, choose(row, asked.answer, ANSWERS, "answer")))
        if asked.after:
            _, mark, text = text.rpartition(asked.after)
            if not mark:
                raise RoleError(f"answer: expected the mark {asked.after!r} of --after")
        return text.strip() if asked.after else text


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise RoleError(f"{text!r}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def write(
    rows: Iterable[Row], out: pathlib.Path, convert: Callable[[Row], Row | None], limit: int | None
) -> str:
    """Writes the converted rows atomically. Returns a summary. Raises RoleError if no row can be written."""
    partial = out.with_name(out.name + ".part")
    written = left_out = 0
    try:
        with open(partial, "w", encoding="utf-8") as file:
            for number, row in enumerate(rows, 1):
                try:
                    made = convert(row)
                    line = (
                        None
                        if made is None
                        else json.dumps(made, ensure_ascii=False, allow_nan=False)
                    )
                except RoleError as error:
                    raise RoleError(f"row {number}: {error}") from None
                except (TypeError, ValueError) as error:
                    raise RoleError(
                        f"row {number}: {error}; leave the column out with --drop COLUMN"
                    ) from None
                if line is None:
                    left_out += 1
                    continue
                file.write(line + "\n")
                written += 1
                if written == limit:
                    break
        if not written:
            raise RoleError("no row to write: the source is empty, or all prompts exceed --longest")
        os.replace(partial, out)
    finally:
        partial.unlink(missing_ok=True)
    return f"{written} rows in {out}" + (
        f"; {left_out} with too long prompts left out" if left_out else ""
    )


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m temper.data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("source", help="file, folder, or reasoning_gym:TASK")
    add("out", type=pathlib.Path, help="JSONL file to write")
    add("--split", default="train", help="split of a folder (default: train)")
    add("--prompt", help="column of the prompt; a.b for field b of column a")
    add("--answer", help="column of the answer (default with messages: the assistant's last one)")
    add("--after", metavar="MARK", help="the answer is what follows the last MARK, such as ####")
    add("--model", type=pathlib.Path, help="model folder: its tokenizer and chat template")
    add("--chat", action="store_true", help="convert text prompts to user messages")
    add("--system", help="text of a system message to add")
    add(
        "--template",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="variable of the chat template (repeatable)",
    )
    add(
        "--tokens",
        action="store_true",
        help="store prompt_token_ids, so that the run needs no tokenizer for prompts",
    )
    add("--longest", type=int, metavar="N", help="leave out prompts with more than N tokens")
    add("--limit", type=int, metavar="N", help="write at most N rows")
    add("--drop", action="append", default=[], metavar="COLUMN", help="leave out this column (repeatable)")
    add("--size", type=int, default=1000, help="reasoning_gym: number of problems (default: 1000)")
    add("--seed", type=int, default=0, help="reasoning_gym: seed (default: 0)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="reasoning_gym: setting of the task (repeatable)",
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    asked = _arguments().parse_args(arguments)
    try:
        if asked.source.startswith("reasoning_gym:"):
            _needed("reasoning_gym", "reasoning-gym")
            from . import reasoning_gym

            name = asked.source.partition(":")[2]
            source = reasoning_gym.rows(
                name, asked.size, asked.seed, dict(map(_setting, asked.set))
            )
        else:
            source = read(pathlib.Path(asked.source), asked.split)
        print(write(source, asked.out, Converter(asked).convert, asked.limit))
    except (RoleError, OSError) as error:
        print(f"temper.data: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
