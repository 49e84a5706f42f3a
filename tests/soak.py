#!/usr/bin/env python3
"""Runs for HOURS that do not go well, one after the other: `./x soak HOURS [--seed N]`.

Each is a small run of `policy: synthetic` in a folder of its own, drawn from the seed: its placement,
its batch and its bound. While it goes on, workers and the head are killed, workers stand still, the
cores are given other work, and the disk is full for a while (a limit on the size of files). A head
that has ended is resumed, after a bit of its log was flipped or the end of the log was cut off now
and then: that must be noticed, and set right by `temper fsck --repair`. After two minutes a run is
left alone and must end; one whose first record was cut is begun anew. At its end `audit`, `replay`
and `fsck` must find nothing, every update must have been made, and no process may be left.

Prints a line for each run and at the end the counts as JSON; 1 if anything was found.
"""
import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TEMPER = os.environ["TEMPER"]
DISTURBED = 120  # seconds; a run that is killed at every turn need not come to an end
PATIENCE = DISTURBED + 300  # seconds for a run without an end
FILE_LIMIT = 200_000  # bytes: the log of a run reaches it


def call(*arguments):
    done = subprocess.run([TEMPER, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout + done.stderr


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def signal_one(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Soak:
    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self.folder = folder
        self.counts = dict.fromkeys(
            ["runs", "updates", "workers_killed", "heads_killed", "stops", "loads", "disks_full",
             "resumes", "begun_anew", "bits_flipped", "logs_cut", "found"], 0)
        self.hogs = []

    def settings(self):
        draw = self.random
        steps = draw.randrange(60, 240)
        sets = {
            "policy": "synthetic",
            "steps": steps,
            "algorithm.groups_per_update": draw.choice([2, 4, 8]),
            "algorithm.responses_per_group": draw.choice([2, 4]),
            "staleness.bound": draw.randrange(4),
            "placement.mode": draw.choice(["separate", "colocated", "fused", "hybrid"]),
            "synthetic.tokens": 32,
            "synthetic.step_time": f"{draw.randrange(5, 30)}ms",
            "checkpoint.every": draw.choice([3, 7, 20]),
            "checkpoint.keep": 3,
            "transport.heartbeat": "100ms",
            "transport.heartbeat_timeout": "2s",
            "transport.max_restarts": 1000,
        }
        return steps, [f"--set={key}={value}" for key, value in sets.items()]

    def start(self, words, full):
        limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))) \
            if full else None
        return subprocess.Popen([TEMPER, "run", "--plain", *words], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, preexec_fn=limit)

    def disturb(self, head):
        """One thing, to a run under way."""
        what = self.random.choice(["worker", "worker", "stop", "load", "head"])
        workers = children_of(head.pid)
        if what == "head":
            head.kill()
            self.counts["heads_killed"] += 1
        elif what == "load":
            self.hogs.append((time.monotonic() + 2, subprocess.Popen(["sh", "-c", "while :; do :; done"])))
            self.counts["loads"] += 1
        elif workers:
            one = self.random.choice(workers)
            if what == "worker":
                self.counts["workers_killed"] += signal_one(one, signal.SIGKILL)
            elif signal_one(one, signal.SIGSTOP):
                self.counts["stops"] += 1
                self.wait(head, self.random.choice([0.3, 1.0, 3.0]))
                signal_one(one, signal.SIGCONT)

    def wait(self, head, seconds):
        """False: it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and head.poll() is None:
            time.sleep(0.02)
        for until, hog in list(self.hogs):
            if time.monotonic() >= until:
                hog.kill()
                hog.wait()
                self.hogs.remove((until, hog))
        return head.poll() is None

    def damage(self, run):
        """Of the log of a run that has ended: noticed, and set right."""
        log = os.path.join(run, "events.log")
        size = os.path.getsize(log)
        what = self.random.random()
        if what < 0.25 and size > 1000:
            with open(log, "r+b") as file:
                file.seek(self.random.randrange(size // 2))
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ (1 << self.random.randrange(8))]))
            self.counts["bits_flipped"] += 1
            code, said = call("audit", run)
            if code == 0:
                return f"a flipped bit was not noticed: {said}"
            code, said = call("fsck", run, "--repair")
            if code != 0:
                return f"a flipped bit was not set right: {said}"
        elif what < 0.4:
            os.truncate(log, max(0, size - self.random.randrange(1, 40)))
            self.counts["logs_cut"] += 1
        return None

    def one(self, number):
        run = os.path.join(self.folder, f"run-{number}")
        steps, words = self.settings()
        anew = words = ["configs/quickstart.yaml", f"--set=run_dir={run}", *words]
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            full = time.monotonic() - began < DISTURBED and self.random.random() < 0.1
            self.counts["disks_full"] += full
            head = self.start(words, full)
            while self.wait(head, self.random.uniform(0.2, 2.0)):
                if time.monotonic() - began > PATIENCE:
                    head.kill()
                    return f"no end after {PATIENCE} s"
                if time.monotonic() - began < DISTURBED and self.random.random() < 0.7:
                    self.disturb(head)
            said = head.stderr.read()
            head.wait()
            if head.returncode == 0:
                break
            if head.returncode == 2 and "no record of a start" in said:
                shutil.rmtree(run)
                self.counts["begun_anew"] += 1
                words = anew
                continue
            if head.returncode not in (1, -signal.SIGKILL):
                return f"it ended with {head.returncode}: {said}"
            if head.returncode == 1 and not full:
                return f"it gave up: {said}"
            if not os.path.exists(os.path.join(run, "events.log")):
                shutil.rmtree(run, ignore_errors=True)
                words = anew
                continue
            if os.path.getsize(os.path.join(run, "events.log")):
                wrong = self.damage(run)
                if wrong:
                    return wrong
            self.counts["resumes"] += 1
            words = ["--resume", run]
        else:
            return f"no end after {PATIENCE} s"
        self.counts["updates"] += steps
        return self.check(run, steps)

    def check(self, run, steps):
        for command in ("audit", "replay", "fsck"):
            code, said = call(command, run)
            if code != 0:
                return f"{command}: {said}"
        made = json.loads(call("audit", run, "--json")[1])["steps"]
        if made != steps:
            return f"{made} of {steps} updates"
        left = subprocess.run(["pgrep", "-f", run], capture_output=True, text=True).stdout.split()
        return f"processes are left: {left}" if left else None

    def run(self, hours):
        end = time.monotonic() + 3600 * hours
        while time.monotonic() < end:
            wrong = self.one(self.counts["runs"])
            self.counts["runs"] += 1
            for _, hog in self.hogs:
                hog.kill()
                hog.wait()
            self.hogs = []
            run = os.path.join(self.folder, f"run-{self.counts['runs'] - 1}")
            if wrong:
                self.counts["found"] += 1
                print(f"FOUND in {run}: {wrong}", flush=True)
            else:
                shutil.rmtree(run, ignore_errors=True)
                print(f"run {self.counts['runs']}: whole", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hours", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = tempfile.mkdtemp(prefix="temper-soak-")
    soak = Soak(options.seed, folder)
    soak.run(options.hours)
    print(json.dumps({"seed": options.seed, "hours": options.hours, **soak.counts}))
    if not soak.counts["found"]:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if soak.counts["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
