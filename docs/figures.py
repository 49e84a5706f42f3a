#!/usr/bin/env python3
"""The figures of README.md and docs/, made by the commands that they are about.

    ./x figures [PAGE ...]           rewrite the blocks of these pages (default: of all pages)
    ./x figures --exact [PAGE ...]   only those that are equal on every machine
    ./x figures --check [PAGE ...]   change nothing; exit 1 if a page differs from what the program prints
    ./x figures --commands [PAGE ..] run the commands that the pages print, in order
    (PAGE is `README`, `reports/staleness`, `deployments`, ...; TEMPER=FILE chooses the program.)

A page marks a block of figures by the name of the function that makes it:

    <!-- figures: bounds -->
    ... the block, made by the function `bounds` ...
    <!-- end of figures -->

The functions lie in a file beside the page, with the same name: docs/reports/staleness.py holds those of
docs/reports/staleness.md, and docs/readme.py those of README.md.

    @figures("exact", "cheap")
    def bounds(fig):
        for bound in (0, 1, 2):
            r = fig.run(f"configs/cm384_pangu.yaml staleness.bound={bound}")
            fig.row(bound, fig.k(r.tokens.trained_per_s))

`fig` is a Recipe (docs/figures_recipe.py). The first word says what the figures are, the second what
--check does:

    exact     simulated or computed: equal on every machine
    measured  times of one machine, or what a real policy learned; the last line of the block,
              "_Measured on ..._", names the machine, the commit and the date
    cheap     --check makes the block and compares it with the page
    sampled   --check runs the function with `fig.quick` true; the block must contain each of its lines
    slow      --check compares only the heads of the tables

A sentence about a table can be tied to it: `fig.holds(a < b, "sentence")` fails if the claim is false.

--commands runs the commands that pages print. A command is an indented line that begins with `./x`,
`temper`, `build/`, `TEMPER_..=`, `printf` or `for`; `\\` continues it. Each page runs in a scratch copy of
configs/ and docs/, so a command can use what an earlier one of its page made; docs/page_files.py makes what a
reader has before. `<!-- commands: slow, 12 min -->` leaves the next commands out unless --slow is given; a mark that ends
with "until Ctrl-C" sends that after some seconds; `<!-- commands: run by tests/... -->` names a test that runs them.
Lines `$ temper ...` are followed by what they print, which is compared (`...` stands for anything). A command abbreviated by ` ... ` is not run.
"""
import argparse
import concurrent.futures
import difflib
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from figures_commands import run_commands
from figures_program import ROOT, Failure, Program
from figures_recipe import Recipe
from terminal_svg import wrong_picture

BLOCK = re.compile(
    r"<!-- figures: (?P<name>[a-z_0-9]+) -->\n(?P<body>.*?)^<!-- end of figures -->$",
    re.DOTALL | re.MULTILINE,
)
# Pages, and tables between `<!-- table -->` and `<!-- end of table -->`, that one command writes.
# test_sim_hw and test_cli compare them.
WRITTEN = {"reports/validation": "validate --no-rows --report {out}/page configs/validation/*.csv"}
TABLES = {"reports/moe-mechanisms": "ablation --markdown"}


class Block:
    """A block of a page and the function that makes it."""

    def __init__(self, path, text, match, functions):
        self.where = f"{path.relative_to(ROOT)}:{text[:match.start()].count(chr(10)) + 1}"
        self.name, self.body = match["name"], match["body"]
        self.function = getattr(functions, self.name, None)
        if not hasattr(self.function, "kind"):
            raise Failure(f"{self.where}: {program_of(path).relative_to(ROOT)} has no function `{self.name}`")
        self.kind, self.check = self.function.kind, self.function.check

    def make(self, program, quick=False):
        """The body of the block, made by its function."""
        recipe = Recipe(program, quick)
        try:
            self.function(recipe)
        except Failure as failure:
            raise Failure(f"{self.where}: {failure}") from None
        except Exception as error:  # noqa: BLE001 - every error of a function is reported with its place
            raise Failure(f"{self.where}: `{self.name}` failed: {error!r}") from error
        if self.kind == "measured":
            recipe.measured()
        body = "\n".join(recipe.lines).strip("\n")
        return f"\n{body}\n\n"


# ---------------------------------------------------------------------------------- pages
def pages(names):
    """{name: path} of the named pages, or of all. A name is a path below docs/, or a file name alone."""
    docs = ROOT / "docs"
    known = {"README": ROOT / "README.md", "index": docs / "README.md"}
    for folder in ("tutorials", "how-to", "reference", "explanation", "reports"):
        known.update({f"{folder}/{p.stem}": p for p in sorted((docs / folder).glob("*.md"))})
    chosen = {}
    for name in names or known:
        found = [k for k in known if name in (k, k.rpartition("/")[2])]
        if len(found) != 1:
            raise Failure(f"{'no' if not found else 'more than one'} page `{name}`; there are {', '.join(found or known)}")
        chosen[found[0]] = known[found[0]]
    return chosen


def program_of(path):
    """The file with the functions of a page."""
    return ROOT / "docs/readme.py" if path == ROOT / "README.md" else path.with_suffix(".py")


def blocks(path):
    """The blocks of a page. A function without a block is an error, and the reverse."""
    text = path.read_text()
    found = list(BLOCK.finditer(text))
    if len(found) != text.count("<!-- figures: "):
        raise Failure(f"{path.relative_to(ROOT)}: a block without an end, or without a name")
    file = program_of(path)
    if not file.exists():
        if found:
            raise Failure(f"{path.relative_to(ROOT)}: {file.relative_to(ROOT)} does not exist")
        return []
    spec = importlib.util.spec_from_file_location("figures_of_" + re.sub(r"\W", "_", path.stem), file)
    functions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(functions)
    unused = {n for n, f in vars(functions).items() if hasattr(f, "kind")} - {m["name"] for m in found}
    if unused:
        raise Failure(f"{file.relative_to(ROOT)}: no block uses {', '.join(sorted(unused))}")
    return [Block(path, text, m, functions) for m in found]


def made_of(everything, program, quick=False, keep=lambda block, body: None):
    """{place: body or Failure}: exact blocks in parallel, measured ones alone; `keep` gets each body."""
    done = {}

    def one(block):
        begin = time.monotonic()
        try:
            done[block.where] = block.make(program, quick and block.check == "sampled")
            keep(block, done[block.where])
        except Failure as failure:
            done[block.where] = failure
        say(f"{block.where}: {time.monotonic() - begin:.1f} s")

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, [b for b in everything if b.kind == "exact"]))
    for block in everything:
        if block.kind == "measured":
            one(block)
    return done


def regenerate(chosen, program, only_exact):
    failures = []
    lock = threading.Lock()
    for name, path in chosen.items():
        def keep(block, body, path=path):
            with lock:  # Reads the page again: somebody may have edited it in the meantime.
                text = path.read_text()
                for now in BLOCK.finditer(text):
                    if now["name"] == block.name:
                        path.write_text(text[:now.start("body")] + body + text[now.end("body"):])
                        break

        todo = [b for b in blocks(path) if b.kind == "exact" or not only_exact]
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


def check_tables(block):
    """What can be checked of a slow block without running its function."""
    bad = []
    columns = None
    for line in block.body.splitlines() + [""]:
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = line.count("|")
        elif line.count("|") != columns:
            bad.append(f"{block.where}: a row of {line.count('|') - 1} columns, not {columns - 1}: {line}")
    heads = re.findall(r"head\((.*?)\)$", inspect.getsource(block.function), re.DOTALL | re.MULTILINE)
    for head in heads:
        cells = re.findall(r'"((?:[^"\\]|\\.)*)"', head.split("align=")[0])
        if "*" not in head and plain("| " + " | ".join(cells) + " |") not in plain(block.body):
            bad.append(f"{block.where}: no table has the head of `{block.name}`: {cells}")
    if block.kind == "measured" and not re.search(r"^_Measured on .*_$", block.body, re.MULTILINE):
        bad.append(f"{block.where}: measured, but without a line `_Measured on ..._`")
    return bad


def check(chosen, program):
    bad = wrong_picture(ROOT / "docs/images/run.svg", ROOT / "configs/quickstart.yaml")
    cheap = []
    for path in chosen.values():
        for block in blocks(path):
            bad += check_tables(block)
            if block.check != "slow":
                cheap.append(block)
    done = made_of(cheap, program, quick=True)
    for block in cheap:
        made = done[block.where]
        page = block.where.split(":")[0]
        if isinstance(made, Failure):
            bad.append(str(made))
        elif block.check == "cheap" and made != block.body:
            diff = difflib.unified_diff(block.body.splitlines(), made.splitlines(), page, "now", "", n=0)
            bad.append(f"{block.where} is stale:\n" + "\n".join(diff))
        elif block.check == "sampled":
            there = {plain(line) for line in block.body.splitlines()}
            missing = [line for line in made.splitlines() if plain(line) not in there]
            if missing:
                bad.append(f"{block.where} is stale; these lines are missing:\n" + "\n".join(missing))
    if bad:
        bad.append("`./x figures PAGE` rewrites a page")
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
