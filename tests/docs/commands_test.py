#!/usr/bin/env python3
"""Every `temper` or `./x` command that a page prints names a command and flags that docs/reference/cli.md has.

A command is a line of an indented or fenced block that begins with `temper`, `./x` or `$ temper`. `./x` also has
the commands that the script itself lists. What follows a pipe, `;`, `&` or a comment is left out.
"""
import pathlib
import re
import shlex
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"### temper ([^\n]+)\n\n```text\n(.*?)\n```", re.DOTALL)
ALIASES = {"estimate": "cost", "predict": "forecast"}


def flags_by_command():
    return {name: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))
            for name, text in BLOCK.findall((ROOT / "docs/reference/cli.md").read_text())}


def printed(page):
    """(line number, words) of the commands of a page."""
    lines = page.read_text().splitlines()
    fenced, at = False, 0
    while at < len(lines):
        first, line = at + 1, lines[at]
        at += 1
        if line.startswith("```"):
            fenced = not fenced
        match = re.fullmatch(r"( {4})?(?:\$ )?((?:temper|\./x) .*)", line)
        if not match or not (fenced or match[1]):
            continue
        command = match[2]
        while command.endswith("\\") and at < len(lines):
            command = command[:-1] + lines[at].strip()
            at += 1
        try:
            yield first, shlex.split(re.split(r";| [|&>]| 2>", command)[0], comments=True)
        except ValueError:  # an apostrophe of prose
            continue


class Commands(unittest.TestCase):
    def test_every_printed_command_and_flag_exists(self):
        known = flags_by_command()
        script = (ROOT / "x").read_text()
        unknown, count = [], 0
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            if page.name == "cli.md" or "decisions" in page.parts:
                continue
            for line, words in printed(page):
                where, name = f"{page.relative_to(ROOT)}:{line}", ALIASES.get(words[1], words[1])
                if words[0] == "./x" and name not in known and re.search(rf"(?m)^\s*(?:\S+\|)*{re.escape(name)}[|)]", script):
                    continue
                if not re.fullmatch(r"[a-z0-9-]+", name) or name.startswith("-"):  # a diagram, --help
                    continue
                count += 1
                if name not in known:
                    unknown.append(f"{where}: no command {name}")
                    continue
                for word in words[2:]:
                    flag = word.split("=")[0]
                    if re.fullmatch(r"--?[a-z][a-z-]*", flag) and flag not in known[name]:
                        unknown.append(f"{where}: temper {name} has no flag {flag}")
        self.assertEqual(unknown, [])
        self.assertGreater(count, 200)


if __name__ == "__main__":
    unittest.main()
