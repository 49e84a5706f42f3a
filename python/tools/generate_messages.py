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
# Annotation, and what makes the default.
ARRAYS = {
    "int32[]": ("Int32Array", "no_i4"),
    "float32[]": ("Float32Array", "no_f4"),
    "uint8[]": ("Uint8Array", "no_u1"),
}

HEAD = '''"""Every message between a worker and the orchestrator, and what it is made of.

Made by python/tools/generate_messages.py from `temper protocol --json`: not to be edited. What each
means: docs/reference/protocol.md. wire.Struct packs and unpacks them by the annotations.
"""

import dataclasses
import enum
from typing import Annotated, Any, Callable, ClassVar

from .wire import (
    Fields,
    Float32Array,
    Int32Array,
    Struct,
    Uint8Array,
    no_f4,
    no_i4,
    no_u1,
)
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
            return ARRAYS[kind][0]
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
            return factory.format(ARRAYS[kind][1])
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

    def enumeration(self, name: str) -> str:
        lines = [f"class {python_name(name)}(enum.IntEnum):"]
        for number, text in enumerate(self.enumerations[name]):
            lines.append(f"    {text.upper().replace('-', '_')} = {number}")
        return "\n".join(lines)

    def struct(self, name: str) -> str:
        fields = self.structs[name]["fields"]
        cls = python_name(name)
        message = next((m for m in self.messages if m["type"] == name), None)
        lines = ["@dataclasses.dataclass(slots=True)", f"class {cls}(Struct):"]
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
            kind = f"Annotated[{self.annotation(f['type'])}, {f['id']}]"
            lines.append(f"    {attribute(f['name'])}: {kind} = {default}".replace("'", '"'))
        return "\n".join(lines).rstrip()

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
