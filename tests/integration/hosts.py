"""Hosts made of network namespaces, with addresses, rate-limited links and clocks of their own, and runs over them."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 300.0
RATE = "200mbit"
CLONE_NEWNET = 0x40000000  # of <sched.h>


def unable() -> str:
    """Why there can be no hosts here; empty: there can."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None:
        return "network namespaces need root, ip and tc"
    probe = "ip netns add temper-probe && ip netns del temper-probe && unshare --time --monotonic 1 --fork true"
    done = subprocess.run(["sh", "-c", probe], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode != 0 else ""


class Hosts:
    """Host 0 has 10.77.0.1, host 1 has 10.77.0.2, ...; each has one link of `rate`, to a switch. None: no limit."""

    def __init__(self, count: int = 4, rate: str | None = RATE) -> None:
        self.count, self.rate = count, rate
        self._prefix = f"temper-{os.getpid()}"
        self._switch = f"{self._prefix}-switch"
        self._children: list[subprocess.Popen[bytes]] = []

    def _host(self, number: int) -> str:
        return f"{self._prefix}-{number}"

    @staticmethod
    def _do(line: str) -> None:
        subprocess.run(line.split(), check=True, capture_output=True, timeout=30)

    def __enter__(self) -> Hosts:
        try:
            self._do(f"ip netns add {self._switch}")
            self._do(f"ip -n {self._switch} link add bridge type bridge")
            self._do(f"ip -n {self._switch} link set bridge up")
            for i in range(self.count):
                host = self._host(i)
                self._do(f"ip netns add {host}")
                self._do(f"ip link add eth0 netns {host} type veth peer name port{i} netns {self._switch}")
                self._do(f"ip -n {self._switch} link set port{i} master bridge up")
                self._do(f"ip -n {host} addr add 10.77.0.{i + 1}/24 dev eth0")
                self._do(f"ip -n {host} link set lo up")
                self._do(f"ip -n {host} link set eth0 up")
                # Debian's default, whatever this machine has: others leave a link idle now and then.
                self._do(f"ip -n {host} route change 10.77.0.0/24 dev eth0 src 10.77.0.{i + 1} congctl cubic")
                # A host's own card makes its senders wait; only a switch drops what its queue cannot hold.
                for netns, device, queue in () if self.rate is None else ((host, "eth0", "limit 4mb"), (self._switch, f"port{i}", "latency 50ms")):
                    self._do(f"tc -n {netns} qdisc add dev {device} root tbf rate {self.rate} burst 64kb {queue}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        for name in (self._switch, *map(self._host, range(self.count))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def start(self, number: int, words: list[str], log: Path, clock_ahead: int = 0) -> subprocess.Popen[bytes]:
        """On this host, whose clock is so many seconds ahead."""
        line = ["ip", "netns", "exec", self._host(number)]
        if clock_ahead:
            line += ["unshare", "--time", "--monotonic", str(clock_ahead), "--fork", "--kill-child"]
        with open(log, "ab") as out:
            child = subprocess.Popen([*line, *words], stdout=out, stderr=out, start_new_session=True)
        self._children.append(child)
        return child

    def enter(self, number: int) -> None:
        """Moves the calling thread to this host, and what it starts."""
        with open(f"/run/netns/{self._host(number)}") as netns:
            if ctypes.CDLL(None, use_errno=True).setns(netns.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns: {self._host(number)}")

    def traffic(self, number: int) -> tuple[int, int]:
        """Bytes that this host's link has carried to it and from it."""
        line = ["ip", "-n", self._host(number), "-s", "-j", "link", "show", "eth0"]
        stats = json.loads(subprocess.run(line, check=True, capture_output=True, text=True, timeout=30).stdout)[0]["stats64"]
        return stats["rx"]["bytes"], stats["tx"]["bytes"]

    def separate(self, number: int, other: int) -> None:
        """Nothing passes from the first to the second; both reach all others."""
        self._do(f"ip -n {self._host(number)} route add blackhole 10.77.0.{other + 1}")

    def cut(self, number: int) -> None:
        """Nothing passes its link any more; nobody is told."""
        self._do(f"ip -n {self._switch} link set port{number} down")

    def mend(self, number: int) -> None:
        self._do(f"ip -n {self._switch} link set port{number} up")


class Run:
    """A run whose orchestrator is on host 0."""

    def __init__(self, hosts: Hosts, temper: str, folder: Path, config: str) -> None:
        self.hosts, self.temper, self.folder, self.run_dir = hosts, temper, folder, folder / "run"
        folder.mkdir(parents=True, exist_ok=True)
        self._config = folder / "config.yaml"
        self._config.write_text(config)
        subprocess.run([temper, "keys", "make", str(self.run_dir), "worker"], check=True, capture_output=True, timeout=60)
        self.begin()

    def begin(self) -> None:
        """The orchestrator, on host 0: of a new run, or the next one of this."""
        self.head = self.hosts.start(0, [self.temper, "run", str(self._config), "--continue", "--plain", "--set",
                                         f"run_dir={self.run_dir}"], self.folder / "head.log")

    def worker(self, host: int, slot: int, clock_ahead: int = 0, key: Path | None = None) -> subprocess.Popen[bytes]:
        return self._worker(host, f"rollout-{slot}", self.folder / f"worker-{slot}.log", clock_ahead, key)

    def trainer(self, host: int) -> subprocess.Popen[bytes]:
        return self._worker(host, "trainer", self.folder / "trainer.log")

    def _worker(self, host: int, slot: str, log: Path, clock_ahead: int = 0, key: Path | None = None) -> subprocess.Popen[bytes]:
        return self.hosts.start(host, [self.temper, "worker", "--connect", str(self.run_dir / "endpoint"), "--key",
                                       str(key or self.run_dir / "keys/worker.key"), "--slot", slot], log, clock_ahead)

    def said(self) -> str:
        logs = [*sorted(self.folder.glob("*.log")), self.run_dir / "logs/orchestrator.log"]
        return "".join(f"\n-- {p.name}\n{p.read_text()[-2500:]}" for p in logs if p.exists())

    def until(self, done: Callable[[], object], what: str, patience: float = PATIENCE) -> float:
        """Seconds until it was so."""
        begin = time.monotonic()
        while not done():
            assert time.monotonic() - begin < patience, f"waited for {what} in vain{self.said()}"
            time.sleep(0.05)
        return time.monotonic() - begin

    def wait(self, seconds: float) -> None:
        """What is tried is that so much time goes by; the run goes on."""
        begin = time.monotonic()
        self.until(lambda: time.monotonic() - begin >= seconds, "time to go by")

    def stop(self) -> None:
        """As by Slurm before the time is up: it saves a checkpoint and ends with 0."""
        self.head.send_signal(signal.SIGUSR1)

    def updates(self) -> int:
        file = self.run_dir / "metrics.jsonl"
        whole = [line for line in (file.read_text() if file.exists() else "").splitlines(keepends=True) if line.endswith("\n")]
        return int(json.loads(whole[-1])["step"]) if whole else 0

    def after(self, updates: int) -> None:
        self.until(lambda: self.updates() >= updates, f"update {updates}")

    def log(self) -> str:
        file = self.run_dir / "logs/orchestrator.log"
        return file.read_text() if file.exists() else ""

    def attached(self, slot: int) -> int:
        """How often a worker has taken this place."""
        return len(re.findall(rf"worker attached.*actor=rollout-{slot}\b", self.log()))

    def worker_said(self, slot: int, what: str) -> int:
        return (self.folder / f"worker-{slot}.log").read_text().count(what)

    def records(self) -> list[dict[str, Any]]:
        text = subprocess.run([self.temper, "events", str(self.run_dir)], check=True, capture_output=True, text=True, timeout=120)
        return [json.loads(line) for line in text.stdout.splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The records' events of this kind."""
        return [record["event"][kind] for record in self.records() if kind in record["event"]]

    def is_whole(self, steps: int | None) -> str:
        """It ended well, every update was made (None: until it was stopped), and the auditor, whose words these are,
        agrees."""
        self.until(lambda: self.head.poll() is not None, "the end")
        assert self.head.returncode == 0, self.said()
        audit = subprocess.run([self.temper, "audit", str(self.run_dir)], capture_output=True, text=True, timeout=120, check=False)
        assert audit.returncode == 0, audit.stdout + audit.stderr
        assert steps is None or self.updates() == steps, self.said()
        return audit.stdout
