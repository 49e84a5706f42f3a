"""Runs the commands that README.md and docs/ print: `./x figures --commands` (docs/figures.py)."""
import re
import tempfile
import time

from figures_program import ROOT, Failure, Program
from page_files import BEFORE


class Command:
    """A command of a page. `mark` says why it is left out: slow, or where else it runs."""

    def __init__(self, line, where, mark, expected=None):
        self.line, self.where, self.mark, self.expected = line, where, mark, expected

    def runs(self, with_slow):
        return not self.mark or (with_slow and self.mark.startswith("slow, "))

    def endless(self):
        return self.mark is not None and self.mark.endswith("until Ctrl-C")


def commands(path):
    """The commands that a page prints, in order."""
    lines = path.read_text().splitlines()
    found = []
    mark = None
    at = 0
    while at < len(lines):
        line = lines[at]
        where = f"{path.relative_to(ROOT)}:{at + 1}"
        at += 1
        marked = re.fullmatch(r"<!-- commands: (slow, .*|run by (\S+)) -->", line)
        if marked:
            mark = marked[1]
            if marked[2] and not (ROOT / marked[2]).exists():
                raise Failure(f"{where}: no file {marked[2]}")
        elif line and not line.startswith("    ") and not line.startswith("<!--"):
            mark = None if found and found[-1].mark == mark else mark
        match = re.fullmatch(r" {4}(\$ )?((?:\./x|temper|for(?= \w+ in [^:]*;)|printf|build/\S+|TEMPER_\w+=\S+|[A-Z]=\S+) [^(].*)", line)
        if not match:
            continue
        command = match[2]
        while command.endswith("\\") and at < len(lines):
            command = command[:-1] + lines[at].strip()
            at += 1
        expected = None
        if match[1]:
            begin = at
            while at < len(lines) and lines[at].startswith("    ") and not lines[at].startswith("    $"):
                at += 1
            expected = "\n".join(lines[begin:at])
        if " ... " not in command:
            found.append(Command(command, where, mark, expected))
    return found


def run_commands(chosen, with_slow, limit):
    """Runs the commands of each page in its own scratch folder; returns the failures."""
    bad = []
    everything = [command for path in chosen.values() for command in commands(path)]
    skipped = sum(1 for command in everything if not command.runs(with_slow))
    for name, path in chosen.items():
        with tempfile.TemporaryDirectory(prefix="temper-figures-") as scratch:
            program = Program(scratch)
            try:
                bad += run_commands_of(path, program, list(BEFORE.get(name, ())), with_slow, limit)
            finally:
                program.end_background()
    print(f"{len(everything) - skipped - len(bad)} passed, {len(bad)} failed, {skipped} skipped")
    return bad


def run_commands_of(path, program, before, with_slow, limit):
    """Runs the commands of one page and prints a line for each. `X=..` lines set variables for later ones."""
    bad = []
    shell_words = ""
    for command in commands(path):
        if not command.runs(with_slow):
            print(f"{command.where}: not run ({command.mark}): {command.line}", flush=True)
            continue
        if re.match(r"[A-Z]=", command.line):  # a word that later lines use
            shell_words += command.line + "\n"
            continue
        for step in [step for step in before if command.line.startswith(step[0])]:
            before.remove(step)
            program.prepare(step[1])
        begin = time.monotonic()
        if command.endless():
            status, printed = program.until_interrupted(shell_words + command.line)
        else:
            status, printed = program.shell(shell_words + command.line, None if with_slow else limit)
        took = time.monotonic() - begin
        last = ([""] + [p for p in printed.splitlines() if p.strip()])[-1].strip()
        verdict = "ok" if status == 0 else f"over {limit} s" if status is None else f"exit {status}"
        if command.expected is not None:
            same = matches(command.expected, printed)
            verdict = "as printed" if same else "NOT as printed"
            status = 0 if same else 1
        print(f"{command.where}: {verdict}, {took:.1f} s: {command.line}\n    {last[:150]}", flush=True)
        if status != 0:
            bad.append(f"{command.where}: {verdict}: {command.line}\n{printed[-1500:]}")
    return bad


def matches(expected, printed):
    """Whether `printed` is `expected`, whatever the line breaks; `...` stands for anything."""
    parts = [" ".join(part.split()) for part in expected.split("...")]
    pattern = ".*".join(re.escape(part) for part in parts)
    return re.search(pattern, " ".join(printed.split())) is not None
