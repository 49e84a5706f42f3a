#!/usr/bin/env python3
"""Completes a page of docs/ in an empty folder: runs its commands top to bottom and compares their output.

    tests/docs/pages.py PAGE [--timeout SECONDS] [--keep FOLDER] [--venv FOLDER]

What it runs, in the order of the page, all in one folder and one shell environment:

  - blocks ```sh, each as one bash script;
  - lines `$ COMMAND` of ```console blocks and of indented blocks. The lines below a command are what it
    prints, whatever the line breaks; `...` stands for anything.

Comments choose what cannot run everywhere:

    <!-- test: needs python -->     needs a Python with the package `temper`: TEMPER_PYTHON, python3, or the virtual
                                    environment of --venv, which is made where it is not there
    <!-- test: instead of the next block, ... -->   run tests/docs/NAME.sh for it, NAME as the page

Exit code 77: a block was skipped, and all others passed. TEMPER=FILE chooses the program.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Step:
    def __init__(self, line, script, expected=None, note=""):
        self.line, self.script, self.expected, self.note = line, script, expected, note


def steps_of(text):
    """The steps of a page, in order."""
    lines = text.splitlines()
    steps, note, at = [], "", 0
    while at < len(lines):
        line = lines[at]
        test = re.fullmatch(r"<!-- test: (.*) -->", line)
        fence = re.fullmatch(r"```(sh|console|\w*)", line)
        if test:
            note = test[1]
        elif fence:
            end = lines.index("```", at + 1)
            if fence[1] == "sh":
                steps.append(Step(at + 2, "\n".join(lines[at + 1:end]), None, note))
            elif fence[1] == "console":
                steps += commands_of(lines[at + 1:end], at + 2, note)
            note = "" if fence[1] in ("sh", "console") else note
            at = end
        elif line.startswith("    $ "):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or (not lines[end].strip() and lines[end + 1:end + 2]
                                                                        and lines[end + 1].startswith("    "))):
                end += 1
            steps += commands_of([x[4:] for x in lines[at:end]], at + 1, note)
            note, at = "", end - 1
        at += 1
    return steps


def commands_of(lines, first, note):
    steps, at = [], 0
    while at < len(lines):
        begin, command = at, lines[at][2:]
        while command.endswith("\\") and at + 1 < len(lines):
            at += 1
            command = command[:-1] + lines[at].strip()
        at += 1
        expected = []
        while at < len(lines) and not lines[at].startswith("$ "):
            expected.append(lines[at])
            at += 1
        steps.append(Step(first + begin, command, "\n".join(expected), note))
    return steps


def matches(expected, printed):
    parts = [" ".join(part.split()) for part in expected.split("...")]
    pattern = ".*".join(re.escape(part) for part in parts)
    return re.search(pattern, " ".join(printed.split())) is not None


class Session:
    """One folder and one shell: background processes of a block live until the page ends."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.shell = subprocess.Popen(["bash"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        os.set_blocking(self.shell.stdout.fileno(), False)
        self.count = 0

    def run(self, script, limit):
        self.count += 1
        end = f"@@ end of step {self.count}: "
        self.shell.stdin.write(script + f"\nprintf '\\n{end}%s\\n' $?\n")
        self.shell.stdin.flush()
        printed, until = "", time.monotonic() + limit
        while end not in printed or not printed.endswith("\n"):
            if time.monotonic() > until or self.shell.poll() is not None:
                return None, printed
            try:
                printed += os.read(self.shell.stdout.fileno(), 1 << 16).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
        before, _, after = printed.rpartition(end)
        return int(after.strip()), before

    def close(self):
        try:
            os.killpg(self.shell.pid, signal.SIGTERM)
            self.shell.wait(timeout=10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(self.shell.pid, signal.SIGKILL)


def has_python(environment, venv):
    """Whether there is a Python with the package; TEMPER_PYTHON then names that of `venv` if no other has it."""
    def has_package():
        interpreter = environment.get("TEMPER_PYTHON", "python3")
        return subprocess.run([interpreter, "-c", "import temper, msgpack, zmq, numpy"], env=environment,
                              capture_output=True, check=False).returncode == 0

    if venv and not has_package():
        made = subprocess.run([ROOT / "python/venv", venv.resolve()], stdout=subprocess.PIPE, text=True, check=False)
        if made.returncode == 0:
            environment["TEMPER_PYTHON"] = made.stdout.strip()
    return has_package()


def complete(page, folder, limit, venv):
    """(failures, skipped) of a page."""
    program = pathlib.Path(os.environ.get("TEMPER", ROOT / "build/release/bin/temper")).resolve()
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}", NO_COLOR="1", COLUMNS="120")
    failures, skipped = [], []
    steps = steps_of(page.read_text())
    python = any(step.note == "needs python" for step in steps) and has_python(environment, venv)
    session = Session(folder, environment)
    for step in steps:
        where = f"{page.relative_to(ROOT)}:{step.line}"
        if step.note == "needs python" and not python:
            skipped.append(f"{where}: skipped: no Python with the package `temper` (TEMPER_PYTHON, python/venv)")
            print(skipped[-1], flush=True)
            continue
        if step.note.startswith("instead"):
            step.script, step.expected = f". {ROOT}/tests/docs/{page.stem}.sh", None
        begin = time.monotonic()
        status, printed = session.run(step.script, limit)
        took = time.monotonic() - begin
        if status is None:
            verdict = f"no end within {limit:g} s"
        elif step.expected is not None and not matches(step.expected, printed):
            verdict = f"exit {status}, other output than printed"
        elif status != 0 and (step.expected is None or not step.expected.strip(". \n")):
            verdict = f"exit {status}"
        else:
            verdict = "ok"
        print(f"{where}: {verdict}, {took:.1f} s: {step.script.splitlines()[0][:100]}", flush=True)
        if verdict != "ok":
            failures.append(f"{where}: {verdict}\n{printed[-3000:]}")
            break
    session.close()
    return failures, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each command")
    parser.add_argument("--keep", type=pathlib.Path, help="work in this folder and keep it")
    parser.add_argument("--venv", type=pathlib.Path, help="virtual environment for blocks that need the package")
    options = parser.parse_args()
    page = options.page.resolve()
    with tempfile.TemporaryDirectory(prefix="temper-page-") as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        failures, skipped = complete(page, folder, options.timeout, options.venv)
    print("\n".join(failures))
    return 1 if failures else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
