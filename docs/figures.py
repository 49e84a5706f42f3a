#!/usr/bin/env python3
"""The figures of README.md and docs/*.md, made by the commands that they are about.

    ./x figures [PAGE ...]           make the blocks of these pages anew (all pages without a name)
    ./x figures --exact [PAGE ...]   only those that are the same on every machine
    ./x figures --check [PAGE ...]   change nothing; exit 1 where a page is not what the program gives
    ./x figures --commands [PAGE ..] run the commands that the pages print, one after the other
    (PAGE is `README`, `simulated`, ...; TEMPER=FILE chooses the program.)

A block of figures stands in its page behind its recipe, which Markdown does not show:

    <!-- figures: exact, cheap
    for bound in (0, 1, 2):
        r = run(f"configs/cm384_pangu.yaml staleness.bound={bound}")
        row(bound, k(r.tokens.trained_per_s))
    -->
    ... the block, made by the recipe ...
    <!-- end of figures -->

The recipe is Python over the functions under "what recipes may use", below. The word after `figures:`
says what its figures are, the next one what the check does with them:

    exact     simulated or computed: the same on every machine
    measured  seconds of the machine it ran on, or what a real policy learned; signed by its last line,
              "_Measured on ..._", with machine, commit and date
    cheap     made anew by the check, and equal to the page
    sampled   the check runs the recipe with `quick` true; each line of it must stand in the block
    slow      the check only holds the tables of the block to the heads that the recipe writes

What a sentence says of a table can be held to it: `holds(a < b, "sentence")` stops the recipe if not.

Commands that the pages print for the reader are run by `--commands`. A command is an
indented line that begins with `./x`, `temper`, `build/`, `TEMPER_..=`, `printf` or `for`; `\\` continues it. `--commands`
runs them page by page, each in a scratch copy of configs/ and docs/ of its own, so that one may use what an
earlier one of its page made. A comment `<!-- commands: slow, 12 min -->` above leaves the next ones out unless --slow is given.
`<!-- commands: first, COMMAND -->` is run at its place without being printed: what the next ones need.
Lines `$ temper ...` are followed by what they print, held to it (`...` stands for anything). A command that
is itself abbreviated by ` ... ` is not run.
"""
import argparse
import concurrent.futures
import csv
import difflib
import json
import os
import pathlib
import re
import shlex
import sys
import tempfile
import textwrap
import threading
import time

sys.dont_write_bytecode = True
from figures_commands import run_commands
from figures_program import ROOT, Data, Failure, Program, family, machine, memory_of
from terminal_svg import wrong_picture

BLOCK = re.compile(
    r"<!-- figures: (?P<kind>exact|measured), (?P<check>cheap|sampled|slow)\n(?P<recipe>.*?)^-->\n"
    r"(?P<body>.*?)^<!-- end of figures -->$",
    re.DOTALL | re.MULTILINE,
)
# Pages, and tables between `<!-- table -->` and `<!-- end of table -->`, that a command writes as a
# whole. Tests of their own hold them to it (test_sim_hw, test_cli).
WRITTEN = {"validation": "validate --no-rows --report {out}/page configs/validation/*.csv"}
TABLES = {"moe_mechanisms": "ablation --markdown"}


# ------------------------------------------------------------------------ what recipes may use
class Recipe:
    """Runs one recipe and collects the lines of its block."""

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

    def usage(self, line):
        """Wall, user and system seconds of a command line, most memory (MiB, shares of pages) and
        processes of it and its children at one time."""
        out = tempfile.mkdtemp(dir=self.program.scratch)
        begin = time.monotonic()
        pid = os.posix_spawn("/bin/bash", ["bash", "-c", f'cd "$HERE" && exec {line.replace("{out}", out)}'],
                             dict(self.program.environment, HERE=str(self.program.scratch)),
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        most = processes = 0
        while True:
            ended, status, used = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            sizes = [memory_of(p) for p in family(pid)]
            most, processes = max(most, sum(sizes)), max(processes, len(sizes))
            time.sleep(0.02)
        if status != 0:
            raise Failure(f"{line} failed")
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
        """Puts a plot that a command line left in `{out}` into docs/, where figures are made."""
        svg = self.file(line, name)
        if self.program.writing:
            (ROOT / "docs" / to).write_text(svg)

    def say(self, text=""):
        self.lines += text.split("\n")

    def table(self, text):
        """The rows of the tables in a text."""
        self.lines += [line for line in text.splitlines() if line.startswith("|")]

    def head(self, *cells, align=""):
        """`align`: one letter per column, l or r; left where there is none."""
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

    def names(self):
        mine = ("run json jsonl text file path rows plot bench usage say table head row k pct gain holds measured").split()
        return {**{name: getattr(self, name) for name in mine}, "quick": self.quick, "re": re}


def make(block, where, program, quick=False):
    """The body of a block, made by its recipe."""
    recipe = Recipe(program, quick)
    try:
        exec(compile(textwrap.dedent(block["recipe"]), where, "exec"), recipe.names())
    except Failure as failure:
        raise Failure(f"{where}: {failure}") from None
    except Exception as error:  # noqa: BLE001 - whatever a recipe does wrong is said with its place
        raise Failure(f"{where}: the recipe failed: {error!r}") from error
    if block["kind"] == "measured":
        recipe.measured()
    body = "\n".join(recipe.lines).strip("\n")
    return f"\n{body}\n\n"


# ---------------------------------------------------------------------------------- pages
def pages(names):
    known = {"README": ROOT / "README.md"}
    known.update({p.stem: p for p in sorted((ROOT / "docs").glob("*.md"))})
    for name in names:
        if name not in known:
            raise Failure(f"no page `{name}`; there are {', '.join(known)}")
    return {name: known[name] for name in (names or known)}


def blocks(path):
    """Of a page: (match, place for people). A recipe without an end is an error."""
    text = path.read_text()
    found = [(m, f"{path.relative_to(ROOT)}:{text[:m.start()].count(chr(10)) + 1}")
             for m in BLOCK.finditer(text)]
    if len(found) != text.count("<!-- figures: "):
        raise Failure(f"{path.relative_to(ROOT)}: a recipe without its end, or of an unknown kind")
    return found


def made_of(everything, program, quick=False, keep=lambda block, body: None):
    """{place: body or Failure}: exact ones beside each other, measured ones by themselves; each body
    is handed to `keep` when it is made."""
    done = {}

    def one(item):
        block, where = item
        begin = time.monotonic()
        try:
            done[where] = make(block, where, program, quick and block["check"] == "sampled")
            keep(block, done[where])
        except Failure as failure:
            done[where] = failure
        say(f"{where}: {time.monotonic() - begin:.1f} s")

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, [i for i in everything if i[0]["kind"] == "exact"]))
    for item in everything:
        if item[0]["kind"] == "measured":
            one(item)
    return done


def regenerate(chosen, program, only_exact):
    failures = []
    lock = threading.Lock()
    for name, path in chosen.items():
        def keep(block, body, path=path):
            with lock:  # The page as it is now: someone may have written in it meanwhile.
                text = path.read_text()
                for now in BLOCK.finditer(text):
                    if now["recipe"] == block["recipe"]:
                        path.write_text(text[:now.start("body")] + body + text[now.end("body"):])
                        break

        todo = [b for b in blocks(path) if b[0]["kind"] == "exact" or not only_exact]
        done = made_of(todo, program, keep=keep)
        failures += [str(f) for f in done.values() if isinstance(f, Failure)]
        if name in WRITTEN:
            path.write_text((program.output("temper " + WRITTEN[name])[1] / "page").read_text())
        if name in TABLES:
            table = program.output("temper " + TABLES[name])[0]
            path.write_text(re.sub(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", lambda _: table,
                                   path.read_text(), flags=re.DOTALL))
    return failures


def plain(line):
    """A line without the widths of its columns."""
    return " ".join(re.sub(r"-{3,}", "---", line).split())


def check_tables(block, where):
    """What can be said of a slow block without running it."""
    body = block["body"]
    bad = []
    columns = None
    for line in body.splitlines() + [""]:
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = line.count("|")
        elif line.count("|") != columns:
            bad.append(f"{where}: a row of {line.count('|') - 1} columns, not {columns - 1}: {line}")
    heads = re.findall(r"head\((.*?)\)$", block["recipe"], re.DOTALL | re.MULTILINE)
    for head in heads:
        cells = re.findall(r'"((?:[^"\\]|\\.)*)"', head.split("align=")[0])
        if "*" not in head and plain("| " + " | ".join(cells) + " |") not in plain(body):
            bad.append(f"{where}: no table with the head of the recipe: {cells}")
    if block["kind"] == "measured" and not re.search(r"^_Measured on .*_$", body, re.MULTILINE):
        bad.append(f"{where}: measured, but not signed by a line `_Measured on ..._`")
    return bad


def check(chosen, program):
    bad = wrong_picture(ROOT / "docs/run.svg", ROOT / "configs/quickstart.yaml")
    cheap = []
    for path in chosen.values():
        for block, where in blocks(path):
            compile(textwrap.dedent(block["recipe"]), where, "exec")
            bad += check_tables(block, where)
            if block["check"] != "slow":
                cheap.append((block, where))
    done = made_of(cheap, program, quick=True)
    for block, where in cheap:
        made = done[where]
        page = where.split(":")[0]
        if isinstance(made, Failure):
            bad.append(str(made))
        elif block["check"] == "cheap" and made != block["body"]:
            diff = difflib.unified_diff(block["body"].splitlines(), made.splitlines(), page, "now", "", n=0)
            bad.append(f"{where} is stale:\n" + "\n".join(diff))
        elif block["check"] == "sampled":
            there = {plain(line) for line in block["body"].splitlines()}
            missing = [line for line in made.splitlines() if plain(line) not in there]
            if missing:
                bad.append(f"{where} is stale; it does not have\n" + "\n".join(missing))
    if bad:
        bad.append("`./x figures PAGE` makes a page anew")
    return bad


def say(text):
    print(f"figures: {text}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./x figures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true")
    action.add_argument("--commands", action="store_true")
    action.add_argument("--exact", action="store_true")
    parser.add_argument("--slow", action="store_true", help="--commands: also those marked as slow")
    parser.add_argument("--limit", type=float, default=300, help="--commands: seconds for each")
    options = parser.parse_args()
    try:
        chosen = pages(options.pages)
        if options.commands:
            bad = run_commands(chosen, options.slow, options.limit)
        else:
            with tempfile.TemporaryDirectory(prefix="temper-figures-") as scratch:
                program = Program(scratch)
                program.writing = not options.check
                bad = check(chosen, program) if options.check else regenerate(chosen, program, options.exact)
    except Failure as failure:
        bad = [str(failure)]
    for text in bad:
        say(text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
