"""A program in a folder, and what a trial of a fault does with it (faults-before-after.py)."""
import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from figures_program import family

TRIALS = {}  # entry: (what was wrong, names of tests, function)
UNITS = {}  # entries that cannot be tried from the outside of a program: (what was wrong, names of tests)


def trial(entry, fault, *tests):
    def keep(function):
        TRIALS[entry] = (fault, tests, function)
        return function
    return keep


@dataclasses.dataclass
class Ended:
    code: int | None  # None: still running at the limit; minus a signal
    text: str
    seconds: float

    @property
    def how(self):
        return "no end in %.0f s" % self.seconds if self.code is None else f"exit {self.code}"

    @property
    def outcome(self):
        """How it ended, and what it said last or how many responses it refused."""
        if self.code:
            return f"{self.how}: {self.line('^temper: ').removeprefix('temper: ')}"
        failed = re.search(r"responses failed (\d+)", self.text)
        return self.how + (f", {failed[1]} responses refused" if failed and failed[1] != "0" else "")

    def line(self, pattern, length=150):
        """The last line that matches, shortened for a table."""
        found = [line.strip() for line in self.text.splitlines() if re.search(pattern, line)]
        return shorten(found[-1], length) if found else ""


def shorten(text, length=150):
    """For a table: one line, no longer than this, without the folders of the trial and of the tree."""
    text = re.sub(r"/[^\s'\"]*/(trials-\w+/[^/\s]+|(trial|home)-\w*)/", "", " ".join(text.split()))
    text = re.sub(r"/[^\s'\"]*/(?=(python/src|configs)/)", "", text).replace("|", "\\|")
    return text if len(text) <= length else text[:length].rstrip() + " ..."


SMALL = """
name: small
steps: 4
task: {kind: addition, digits: 1}
model: {hidden: 32, layers: 1, heads: 2, kv_heads: 1, ffn: 64, context: 64}
pretrain: {max_steps: 0, batch: 8, check_problems: 8}
algorithm: {groups_per_update: 4, responses_per_group: 4, minibatches: 1}
sampling: {max_new_tokens: 4}
reference: {replicas: 0}
samples: {share: 1}
"""
# No policy is trained: a run takes a second or two.
SYNTHETIC = """
name: synthetic
policy: synthetic
steps: 20
task: {kind: addition, digits: 1}
algorithm: {groups_per_update: 8, responses_per_group: 4}
sampling: {max_new_tokens: 32}
synthetic: {tokens: 32, step_time: 2ms}
rollout: {concurrency: 64}
reference: {replicas: 0}
checkpoint: {every: 5}
"""


class Trial:
    """A program in a folder of its own."""

    def __init__(self, program, folder):
        self.program = pathlib.Path(program).resolve()
        self.root = self.program.parents[3]
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.home = self.folder / "home"
        self.home.mkdir()
        self.started = []
        self.environment = dict(
            os.environ, HOME=str(self.home), TEMPER_CACHE=str(self.folder / "cache"), NO_COLOR="1",
            PYTHONPATH=f"{self.root / 'python/src'}:{self.folder}")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def needs(self, program):
        if not (self.program.parent / program).exists():
            raise RuntimeError(f"{program} is not built")

    def start(self, *words, before=(), **environment):
        process = subprocess.Popen(
            [*before, self.program, *map(str, words)], cwd=self.folder, env=self.environment | environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True)
        self.started.append(process)
        return process

    def wait(self, process, limit):
        began = time.monotonic()
        try:
            text, _ = process.communicate(timeout=limit)
            return Ended(process.returncode, text, time.monotonic() - began)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Ended(None, process.communicate()[0], limit)

    def temper(self, *words, limit=60, **more):
        return self.wait(self.start(*words, **more), limit)

    def run(self, config, *sets, limit=60, to="run", **more):
        words = [word for one in (f"run_dir={to}", *sets) for word in ("--set", one)]
        return self.temper("run", self.write(f"{to}.yaml", config), "--plain", *words, limit=limit, **more)

    def serve(self, *words):
        """Starts the page; (process, port, token or "")."""
        process = self.start("serve", *words, "--address", "0")
        line = process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if not found:
            raise RuntimeError(f"no page: {line}")
        token = re.search(r"token=(\w+)", line)
        return process, int(found[1]), token[1] if token else ""

    def end(self):
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def get(port, path, token="", limit=10):
    """The status of a GET, and its body."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(
                urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers), timeout=limit) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return None, ""


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def descendants(pid):
    """Those of a process, without itself."""
    return family(pid)[1:]


def peak_mb(pids):
    """The largest resident set that any of them has had, in MB."""
    most = 0
    for pid in pids:
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        found = re.search(r"VmHWM:\s+(\d+)", status)
        most = max(most, int(found[1]) // 1000 if found else 0)
    return most


def wait_for(find, limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(0.1)
    raise RuntimeError("nothing came")


def listener_below(pid):
    """A TCP port on which a descendant listens."""
    ports = {}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A":
            ports[words[9]] = int(words[1].split(":")[1], 16)
    for child in descendants(pid):
        try:
            for link in pathlib.Path(f"/proc/{child}/fd").iterdir():
                found = re.match(r"socket:\[(\d+)\]", os.readlink(link))
                if found and found[1] in ports:
                    return ports[found[1]]
        except OSError:
            pass
    return None
