"""The bytes of the protocol are those of the C++ side: tests/golden/protocol has one sample of every
message, whose fields follow from their numbers."""

from __future__ import annotations

import dataclasses
import enum
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import TREE

from temper import messages as m
from temper.wire import pack, unpack

SCHEMA = json.loads((TREE / "python/protocol.json").read_text())
GOLDEN = TREE / "tests/golden/protocol"


def sample(kind: str, seed: int) -> Any:
    """As tests/actors/protocol/sample_values.hpp makes them."""
    if kind in ("integer", "id", "tokens", "size", "flops", "bandwidth", "flop_rate"):
        return seed  # a whole number travels as an integer
    if kind == "number":
        return seed + 0.5
    if kind == "duration":
        return seed * 1_000_000
    if kind == "time":
        return seed * 1_000_000_000
    if kind == "boolean":
        return True
    if kind == "text":
        return f"text {seed}"
    if kind == "bytes":
        return bytes([seed, seed + 1])
    if kind.endswith("[]"):
        dtype = {"int32[]": "<i4", "float32[]": "<f4", "uint8[]": "u1"}[kind]
        return np.array([seed, seed + 1], dtype) + np.array(0.5 if "f" in dtype else 0, dtype)
    if kind.startswith("optional<"):
        return sample(kind[9:-1], seed)
    if kind.startswith("list<"):
        return [sample(kind[5:-1], seed), sample(kind[5:-1], seed + 1)]
    if kind.startswith("map<"):
        key, value = kind[4:-1].split(", ")
        return {sample(key, seed): sample(value, seed)}
    if kind in SCHEMA["enumerations"]:
        names = SCHEMA["enumerations"][kind]
        return getattr(m, kind.replace(".", ""))(seed % len(names))
    fields = SCHEMA["structs"][kind]["fields"]
    return getattr(m, kind.replace(".", ""))(*(sample(f["type"], f["id"]) for f in fields))


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text().replace("\n", " "))


TYPES = {message["name"]: message["type"] for message in SCHEMA["messages"]}
NAMES = sorted(cls.NAME for cls in m.MESSAGES)


@pytest.mark.parametrize("name", NAMES)
def test_a_message_has_the_golden_bytes(name: str) -> None:
    assert pack(sample(TYPES[name], 1).pack()).hex(" ") == golden(name).hex(" ")


@pytest.mark.parametrize("name", NAMES)
def test_golden_bytes_are_read_back_whole(name: str) -> None:
    cls = next(c for c in m.MESSAGES if c.NAME == name)
    read = m.UNPACK[cls.TAG](unpack(golden(name)))
    assert isinstance(read, cls)
    assert plain(read) == plain(sample(TYPES[name], 1))
    assert pack(read.pack()) == golden(name)


def plain(value: Any) -> Any:
    """Without arrays, which do not compare."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(x) for x in value]
    return int(value) if isinstance(value, enum.IntEnum) else value


def test_the_envelope_has_the_golden_bytes() -> None:
    assert pack(sample("Envelope", 1).pack()) == golden("envelope")


def test_unknown_fields_are_skipped_and_missing_ones_keep_their_default() -> None:
    hello = m.Hello.unpack({2: "rollout-0", 99: [1, {"new": 2}]})
    assert (hello.name, hello.protocol, hello.secret) == ("rollout-0", m.PROTOCOL, "")


def test_what_is_no_map_of_fields_is_refused() -> None:
    for body in (b"", b"\xc1", b"\x93\x01\x02\x03", golden("actor.hello")[:-1]):
        with pytest.raises(ValueError):
            unpack(body)


def test_the_module_is_made_from_the_declarations() -> None:
    made = subprocess.run(
        [sys.executable, TREE / "python/tools/generate_messages.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
