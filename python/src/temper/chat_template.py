"""Renders messages with the chat template of a model folder, as transformers does.

    python3 chat_template.py FOLDER LIMIT < messages.jsonl > texts.jsonl

Reads one list of messages per line. Writes `{"ready": true}`, then one line per list: `{"text": ...}`, or
`{"error": ...}` if the template does not accept it or its text exceeds LIMIT bytes. The first line is an error if
nothing can be rendered.

The `temper` program contains this file and runs it for `task.template: chat`. It therefore uses no other module of
this package, and jinja2 only.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any, ClassVar

Message = dict[str, Any]

_SPECIAL_TOKENS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
_DATE = (
    "the template asks for the current date (strftime_now), with which a resumed run would have other prompts; write "
    "the date into a copy of the template, or apply the template before the run with `python -m temper.data`"
)


class ChatTemplateError(Exception):
    """A template that cannot be used, or that does not accept the messages."""


def _read(file: pathlib.Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ChatTemplateError(f"{file}: {error}") from None


def _read_object(file: pathlib.Path) -> Message:
    if not file.is_file():
        return {}
    try:
        value = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise ChatTemplateError(f"{file}: {error}") from None
    if not isinstance(value, dict):
        raise ChatTemplateError(f"{file}: expected an object, found {type(value).__name__}")
    return value


def find_template(folder: pathlib.Path) -> tuple[str, str] | None:
    """The text of the folder's template and where it is. None if the folder has no template."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return _read(file), str(file)
    config = folder / "tokenizer_config.json"
    template = _read_object(config).get("chat_template")
    where = f"{config}: chat_template"
    if isinstance(template, list):  # several named templates
        try:
            named = {one["name"]: one["template"] for one in template}
        except (KeyError, TypeError):
            raise ChatTemplateError(
                f"{where}: expected a list of objects with name and template"
            ) from None
        if "default" not in named:
            raise ChatTemplateError(
                f"{where}: no template is named default; found {', '.join(map(str, named))}"
            )
        template = named["default"]
    if template is None:
        return None
    if not isinstance(template, str):
        raise ChatTemplateError(f"{where}: expected a text, found {type(template).__name__}")
    return template, where


def special_tokens(folder: pathlib.Path) -> dict[str, str]:
    """The texts of bos_token, eos_token and other special tokens that the folder names."""
    found: dict[str, str] = {}
    given = {
        **_read_object(folder / "special_tokens_map.json"),
        **_read_object(folder / "tokenizer_config.json"),
    }
    for name in _SPECIAL_TOKENS:
        token = given.get(name)
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            found[name] = token
    return found


def text_of_content(message: Message) -> str | None:
    """The text of a message, whose content may be a list of parts. None for a tool call."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None and message.get("tool_calls"):
        return None
    if not isinstance(content, list):
        raise ChatTemplateError(
            f"content of a message: found {type(content).__name__}, expected a text, or a list of "
            "parts such as {'type': 'text', 'text': ...}"
        )
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    for part, text in zip(content, texts):
        if not isinstance(text, str) or (isinstance(part, dict) and part.get("type") != "text"):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise ChatTemplateError(
                f"a message has a part of type {kind}: expected only parts of type text"
            )
    return "".join(texts)


def _environment(date: Callable[[str], str] | None) -> Any:
    from jinja2 import FunctionLoader, nodes, sandbox
    from jinja2.ext import Extension

    class Generation(Extension):
        """`{% generation %}` marks what an assistant wrote. It has no effect on the text."""

        tags: ClassVar[set[str]] = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def to_json(
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    def refuse(message: object) -> None:
        raise ChatTemplateError(f"the template raised: {message}")

    def no_such_template(name: str) -> None:
        raise ChatTemplateError(
            f"the template includes {name}, but a chat template is a single file"
        )

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, "jinja2.ext.loopcontrols"],
        loader=FunctionLoader(no_such_template),
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    if date is not None:
        environment.globals["strftime_now"] = date
    return environment


class ChatTemplate:
    """The chat template of a model folder."""

    def __init__(self, folder: pathlib.Path, date: Callable[[str], str] | None = None) -> None:
        """`date` formats the current date; without it, a template that needs the date is refused.

        Raises ChatTemplateError without a usable template, and ImportError without jinja2.
        """
        import jinja2

        found = find_template(folder)
        if found is None:
            raise ChatTemplateError(
                f"{folder} has no chat template: expected chat_template.jinja, or `chat_template` in "
                "tokenizer_config.json"
            )
        text, self._where = found
        self._special = special_tokens(folder)
        self._undefined = jinja2.UndefinedError
        try:
            self._template = _environment(date).from_string(text)
        except jinja2.TemplateSyntaxError as error:
            raise ChatTemplateError(
                f"{self._where}: line {error.lineno} of the template: {error.message}"
            ) from None
        except Exception as error:  # such as RecursionError
            raise ChatTemplateError(f"{self._where}: {type(error).__name__}: {error}") from None

    def render(self, messages: list[Message], variables: Message | None = None) -> str:
        """The text that the model continues. Raises ChatTemplateError."""
        given: Message = {"tools": None, "documents": None, **self._special, **(variables or {})}
        try:
            return str(
                self._template.render(messages=messages, **{"add_generation_prompt": True, **given})
            )
        except ChatTemplateError:
            raise
        except Exception as error:
            if isinstance(error, self._undefined) and "'strftime_now'" in str(error):
                raise ChatTemplateError(_DATE) from None
            raise ChatTemplateError(
                f"the template failed with {type(error).__name__}: {error}"
            ) from None


# --- The program


def _reply(**answer: object) -> None:
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
    sys.stdout.buffer.flush()


def _rendered(template: ChatTemplate, line: bytes, limit: int) -> str:
    messages = [
        {**message, "content": text_of_content(message)} for message in json.loads(line)
    ]
    text = template.render(messages)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ChatTemplateError("the template rendered a text that is not Unicode") from None
    if size > limit:
        raise ChatTemplateError(f"the template rendered {size} bytes, more than {limit}")
    return text


def _main() -> int:
    if sys.path and sys.path[0] == "":  # no modules of the working folder
        del sys.path[0]
    folder, limit = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    try:
        template = ChatTemplate(folder)
    except ImportError as error:
        _reply(
            error=f"{sys.executable} cannot import jinja2 ({error}), which renders chat templates; install "
            "python3-jinja2 (or `pip install jinja2` for that interpreter), or apply the template before the run with "
            "`python -m temper.data`"
        )
        return 1
    except ChatTemplateError as error:
        _reply(error=str(error))
        return 1
    _reply(ready=True)
    for line in sys.stdin.buffer:
        try:
            text = _rendered(template, line, limit)
        except ChatTemplateError as error:
            _reply(error=str(error)[:1000].encode(errors="replace").decode())
        except MemoryError:
            _reply(error="the template needs too much memory")
        else:
            _reply(text=text)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
