"""The program under test in a scratch folder, and the memory and time of a command (docs/figures.py)."""
import concurrent.futures
import datetime
import itertools
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Failure(Exception):
    """A command, a function of figures or a claim failed."""


class Data(dict):
    """A JSON object with fields as attributes; `data["field"]` for names that are no identifiers."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no field `{name}`; there are {', '.join(self)}") from None


class Program:
    """The program under test, in a scratch folder with the configurations."""

    def __init__(self, scratch):
        self.path = pathlib.Path(os.environ.get("TEMPER", ROOT / "build/release/bin/temper")).resolve()
        if not self.path.exists():
            raise Failure(f"{self.path} does not exist: build it, or set TEMPER")
        self.build = self.path.parent.parent
        self.scratch = pathlib.Path(scratch)
        for folder in ("configs", "docs"):
            shutil.copytree(ROOT / folder, self.scratch / folder)
        (self.scratch / "bench").symlink_to(ROOT / "bench")
        bin_folder = self.scratch / "bin"
        bin_folder.mkdir()
        write_program(bin_folder / "temper", f'exec {shlex.quote(str(self.path))} "$@"\n')
        bench = shlex.quote(str(self.build / "bench"))
        write_program(
            self.scratch / "x",
            'case "$1" in\n'
            '  bench) case "$2" in sdk | tensors | trl | generation | relay | large_page) echo "x bench $2: not run from here"; exit ;; esac\n'
            f'         for b in {bench}/*"$2"*; do [ -x "$b" ] && "$b"; done ;;\n'
            '  test | build | wheel | lint | fmt | figures | fuzz | borders | soak) echo "x $1: not run from here" ;;\n'
            '  *) exec temper "$@" ;;\nesac\n',
        )
        (self.scratch / "build").mkdir()
        (self.scratch / "build/release").symlink_to(self.build)
        self.environment = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}")
        self.writing = False
        self.counter = itertools.count(1)
        self.kept = {}
        self.lock = threading.Lock()
        self.background = []

    def shell(self, line, limit=None):
        """(exit status or None if it ran past `limit` seconds, what it printed)."""
        process = subprocess.Popen(
            ["bash", "-c", line], cwd=self.scratch, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            printed, _ = process.communicate(timeout=limit)
            return process.returncode, printed
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:  # A run that is told to stop saves first.
                return None, process.communicate(timeout=30)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None, process.communicate()[0]

    def prepare(self, script):
        """Runs the lines that a command needs before it (docs/page_files.py)."""
        with (self.scratch / "prepare.log").open("w+") as log:
            process = subprocess.Popen(["bash", "-ec", script], cwd=self.scratch, env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            self.background.append(process.pid)
            try:
                status = process.wait(timeout=900)
            except subprocess.TimeoutExpired:
                status = "none within 900 s"
            if status != 0:
                log.seek(0)
                raise Failure(f"exit {status} of: {script}\n{log.read()[-2000:]}")

    def end_background(self):
        """Ends what prepare() started in the background."""
        for group in self.background:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def until_interrupted(self, line, seconds=20):
        """shell() of a command that runs until Ctrl-C, which it gets after some seconds."""
        process = subprocess.Popen(["bash", "-c", "exec " + line], cwd=self.scratch, env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=60)
            return 0 if process.returncode in (0, 130) else process.returncode, printed
        return process.returncode or 1, printed + f"\nended within {seconds} s"

    def output(self, line, may_fail=False):
        """What a command line prints, and its `{out}` folder; each line runs once."""
        with self.lock:
            future = self.kept.get(line)
            mine = future is None
            if mine:
                future = self.kept[line] = concurrent.futures.Future()
        if mine:
            out = self.scratch / "out" / str(next(self.counter))
            out.mkdir(parents=True)
            status, printed = self.shell(line.replace("{out}", str(out)))
            future.set_result((status, printed, out))
        status, printed, out = future.result()
        if status != 0 and not may_fail:
            raise Failure(f"exit {status} of: {line}\n{printed[-2000:]}")
        return printed, out


def write_program(path, text):
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)


def family(pid):
    """A process and its descendants."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def memory_of(pids):
    """Memory of processes in KiB: a page that several map counts once, and so does an image in shared
    memory (a memfd) that one of them holds open and none maps."""
    mapped, images, sum_of_pages = set(), {}, 0
    for pid in pids:
        try:
            folder = pathlib.Path(f"/proc/{pid}")
            rollup = (folder / "smaps_rollup").read_text()
            sum_of_pages += int(re.search(r"^Pss: +([0-9]+)", rollup, re.MULTILINE)[1])
            mapped.update(line.split()[4] for line in (folder / "maps").read_text().splitlines() if "/memfd:" in line)
            for fd in (folder / "fd").iterdir():
                if os.readlink(fd).startswith("/memfd:"):
                    image = os.stat(fd)
                    images[str(image.st_ino)] = image.st_blocks // 2
        except (OSError, TypeError):
            continue  # it has ended
    return sum_of_pages + sum(kib for inode, kib in images.items() if inode not in mapped)


def machine():
    """The line that names machine, commit and date of a measurement."""
    model = "an unknown CPU"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = " ".join(line.partition(":")[2].split())
            break
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], text=True,
                            capture_output=True, check=False).stdout.strip() or "unknown"
    cores = len(os.sched_getaffinity(0))
    return f"_Measured on {cores} cores of {model}, commit {commit}, {datetime.date.today()}._"
