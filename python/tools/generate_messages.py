"""Generates src/temper/messages.py from the output of `temper protocol --json`.

temper protocol --json > python/protocol.json
python3 python/tools/generate_messages.py            # writes the module
python3 python/tools/generate_messages.py --check    # exit code 1 if it is stale
"""

from __future__ import annotations

import json
import keyword
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "protocol.json"
MODULE = ROOT / "src/temper/messages.py"

# Messages on simulated hardware, whose actors run inside the orchestrator.
SIMULATED = ("counted.", "time.")

INTEGERS = {"integer", "id", "tokens", "size", "duration", "time"}
FLOATS = {"number", "flops", "bandwidth", "flop_rate"}
ARRAYS = {"int32[]": "i4", "float32[]": "f4", "uint8[]": "u1"}

HEAD = '''"""Every message between a worker and the orchestrator, and what it is made of.

Made by python/tools/generate_messages.py from `temper protocol --json`: not to be edited. What each
means: docs/reference/protocol.md. `pack()` gives the msgpack map of a struct (field number to value), and
`unpack()` reads one: a missing field has its default, an unknown one is skipped.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Callable, ClassVar

from .wire import (
    Float32Array,
    Int32Array,
    Uint8Array,
    f4,
    i4,
    no_f4,
    no_i4,
    no_u1,
    of_f4,
    of_i4,
    of_u1,
    u1,
)

Fields = dict[int, Any]
'''


def python_name(name: str) -> str:
    return name.replace(".", "")


def attribute(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


class Generator:
    def __init__(self, schema: dict) -> None:
        self.schema = schema
        self.structs: dict[str, dict] = schema["structs"]
        self.enumerations: dict[str, list[str]] = schema["enumerations"]
        self.messages = [m for m in schema["messages"] if not m["name"].startswith(SIMULATED)]
        self.order: list[str] = []
        self.used_enumerations: list[str] = []
        for root in [schema["envelope"], *schema["settings"].values()]:
            self.visit(root)
        for message in self.messages:
            self.visit(message["type"])

    def visit(self, name: str) -> None:
        """Structs before those that hold them."""
        if name in self.enumerations:
            if name not in self.used_enumerations:
                self.used_enumerations.append(name)
        elif name in self.structs and name not in self.order:
            for field in self.structs[name]["fields"]:
                for part in re.findall(r"[A-Z][A-Za-z.]*", field["type"]):
                    self.visit(part)
            self.order.append(name)

    def inner(self, kind: str) -> str:
        return kind[kind.index("<") + 1 : -1]

    def annotation(self, kind: str) -> str:
        if kind in INTEGERS:
            return "int"
        if kind in FLOATS:
            return "float"
        if kind in ARRAYS:
            return {"i4": "Int32Array", "f4": "Float32Array", "u1": "Uint8Array"}[ARRAYS[kind]]
        if kind.startswith("list<"):
            return f"list[{self.annotation(self.inner(kind))}]"
        if kind.startswith("optional<"):
            return f"{self.annotation(self.inner(kind))} | None"
        if kind.startswith("map<"):
            key, value = self.inner(kind).split(", ")
            return f"dict[{self.annotation(key)}, {self.annotation(value)}]"
        return {"boolean": "bool", "text": "str", "bytes": "bytes"}.get(kind, python_name(kind))

    def default(self, kind: str, text: str) -> str:
        factory = "dataclasses.field(default_factory={})"
        if kind in ARRAYS:
            return factory.format("no_" + ARRAYS[kind])
        if kind.startswith("list<"):
            return factory.format("list")
        if kind.startswith("map<"):
            return factory.format("dict")
        if kind.startswith("optional<"):
            return self.default(self.inner(kind), text) if text else "None"
        if kind == "bytes":
            return 'b""'
        if kind in self.enumerations:
            return f"{python_name(kind)}.{json.loads(text).upper().replace('-', '_')}"
        if kind in self.structs:
            return factory.format(python_name(kind))
        value = json.loads(text)
        return repr(float(value)) if kind in FLOATS else repr(value)

    def packed(self, kind: str, value: str) -> str:
        if kind in ARRAYS:
            return f"of_{ARRAYS[kind]}({value})"
        if kind in self.enumerations:
            return f"int({value})"
        if kind in self.structs:
            return f"{value}.pack()"
        if kind.startswith("list<"):
            inner = self.packed(self.inner(kind), "x")
            return value if inner == "x" else f"[{inner} for x in {value}]"
        if kind.startswith("optional<"):
            inner = self.packed(self.inner(kind), value)
            return value if inner == value else f"None if {value} is None else {inner}"
        if kind.startswith("map<"):
            inner = self.packed(self.inner(kind).split(", ")[1], "x")
            return value if inner == "x" else f"{{k: {inner} for k, x in {value}.items()}}"
        return value

    def unpacked(self, kind: str, value: str) -> str:
        if kind in ARRAYS:
            return f"{ARRAYS[kind]}({value})"
        if kind in self.enumerations:
            return f"{python_name(kind)}({value})"
        if kind in self.structs:
            return f"{python_name(kind)}.unpack({value})"
        if kind.startswith("list<"):
            inner = self.unpacked(self.inner(kind), "x")
            return value if inner == "x" else f"[{inner} for x in {value}]"
        if kind.startswith("optional<"):
            inner = self.unpacked(self.inner(kind), "x")
            return value if inner == "x" else f"None if (x := {value}) is None else {inner}"
        if kind.startswith("map<"):
            inner = self.unpacked(self.inner(kind).split(", ")[1], "x")
            return value if inner == "x" else f"{{k: {inner} for k, x in {value}.items()}}"
        return value

    def absent(self, kind: str, text: str) -> str:
        """What stands for a missing field in its packed form."""
        if kind in ARRAYS or kind == "bytes":
            return 'b""'
        if kind.startswith("list<"):
            return "()" if self.unpacked(self.inner(kind), "x") != "x" else "[]"
        if kind.startswith("map<") or kind in self.structs:
            return "{}"
        if kind.startswith("optional<"):
            return self.absent(self.inner(kind), text) if text else "None"
        if kind in self.enumerations:
            return str(self.enumerations[kind].index(json.loads(text)))
        value = json.loads(text)
        return repr(float(value)) if kind in FLOATS else repr(value)

    def enumeration(self, name: str) -> str:
        lines = [f"class {python_name(name)}(enum.IntEnum):"]
        for number, text in enumerate(self.enumerations[name]):
            lines.append(f"    {text.upper().replace('-', '_')} = {number}")
        return "\n".join(lines)

    def struct(self, name: str) -> str:
        fields = self.structs[name]["fields"]
        cls = python_name(name)
        message = next((m for m in self.messages if m["type"] == name), None)
        lines = ["@dataclasses.dataclass(slots=True)", f"class {cls}:"]
        if message:
            lines.append(f'    """`{message["name"]}`, {message["direction"]}."""')
            lines.append("")
            lines.append(f"    NAME: ClassVar[str] = {message['name']!r}".replace("'", '"'))
            lines.append(f"    TAG: ClassVar[int] = {message['tag']}")
            lines.append(f"    VERSION: ClassVar[int] = {message['version']}")
            lines.append(f"    OLDEST: ClassVar[int] = {message['oldest']}")
            lines.append("")
        for f in fields:
            default = self.default(f["type"], f["default"])
            if f["doc"]:
                lines += textwrap.wrap(
                    f["doc"], 96, initial_indent="    #: ", subsequent_indent="    #: "
                )
            lines.append(
                f"    {attribute(f['name'])}: {self.annotation(f['type'])} = {default}".replace(
                    "'", '"'
                )
            )
        lines.append("")
        lines.append("    def pack(self) -> Fields:")
        if fields:
            lines.append("        return {")
            for f in fields:
                lines.append(
                    f"            {f['id']}: {self.packed(f['type'], 'self.' + attribute(f['name']))},"
                )
            lines.append("        }")
        else:
            lines.append("        return {}")
        lines.append("")
        lines.append("    @classmethod")
        lines.append(f"    def unpack(cls, fields: Fields) -> {cls}:")
        if fields:
            lines.append("        get = fields.get")
            lines.append("        return cls(")
            for f in fields:
                value = f"get({f['id']}, {self.absent(f['type'], f['default'])})".replace("'", '"')
                lines.append(f"            {self.unpacked(f['type'], value)},")
            lines.append("        )")
        else:
            lines.append("        return cls()")
        return "\n".join(lines)

    def module(self) -> str:
        parts = [HEAD.rstrip()]
        parts.append(
            "#: Version of the whole protocol; both sides have the same.\n"
            f"PROTOCOL = {self.schema['protocol']}"
        )
        parts.append(
            "#: Of trainer.json in a trainer's checkpoint.\n"
            f"CHECKPOINT_FORMAT = {self.schema['checkpoint_format']}"
        )
        parts += [self.enumeration(name) for name in self.used_enumerations]
        parts += [self.struct(name) for name in self.order]
        known = "\n".join(f"    {python_name(m['type'])}," for m in self.messages)
        parts.append(
            f"#: Every message of a worker on real hardware.\nMESSAGES: tuple[Any, ...] = (\n{known}\n)"
        )
        parts.append(
            "#: Reads the body of a message, by its tag.\n"
            "UNPACK: dict[int, Callable[[Fields], Any]] = {m.TAG: m.unpack for m in MESSAGES}"
        )
        settings = "\n".join(
            f'    "{role}": {python_name(name)}.unpack,'
            for role, name in sorted(self.schema["settings"].items())
        )
        parts.append(
            "#: Reads RoleConfig.settings, by role.\n"
            f"SETTINGS: dict[str, Callable[[Fields], Any]] = {{\n{settings}\n}}"
        )
        return "\n\n\n".join(parts) + "\n"


def main() -> int:
    text = Generator(json.loads(SCHEMA.read_text())).module()
    if "--check" in sys.argv[1:]:
        if MODULE.read_text() == text:
            return 0
        print(f"{MODULE} is stale: run python3 {pathlib.Path(__file__).name}", file=sys.stderr)
        return 1
    MODULE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
