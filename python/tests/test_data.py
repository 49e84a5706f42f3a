"""`python -m temper.data` where it needs no other package; the rest is in tests/integration."""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import pytest

from temper import data
from temper.errors import RoleError


def convert(tmp_path: pathlib.Path, rows: list[dict], *words: str) -> list[dict]:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert data.main([str(source), str(out), *words]) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def refusal(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], rows: list[dict], *words: str
) -> str:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert data.main([str(source), str(out), *words]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"], "nothing half-made is left"
    return capsys.readouterr().err


def test_columns_are_found_and_others_are_kept(tmp_path: pathlib.Path) -> None:
    assert convert(tmp_path, [{"problem": "1+1", "solution": 2, "level": "easy"}]) == [
        {"prompt": "1+1", "answer": "2", "solution": 2, "level": "easy"}
    ]


def test_columns_can_be_named_with_fields_of_theirs(tmp_path: pathlib.Path) -> None:
    rows = [{"q": "1+1", "extra": {"right": ["2"]}, "image": "x"}]
    assert convert(
        tmp_path, rows, "--prompt", "q", "--answer", "extra.right", "--drop", "image"
    ) == [{"prompt": "1+1", "answer": "2", "extra": {"right": ["2"]}}]


def test_an_answer_can_be_what_follows_a_mark(tmp_path: pathlib.Path) -> None:
    rows = [{"question": "2+2", "answer": "two and two #### make\n#### 4 "}]
    assert convert(tmp_path, rows, "--after", "####")[0]["answer"] == "4"


def test_a_limit_stops_early_and_packed_files_are_read(tmp_path: pathlib.Path) -> None:
    source, out = tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl"
    with gzip.open(source, "wt") as file:
        file.write('{"prompt": "a", "answer": "b"}\nthis is not looked at')
    assert data.main([str(source), str(out), "--limit", "1"]) == 0
    assert json.loads(out.read_text()) == {"prompt": "a", "answer": "b"}


@pytest.mark.parametrize(
    ("row", "words", "why"),
    [
        (
            {"text": "x", "answer": "y"},
            (),
            "no known column for the prompt; choose one with --prompt: text",
        ),
        ({"prompt": "x"}, (), "no known column for the answer"),
        (
            {"prompt": "x", "answer": "y"},
            ("--answer", "z"),
            "no column z; found prompt, answer",
        ),
        ({"prompt": "x", "answer": {"a": 1}}, (), "answer: expected a text or a number, found dict"),
        ({"prompt": "x", "answer": "y"}, ("--after", "####"), "answer: expected the mark '####'"),
        (
            {"prompt": [{"role": "user", "content": "x"}], "answer": "y"},
            (),
            "name a model folder that has one with --model",
        ),
        ({"prompt": ["x"], "answer": "y"}, (), "a list of messages with role and content"),
        ({"prompt": "x", "answer": "y"}, ("--tokens",), "name a model folder with --model"),
        (
            {"prompt": "x", "answer": "y", "at": float("nan")},
            (),
            "leave the column out with --drop COLUMN",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused_by_row_and_reason(
    row: dict,
    words: tuple[str, ...],
    why: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fine = {"prompt": "p", "answer": "a"}
    rows = [fine, row] if not words and "text" not in row else [row]
    said = refusal(tmp_path, capsys, rows, *words)
    assert why in said and f"row {len(rows)}: " in said


def test_a_line_that_is_not_json_is_named(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "a", "answer": "b"}\n[1]\n')
    assert data.main([str(source), str(tmp_path / "out.jsonl")]) == 1
    assert f"{source}:2: expected an object, found list" in capsys.readouterr().err


def test_a_split_that_is_not_there_is_named_with_those_that_are(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/test-00000.jsonl").write_text('{"prompt": "a", "answer": "b"}\n')
    assert data.main([str(tmp_path), str(tmp_path / "out.jsonl")]) == 1
    assert "no files of split train; found test" in capsys.readouterr().err
    assert data.main([str(tmp_path), str(tmp_path / "out.jsonl"), "--split", "test"]) == 0


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        ("", ""),
        ([{"type": "text", "text": "hi"}], "hi"),
        ([{"type": "text", "text": "h"}, {"type": "text", "text": "i"}], "hi"),
        (["h", {"type": "text", "text": "i"}], "hi"),
        ([], ""),
        (None, RoleError),
        (7, RoleError),
        (0.5, RoleError),
        (True, RoleError),
        ({"text": "hi"}, RoleError),
        ([{"type": "image_url", "image_url": {"url": "x"}}], RoleError),
        ([{"type": "text"}], RoleError),
        ([{"type": "text", "text": None}], RoleError),
        ([{"text": "hi"}], RoleError),
        ([7], RoleError),
        ([None], RoleError),
    ],
)
def test_the_content_of_a_message_is_its_text(content: Any, text: Any) -> None:
    chat = [{"role": "user", "content": content}]
    if text is RoleError:
        with pytest.raises(RoleError):
            data.as_messages(chat, None)
    else:
        assert data.as_messages(chat, None) == [{"role": "user", "content": text}]


def test_a_call_of_tools_needs_no_content() -> None:
    chat = [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]
    assert data.as_messages(chat, None) == chat


@pytest.mark.parametrize(
    "prompt",
    [[], ["hi"], [None], [["user", "hi"]], [{"content": "hi"}], [{"role": 1, "content": "a"}],
     {"role": "user", "content": "hi"}, 7, True],
)  # fmt: skip
def test_a_row_whose_chat_is_none_is_named(
    prompt: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"prompt": "a", "answer": "b"}, {"prompt": prompt, "answer": "b"}]
    assert "row 2: a prompt is a text, or a list" in refusal(tmp_path, capsys, rows)
    assert "row 1: a prompt is a text, or a list" in refusal(
        tmp_path, capsys, rows[1:], "--system", "be brief"
    )


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet", "in.arrow", "in.json"])
def test_a_git_lfs_pointer_is_named(
    name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert data.main([str(tmp_path / name), str(tmp_path / "out.jsonl")]) == 1
    assert "git lfs pull" in capsys.readouterr().err
