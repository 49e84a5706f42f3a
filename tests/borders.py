#!/usr/bin/env python3
"""Tests of every border of a run at full size, with sanitizers: `./x borders [NAME...]`.

A border is where Temper reads data of other parties: replies of engines and servers, output of
verifiers, requests of agents, of the web page and of `temper scale`, messages, models, and the files
of a run folder. Each fuzz target (tests/fuzz/targets.hpp) gets a million inputs; best/ and
scale.request 10,000; special files and killed processes, with the real program, 200 each. The
ordinary tests run a sample of the same cases. TEMPER_TEST_SEED draws others.

Prints a line of a Markdown table for each border; 1 if any test failed.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

FUZZ = "Of/EveryTarget.ReturnsWhateverItIsGiven/"
# name: program, tests, variable with the number of cases, cases
OTHERS = {
    "best/": ("orchestrator/test_best", "BestFiles.*", "TEMPER_BEST_DAMAGES", 10_000),
    "scale.request": ("orchestrator/test_run", "*ScaleRequest*", "TEMPER_SCALE_REQUESTS", 10_000),
    "special files": ("cli/test_special_files", "*", "TEMPER_CASES", 200),
    "killed processes": ("system/test_kills", "*LosesAndRepeatsNothing*", "TEMPER_KILLS", 200),
}


def all_borders(tests):
    fuzz = os.path.join(tests, "fuzz/test_fuzz")
    listed = subprocess.run([fuzz, "--gtest_list_tests"], capture_output=True, text=True, check=True)
    targets = re.findall(r"^  ReturnsWhateverItIsGiven/(\w+)", listed.stdout, re.MULTILINE)
    borders = {name: ("fuzz/test_fuzz", FUZZ + name, "TEMPER_FUZZ_INPUTS", 1_000_000) for name in targets}
    return {**borders, **OTHERS}


def run(tests, logs, name, border, share):
    """Returns a row of the table and whether the tests passed."""
    program, which, variable, cases = border
    cases = max(1, round(cases * share))
    log = os.path.join(logs, re.sub(r"\W", "_", name) + ".log")
    environment = {**os.environ, variable: str(cases)}
    # Freed blocks are kept for a shorter time, and short stacks are recorded, for speed.
    environment.setdefault("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=4")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    if program.startswith("fuzz/") and os.access("/dev/shm", os.W_OK):
        environment["TMPDIR"] = "/dev/shm"  # some targets write a file for each input
    began = time.monotonic()
    with open(log, "w") as output:
        done = subprocess.run([os.path.join(tests, program), "--gtest_filter=" + which],
                              env=environment, stdout=output, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - began
    passed = done.returncode == 0
    found = "none" if passed else f"exit code {done.returncode}, see {log}"
    return f"| {name} | {cases:,} | {seconds:.0f} | {found} |", passed


def main():
    parser = argparse.ArgumentParser(prog="x borders", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these borders")
    parser.add_argument("--build", required=True, help="build folder, of a preset with sanitizers")
    parser.add_argument("--share", type=float, default=1, help="share of the full number of cases")
    parser.add_argument("--jobs", type=int, default=1, help="borders tested at the same time")
    options = parser.parse_args()
    tests = os.path.join(options.build, "tests")
    logs = os.path.join(options.build, "borders")
    os.makedirs(logs, exist_ok=True)
    borders = all_borders(tests)
    unknown = [name for name in options.names if name not in borders]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; expected any of {', '.join(borders)}")
    chosen = options.names or borders
    print("| border | cases | seconds | findings |\n|---|---:|---:|---|", flush=True)
    failed = False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, tests, logs, name, borders[name], options.share) for name in chosen]
        for done in concurrent.futures.as_completed(runs):
            row, passed = done.result()
            print(row, flush=True)
            failed = failed or not passed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
