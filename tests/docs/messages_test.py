#!/usr/bin/env python3
"""`.ci/text` finds each message of a source, prints it with its place, and rejects a phrase in it."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load():
    loader = importlib.machinery.SourceFileLoader("text_check", str(ROOT / ".ci/text"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("text_check", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


text = load()

CPP = [  # (source, its literals)
    ('fail("no such file");', [(1, "no such file")]),
    ('fail("one "\n     "two "  // why\n     "three");', [(1, "one two three")]),
    ('\n\nf("a b", "c d");\ng("e f");', [(3, "a b"), (3, "c d"), (4, "e f")]),
    (r'f("say \"no\"\n", "back\\slash");', [(1, 'say "no"\n'), (1, "back\\slash")]),
    ('// a "comment"\n/* "and\nanother" */ f("text");', [(3, "text")]),
    ("if (c == '\"') f(\"quote '\");", [(1, "quote '")]),
    ("f(1'000'000, \"a million\");", [(1, "a million")]),
    ('f(R"(raw "text"\non two lines)", R"x(a )" b)x");', [(1, 'raw "text"\non two lines'), (2, 'a )" b')]),
    ('f(u8"narrow " L"wide");', [(1, "narrow wide")]),
    ('#include "core/log.hpp"\nf("");', [(1, "core/log.hpp"), (2, "")]),
    ('f("at // the end");  // "no"', [(1, "at // the end")]),
    ("f('a', b);", []),
    ("", []),
]
PYTHON = [
    ('"""A docstring."""\nfail("no such file")', [(2, "no such file")]),
    ('fail("one " "two")', [(1, "one two")]),
    ('fail(f"step {n}: {x:.4g} is " f"{y}")', [(1, "step {}: {} is {}")]),
    ("x = 1\n", []),
]


class Messages(unittest.TestCase):
    def of(self, suffix, source):
        with tempfile.NamedTemporaryFile("w", suffix=suffix) as file:
            file.write(source)
            file.flush()
            return text.messages_of(pathlib.Path(file.name))

    def test_every_literal_of_a_cpp_source_is_found_with_its_first_line(self):
        for source, literals in CPP:
            self.assertEqual(list(text.cpp_literals(source)), literals, source)

    def test_every_literal_of_a_python_source_is_found_except_docstrings(self):
        for source, literals in PYTHON:
            found = [(line, words) for line, words in text.python_literals(source) if " " in words]
            self.assertEqual(found, literals, source)

    def test_a_message_has_two_words(self):
        source = 'f("name", "--flag", "{} {}", " ", "1 2", "no file", "{} GiB");'
        self.assertEqual([words for _, words in self.of(".cpp", source)], ["no file", "{} GiB"])
        self.assertEqual(self.of(".yaml", source), [])

    def test_a_phrase_is_rejected_wherever_the_literal_is_split(self):
        for source in ('f("the run goes on");', 'f("the run goes "\n  "on");', 'f(R"(the run\ngoes on)");'):
            found = [p for _, words in self.of(".cpp", source) for p in text.phrases_in(words, "here")]
            self.assertEqual(len(found), 1, source)

    def test_the_command_prints_place_and_text_of_each_message(self):
        file = ROOT / "orchestrator/run/scale_request.cpp"
        out = io.StringIO()
        with mock.patch.object(sys, "argv", [".ci/text", "--messages", str(file)]), contextlib.redirect_stdout(out):
            self.assertEqual(text.main(), 0)
        lines = out.getvalue().splitlines()
        source = file.read_text().splitlines()
        for line in lines:
            name, number, words = line.split(":", 2)
            self.assertEqual(name, "orchestrator/run/scale_request.cpp")
            self.assertIn(words[1:15], source[int(number) - 1])
        self.assertTrue(any(line.endswith("retry with `temper scale`") for line in lines), lines)

    def test_the_command_covers_every_module(self):
        out = io.StringIO()
        with mock.patch.object(sys, "argv", [".ci/text", "--messages"]), contextlib.redirect_stdout(out):
            text.main()
        folders = {line.split("/")[0] for line in out.getvalue().splitlines()}
        self.assertLessEqual({"actors", "cli", "core", "orchestrator", "python", "rollout", "sim_hw", "trainer"}, folders)
        self.assertFalse({"tests", "bench"} & folders)


if __name__ == "__main__":
    unittest.main()
