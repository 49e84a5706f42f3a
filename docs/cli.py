#!/usr/bin/env python3
"""Writes docs/reference/cli.md: every command as `--help` prints it.

    docs/cli.py            write the page
    docs/cli.py --check    change nothing; exit 1 if the page differs from what the program prints

Every help text must fit 80 columns and show an example.

TEMPER=FILE chooses the program.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/cli.md"
HEAD = """# Command line

`docs/cli.py` writes this page from `temper COMMAND --help`; a test fails if it is stale. `temper man`
prints the same as a manual page, and `temper completion SHELL` completes commands and options.
[Exit codes](exit-codes.md) has its own page.

"""


def help_of(*words):
    program = os.environ.get("TEMPER", str(ROOT / "build/release/bin/temper"))
    environment = dict(os.environ, COLUMNS="80", NO_COLOR="1")
    result = subprocess.run([program, *words, "--help"], text=True, capture_output=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(f"cli.py: exit {result.returncode} of `temper {' '.join(words)} --help`\n{result.stderr}")
    return result.stdout.strip("\n")


def entries(text):
    """(section, name, description) of the entries of a help text: commands, options, exit codes."""
    section = name = ""
    found = []
    for line in text.splitlines():
        entry = re.match(r"  (\S.*?)(?:  +(\S.*)|$)", line)
        if re.match(r"\S.*:$", line):
            section = line[:-1]
        elif entry and not line.startswith("   "):
            found.append([section, entry[1], entry[2] or ""])
        elif line.startswith("      ") and found and line.strip():
            found[-1][2] += " " + line.strip()
    return found


def commands_of(text):
    """{group: [(name, description)]} of a help text that lists commands."""
    groups = {}
    for section, name, description in entries(text):
        word = name.split(",")[0].strip()
        if section not in ("Options", "Positionals", "Examples", "Exit codes", "Environment") and re.fullmatch(r"[a-z0-9-]+", word):
            groups.setdefault(section, []).append((word, description.strip()))
    return groups


def block(words):
    text = help_of(*words)
    out = f"### temper {' '.join(words)}\n\n```text\n{text}\n```\n\n"
    for names in commands_of(text).values():
        for name, _ in names:
            out += block((*words, name))
    return out


def page():
    overview = help_of()
    groups = commands_of(overview)
    names = [name for group in groups.values() for name, _ in group]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        blocks = dict(zip(names, pool.map(lambda name: block((name,)), names)))
    out = HEAD
    for group, members in groups.items():
        out += f"**{group}**\n\n| command | |\n|---|---|\n"
        out += "".join(f"| [`{name}`](#temper-{name}) | {text.replace('|', chr(92) + '|')} |\n" for name, text in members) + "\n"
    rest = [(s, n, t) for s, n, t in entries(overview) if s == "Environment"]
    if rest:
        out += "**Environment variables**\n\n| variable | |\n|---|---|\n" + "".join(f"| `{n}` | {t} |\n" for _, n, t in rest) + "\n"
    for group, members in groups.items():
        out += f"## {group}\n\n" + "".join(blocks[name] for name, _ in members)
    return out.rstrip("\n") + "\n"


def faults_of(made):
    """Help texts of the page that do not fit 80 columns or show no example."""
    found = []
    for name, text in [("", help_of()), *re.findall(r"### temper ([^\n]+)\n\n```text\n(.*?)\n```", made, re.DOTALL)]:
        found += [f"temper {name} --help: {len(line)} columns, at most 80: {line}" for line in text.splitlines() if len(line) > 80]
        if name and "\nExamples:\n" not in text:
            found.append(f"temper {name} --help: no example")
    return found


def main():
    made = page()
    if faults := faults_of(made):
        print("\n".join(faults))
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
        return 0
    there = PAGE.read_text() if PAGE.exists() else ""
    if made != there:
        print("".join(difflib.unified_diff(there.splitlines(True), made.splitlines(True), "docs/reference/cli.md", "now", n=1)))
        print("docs/reference/cli.md is stale: `docs/cli.py` rewrites it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
