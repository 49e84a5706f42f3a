#!/usr/bin/env python3
"""Each fault of the review of 2026-11-25, tried on the program before and after.

    python3 docs/reports/faults-before-after.py --old OLD/build/release/bin/temper
        --new build/release/bin/temper [--page docs/reports/faults-before-after.md] [ENTRY ...]

OLD is a clone at commit 4db5874 with a release build of temper, temper-worker and temper-study. Each
program runs with the Python package of its own tree. The interpreter TEMPER_PYTHON needs numpy,
msgpack and pyzmq; strace and readelf must be there.

Prints a row per entry; --page replaces the table of a page. Exit code 1 if the new program has one of
the faults, if the old one has not, or if the tree has no test of a name that a row gives. Without
--old only the new program is tried.
"""
import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import faults_trials  # noqa: F401, registers trials
import faults_user_trials  # noqa: F401, registers trials
from faults_trial import TRIALS, UNITS, Trial

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEAD = "| entry | fault | before | after | tests |\n|---|---|---|---|---|\n"


def names_of_tests():
    """All tests of the tree: `Suite.Name`, `test_name`, and the titles of those of the page."""
    names = set()
    for path in sorted((ROOT / "tests").rglob("*.cpp")):
        names.update(".".join(found) for found in re.findall(
            r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.M))
    for path in [*(ROOT / "python/tests").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        names.update(re.findall(r"^\s*def (test_\w+)", path.read_text(), re.M))
    for path in (ROOT / "tests/web").glob("*.mjs"):
        names.update(re.findall(r'^test\("([^"]+)"', path.read_text(), re.M))
    return names


def try_entry(function, program, folder):
    """(whether the fault is there or None, what was seen)."""
    trial = Trial(program, folder)
    try:
        return function(trial)
    except Exception as error:  # A trial that cannot be made is a failure of its own.
        return None, f"not tried: {error}"
    finally:
        trial.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=pathlib.Path, help="program before")
    parser.add_argument("--new", type=pathlib.Path, required=True, help="program after")
    parser.add_argument("--page", type=pathlib.Path, help="page whose table is replaced")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the folders of the trials here")
    parser.add_argument("--jobs", type=int, default=1, help="entries tried at the same time")
    parser.add_argument("entries", nargs="*", metavar="ENTRY", help="only these, e.g. R4")
    options = parser.parse_args()
    unknown = set(options.entries) - set(TRIALS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected any of {', '.join(TRIALS)}")
    tests, wrong, rows = names_of_tests(), [], []
    print(HEAD, end="", flush=True)
    with tempfile.TemporaryDirectory(prefix="trials-") as temporary:
        folder = options.keep or pathlib.Path(temporary)

        def try_both(entry):
            """{age: result of try_entry()}"""
            programs = {"old": options.old, "new": options.new}
            return {age: try_entry(TRIALS[entry][2], program, folder / f"{entry.replace(' ', '')}-{age}")
                    for age, program in programs.items() if program}

        entries = [entry for entry in TRIALS if not options.entries or entry in options.entries]
        pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        for entry, results in zip(entries, pool.map(try_both, entries)):
            fault, held, _ = TRIALS[entry]
            wrong += [f"{entry}: no test {name}" for name in held if name not in tests]
            wrong += [f"{entry}: the {age} program: {seen}"
                      for age, (there, seen) in results.items() if there != (age == "old")]
            before, after = (results.get(age, (None, "not tried"))[1] for age in ("old", "new"))
            names = ", ".join(f"`{name}`" for name in held)
            rows.append(f"| {entry} | {fault} | {before} | {after} | {names} |\n")
            print(rows[-1], end="", flush=True)
    for entry, (fault, held) in UNITS.items():
        if not options.entries:
            wrong += [f"{entry}: no test {name}" for name in held if name not in tests]
            rows.append(f"| {entry} | {fault} | not tried | not tried | {', '.join(f'`{name}`' for name in held)} |\n")
            print(rows[-1], end="")
    if options.page:
        text = options.page.read_text()
        begin = text.index(HEAD) + len(HEAD)
        end = re.compile(r"^(?!\|)", re.M).search(text, begin).start()
        options.page.write_text(text[:begin] + "".join(rows) + text[end:])
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
