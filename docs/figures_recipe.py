"""What the functions of figures use: they run commands and write the lines of a block (docs/figures.py)."""
import csv
import json
import os
import pathlib
import re
import shlex
import tempfile
import textwrap
import time

from figures_program import ROOT, Data, Failure, family, machine, memory_of


def figures(kind, check):
    """Marks a function that makes a block: kind `exact` or `measured`, check `cheap`, `sampled` or `slow`."""
    if kind not in ("exact", "measured") or check not in ("cheap", "sampled", "slow"):
        raise ValueError(f"figures: no kind {kind}, {check}")

    def mark(function):
        function.kind, function.check = kind, check
        return function
    return mark


class Recipe:
    """Runs one function of figures and collects the lines of its block."""

    def __init__(self, program, quick):
        self.program = program
        self.quick = quick
        self.lines = []

    def run(self, words, driver="in-process"):
        """summary.json of `temper run CONFIG --set KEY=VALUE ...`, written "CONFIG KEY=VALUE ..."."""
        config, *sets = words.split()
        driver = f" --driver {driver}" if driver else ""
        line = f"temper run {config}{driver} --json --set run_dir={{out}}/run"
        return self.json(line + "".join(f" --set {shlex.quote(s)}" for s in sets))

    def json(self, line):
        """Of what a command line prints."""
        text = self.program.output(line)[0]
        begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=0)
        return json.JSONDecoder(object_hook=Data).raw_decode(text[begin:])[0]

    def text(self, line, may_fail=False):
        """What a command line prints."""
        return self.program.output(line, may_fail)[0]

    def watch(self, line, look):
        """Runs a command line and calls `look` with its processes, over and over; what it used, and its `{out}` folder."""
        out = tempfile.mkdtemp(dir=self.program.scratch)
        pid = os.posix_spawn("/bin/bash", ["bash", "-c", f'cd "$HERE" && exec {line.replace("{out}", out)}'],
                             dict(self.program.environment, HERE=str(self.program.scratch)),
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        while True:
            ended, status, used = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            look(family(pid))
            time.sleep(0.02)
        if status != 0:
            raise Failure(f"{line} failed")
        return used, pathlib.Path(out)

    def usage(self, line):
        """Wall, user and system seconds of a command line, most memory (MiB, shares of pages) and
        processes of it and its children at one time."""
        most = processes = 0

        def look(alive):
            nonlocal most, processes
            most, processes = max(most, memory_of(alive)), max(processes, len(alive))

        begin = time.monotonic()
        used, _ = self.watch(line, look)
        return Data(wall=time.monotonic() - begin, user=used.ru_utime, system=used.ru_stime,
                    mib=most / 1024, processes=processes)

    def file(self, line, name):
        """What a command line left in `{out}`."""
        return (self.program.output(line)[1] / name).read_text()

    def rows(self, line, name):
        """The same, of a CSV: its lines as objects, numbers as numbers."""
        def value(text):
            try:
                return float(text)
            except (TypeError, ValueError):
                return text
        return [Data({key: value(text) for key, text in line.items()})
                for line in csv.DictReader(self.file(line, name).splitlines())]

    def jsonl(self, line, name):
        """The same, of a file with an object on each line."""
        return [json.loads(text, object_hook=Data) for text in self.file(line, name).splitlines()]

    def path(self, line, name):
        """Where that is, for another command line."""
        return self.program.output(line)[1] / name

    def bench(self, name):
        """Real time in seconds, by name, of a Google Benchmark program."""
        report = self.json(f"{self.program.build}/bench/{name} --benchmark_format=json 2>/dev/null")
        unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
        return {b.name: Data(b, seconds=b.real_time * unit[b.time_unit]) for b in report.benchmarks}

    def plot(self, line, name, to):
        """Puts a plot that a command line left in `{out}` into docs/images, where figures are made."""
        self.picture(self.file(line, name), to)

    def picture(self, svg, to):
        """Puts a picture into docs/images, where figures are made."""
        if self.program.writing:
            (ROOT / "docs/images" / to).write_text(svg)

    def say(self, text=""):
        self.lines += text.split("\n")

    def prose(self, text):
        """Paragraphs and list items, wrapped at 100 columns."""
        if self.lines and self.lines[-1]:
            self.lines.append("")
        for paragraph in text.strip("\n").split("\n\n"):
            for item in re.split(r"\n(?=- )", paragraph):
                self.lines += textwrap.wrap(" ".join(item.split()), 100, break_long_words=False,
                                            break_on_hyphens=False,
                                            subsequent_indent="  " if item.startswith("- ") else "")
            self.lines.append("")
        self.lines.pop()

    def table(self, text):
        """The rows of the tables in a text."""
        self.lines += [line for line in text.splitlines() if line.startswith("|")]

    def head(self, *cells, align=""):
        """`align`: one letter per column, l or r; left where there is none."""
        if self.lines and self.lines[-1] and not self.lines[-1].startswith("|"):
            self.lines.append("")
        marks = ["---:" if a == "r" else "---" for a in align.ljust(len(cells), "l")]
        self.row(*cells)
        self.lines.append("|" + "|".join(marks) + "|")

    def row(self, *cells):
        self.lines.append(("| " + " | ".join(str(c) for c in cells) + " |").replace("|  |", "| |")
                          .replace("|  |", "| |"))

    @staticmethod
    def k(number, digits=1):
        """41528.5 -> "41.5k"."""
        return f"{number / 1e3:.{digits}f}k"

    @staticmethod
    def pct(share, digits=0):
        return f"{100 * share:.{digits}f} %"

    @staticmethod
    def gain(ratio, digits=1):
        """1.023 -> "+2.3 %"."""
        text = f"{100 * (ratio - 1):+.{digits}f}"
        return "0" if float(text) == 0 else text + " %"

    @staticmethod
    def holds(condition, sentence):
        if not condition:
            raise Failure(f"no longer true: {sentence}")

    def measured(self):
        self.say()
        self.say(machine())
