#!/usr/bin/env python3
"""Runs that do not go well, one after the other: `./x soak HOURS [--seed N]`, or `./x soak --minutes M`.

Each is a small run of `policy: synthetic` in a folder of its own, drawn from the seed: its placement,
its batch, its bound, and whether its best version is kept. While it goes on, workers and the head are
killed, workers stand still, the cores are given other work, the disk is full for a while (a limit on
the size of files), and `temper scale` asks for other numbers of engines and verifiers. A head that has
ended is resumed, half of the time with more steps, a larger bound or other numbers of engines.

In half of the runs, engine and trainer are in Python, and each response has tensors in shared memory or
in a Redis server. Tensors are removed, evicted and changed, and servers are killed and start again
without data. The trainer fails if a response comes without its own tensors.

After every end of a head, `audit`, `replay` and `fsck` must find nothing, as nothing is wrong. Now and
then a bit is flipped before the resume, in the log, the certificates, a checkpoint or best/, or the
end of the log is cut off: that must be found, and set right by `temper fsck --repair`. After two
minutes (of a short soak: a quarter of it) a run is left alone and must end; one whose first record
was cut is begun anew. At its end `audit`, `replay` and `fsck` must find nothing, every update must have
been made, and no process may be left.

Prints a line for each run and at the end the counts as JSON; 1 if anything was found.
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import soak_stores

TEMPER = os.environ["TEMPER"]
DISTURBED = 120  # seconds; a run that is killed at every turn need not come to an end
PATIENCE = 300  # seconds for a run without an end that is left alone
FILE_LIMIT = 200_000  # bytes: the log of a run reaches it


def call(*arguments):
    done = subprocess.run([TEMPER, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout + done.stderr


def workers_of(head):
    """Not a program that the head runs once, such as the one that checks imports."""
    return [child for child in children_of(head.pid) if b"worker" in command_of(child)]


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


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


def setting(run, key):
    """A number of the run's config.yaml; `steps`, or the bound."""
    pattern = r"^steps: (\d+)" if key == "steps" else r"^staleness:\n(?:  .*\n)*?  bound: (\d+)"
    with open(os.path.join(run, "config.yaml")) as file:
        return int(re.search(pattern, file.read(), re.MULTILINE)[1])


def flip(file, draw):
    """One bit in the first half, which is whole in every file that a process was writing."""
    with open(file, "r+b") as opened:
        opened.seek(draw.randrange(max(1, os.path.getsize(file) // 2)))
        byte = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte[0] ^ (1 << draw.randrange(8))]))


class Soak:
    def __init__(self, seed, folder, disturbed):
        self.random = random.Random(seed)
        self.folder = folder
        self.disturbed = disturbed
        self.counts = dict.fromkeys(
            ["runs", "updates", "workers_killed", "heads_killed", "stops", "loads", "disks_full",
             "scales", "resumes", "changed", "refused", "judged", "begun_anew", "bits_flipped",
             "logs_cut", "with_tensors", "servers_killed", "tensors_removed",
             "tensors_changed", "tensors_evicted", "responses_lost", "bytes_read", "bytes_read_twice",
             "found"], 0)
        self.hogs = []
        self.asking = []
        self.store = None  #: Of the run's tensors.

    def settings(self, run):
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
        if draw.random() < 0.6:
            sets["evaluation.every"] = draw.choice([5, 15])
            sets["evaluation.problems"] = 8
            sets["evaluation.keep_best"] = "true"
        if draw.random() < 0.5:
            self.counts["with_tensors"] += 1
            self.store = soak_stores.make_store(
                draw.choice(soak_stores.kinds()), pathlib.Path(f"{run}-store"), draw)
            sets.update(self.store.settings)
            sets.update(soak_stores.roles(f"{run}-reads"))
            # Roles in Python have no modes to share cards, and take no time for a step.
            sets.update({"placement.mode": "separate", "steps": 8 * steps})
        return [f"--set={key}={value}" for key, value in sets.items()]

    def changes(self, run):
        """Other settings for a resume, half of the time."""
        draw = self.random
        if draw.random() < 0.5:
            return []
        self.counts["changed"] += 1
        words = []
        if draw.random() < 0.5:
            words.append(f"--set=steps={setting(run, 'steps') + draw.randrange(10, 40)}")
        if draw.random() < 0.3:
            words.append(f"--set=staleness.bound={setting(run, 'bound') + 1}")
        if draw.random() < 0.5:
            words.append(f"--set=rollout.replicas={draw.randrange(1, 4)}")
        return words

    def start(self, words, full):
        limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))) \
            if full else None
        return subprocess.Popen([TEMPER, "run", "--plain", *words], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, preexec_fn=limit)

    def disturb(self, head, run):
        """One thing, to a run under way."""
        what = self.random.choice(["worker", "worker", "stop", "load", "head", "scale", "scale",
                                   *(["store", "store"] if self.store else [])])
        workers = workers_of(head)
        if what == "store":
            done = self.store.disturb(head, self.random)
            if done:
                self.counts[done] += 1
        elif what == "head":
            head.kill()
            self.counts["heads_killed"] += 1
        elif what == "scale":
            role, most = self.random.choice([("rollout", 3), ("reward", 2)])
            number = self.random.randrange(1, most + 1)
            self.asking.append(subprocess.Popen(
                ["timeout", "10", TEMPER, "scale", run, f"{role}={number}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.counts["scales"] += 1
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
        self.asking = [asker for asker in self.asking if asker.poll() is None]
        for until, hog in list(self.hogs):
            if time.monotonic() >= until:
                hog.kill()
                hog.wait()
                self.hogs.remove((until, hog))
        return head.poll() is None

    def damage(self, run):
        """Of a run that is not going on: noticed, and set right."""
        log = os.path.join(run, "events.log")
        size = os.path.getsize(log)
        what = self.random.random()
        if what < 0.35 and size > 1000:
            file = self.damageable(run)
            name = os.path.relpath(file, run)
            flip(file, self.random)
            self.counts["bits_flipped"] += 1
            commands = ["fsck"] if name.startswith("checkpoints") else ["fsck", "audit"]
            for command in commands:
                code, said = call(command, run)
                if code == 0:
                    return f"{command} did not notice a flipped bit of {name}: {said}"
            code, said = call("fsck", run, "--repair")
            if code != 0:
                return f"a flipped bit of {name} was not set right: {said}"
        elif what < 0.45:
            os.truncate(log, max(0, size - self.random.randrange(1, 40)))
            self.counts["logs_cut"] += 1
        return None

    def damageable(self, run):
        """A file of which no bit may flip unseen."""
        files = [os.path.join(run, "events.log")] * 3
        for name in ["best", *[f"checkpoints/{c}" for c in os.listdir(os.path.join(run, "checkpoints"))
                               if "." not in c]]:
            folder = os.path.join(run, name)
            if os.path.isdir(folder):
                files += [os.path.join(folder, file) for file in sorted(os.listdir(folder))]
        certificates = os.path.join(run, "certificates.jsonl")
        if os.path.exists(certificates) and open(certificates).read().count("\n") > 3:
            files.append(certificates)
        files = [file for file in files if os.path.getsize(file) > 1 and ".damaged" not in file]
        return self.random.choice(files)

    def judge(self, run, killed):
        """Of a run whose head has ended, in whatever way, and nothing else: nothing is wrong."""
        self.counts["judged"] += 1
        code, said = call("audit", run)
        if "holds no record" in said:
            return None
        if code != 0:
            return f"audit: {said}"
        code, said = call("replay", run)
        if code != 0:
            return f"replay: {said}"
        code, said = call("fsck", run, "--json")
        wrong = [f for f in json.loads(said)["files"]
                 if f["state"] not in ("whole", "aside", "unchecked", "torn")]
        if killed:  # while it was making its figures, perhaps
            wrong = [f for f in wrong if f["name"] != "outputs.manifest" or f["state"] != "missing"]
        return f"fsck: {wrong}" if wrong else None

    def one(self, number):
        run = os.path.join(self.folder, f"run-{number}")
        words = self.settings(run)
        anew = words = ["configs/quickstart.yaml", f"--set=run_dir={run}", *words]
        changed = False
        began = time.monotonic()
        patience = self.disturbed + PATIENCE
        while time.monotonic() - began < patience:
            full = time.monotonic() - began < self.disturbed and self.random.random() < 0.1
            self.counts["disks_full"] += full
            head = self.start(words, full)
            while self.wait(head, self.random.uniform(0.2, 2.0)):
                if time.monotonic() - began > patience:
                    head.kill()
                    return f"no end after {patience} s"
                if time.monotonic() - began < self.disturbed and self.random.random() < 0.7:
                    self.disturb(head, run)
            said = head.stderr.read()
            head.wait()
            if head.returncode == 0:
                break
            if changed and head.returncode == 2 and "no record of a start" not in said:
                self.counts["refused"] += 1
                changed, words = False, ["--resume", run]
                continue
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
                wrong = None if full else self.judge(run, head.returncode == -signal.SIGKILL)
                wrong = wrong or self.damage(run)
                if wrong:
                    return wrong
            self.counts["resumes"] += 1
            changes = self.changes(run) if time.monotonic() - began < self.disturbed else []
            changed, words = bool(changes), ["--resume", run, *changes]
        else:
            return f"no end after {patience} s"
        steps = setting(run, "steps")
        self.counts["updates"] += steps
        return self.check(run, steps)

    def end_store(self, run):
        """Counts what happened to the tensors of the run."""
        every, twice = soak_stores.read_twice(pathlib.Path(f"{run}-reads"))
        self.counts["bytes_read"] += every
        self.counts["bytes_read_twice"] += twice
        self.counts["tensors_evicted"] += self.store.evicted()
        summary = pathlib.Path(run, "summary.json")
        if summary.exists():
            self.counts["responses_lost"] += json.loads(summary.read_text())["groups"]["responses_lost"]
        self.store.end()
        self.store = None

    def check(self, run, steps):
        for command in ("audit", "replay", "fsck"):
            code, said = call(command, run)
            if code != 0:
                return f"{command}: {said}"
        for asker in self.asking:
            asker.wait()
        self.asking = []
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
            if self.store:
                self.end_store(run)
            if wrong:
                self.counts["found"] += 1
                print(f"FOUND in {run}: {wrong}", flush=True)
            else:
                shutil.rmtree(run, ignore_errors=True)
                print(f"run {self.counts['runs']}: whole", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("hours", type=float, nargs="?")
    length.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    soak_stores.provide_roles()
    folder = tempfile.mkdtemp(prefix="temper-soak-")
    hours = options.hours if options.minutes is None else options.minutes / 60
    soak = Soak(options.seed, folder, min(DISTURBED, 3600 * hours / 4))
    soak.run(hours)
    print(json.dumps({"seed": options.seed, "hours": hours, **soak.counts}))
    if not soak.counts["found"]:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if soak.counts["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
