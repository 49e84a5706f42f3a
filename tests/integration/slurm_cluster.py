"""A Slurm of one's own on this machine: munge, a controller and several nodes, all as this user, gone with the object."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "squeue")

CONFIG = """ClusterName=temper
SlurmctldHost={host}
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=1,requeue_delay=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
MailProg=/bin/true
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8
PartitionName=main Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE
"""


def provide() -> str:
    """Why there is no Slurm here; empty: there is."""
    if all(shutil.which(p) for p in PROGRAMS):
        return ""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return "Slurm is not installed: apt-get install slurm-wlm munge"
    words = ["apt-get", "install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", "slurm-wlm", "munge"]
    done = subprocess.run(words, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode != 0:
        return f"apt-get cannot install slurm-wlm and munge: {done.stderr.strip().splitlines()[-1:]}"
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    return f"slurm-wlm has no {', '.join(missing)}" if missing else ""


def _free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    for first in range(17001, 30000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


class Cluster:
    def __init__(self, nodes: int = 4) -> None:
        self.nodes = nodes
        self.folder = Path(tempfile.mkdtemp(prefix="temper-slurm-"))
        self.folder.chmod(0o755)  # munged wants a path that all can walk
        self._children: list[subprocess.Popen[bytes]] = []
        self.slurmd: dict[str, subprocess.Popen[bytes]] = {}
        import pwd

        user = pwd.getpwuid(os.geteuid()).pw_name
        first = _free_ports(nodes + 1)
        self._config(host=socket.gethostname().split(".")[0], port=first + nodes, user=user, folder=self.folder, nodes=nodes,
                     first=first, last=first + nodes - 1)
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        for name in [n for n in self.environment if n.startswith(("SLURM_", "SBATCH_")) and n != "SLURM_CONF"]:
            del self.environment[name]

    def _config(self, **values: object) -> None:
        (self.folder / "slurm.conf").write_text(CONFIG.format(**values))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "daemons.log", "ab") as log:
            child = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log, start_new_session=True)
        self._children.append(child)
        return child

    def __enter__(self) -> Cluster:
        try:
            at = self.folder
            self._start("munged", "--foreground", "--force", f"--key-file={at}/munge.key", f"--socket={at}/munge.sock",
                        f"--pid-file={at}/munge.pid", f"--log-file={at}/munge.log", f"--seed-file={at}/munge.seed")
            self._until(lambda: (at / "munge.sock").exists(), "munged")
            self._start("slurmctld", "-D", "-c")
            for i in range(1, self.nodes + 1):
                self.start_node(f"n{i}")
            self._until(lambda: self.command("srun", f"-N{self.nodes}", "true", check=False) is not None, "srun")
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_node(self, name: str) -> None:
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        self.slurmd[name] = self._start("slurmd", "-D", "-N", name)

    def __exit__(self, *_: object) -> None:
        self.command("scancel", "--state=RUNNING", "--signal=KILL", "--full", f"--user={os.geteuid()}", check=False)
        for child in reversed(self._children):
            child.send_signal(signal.SIGTERM)
        for child in self._children:
            try:
                child.wait(timeout=15)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _until(self, done, what: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                logs = "".join(p.read_text()[-2000:] for p in self.folder.glob("*.log"))
                raise RuntimeError(f"{what} is not there after {seconds} s:\n{logs}")
            time.sleep(0.2)

    def command(self, *words: str, check: bool = True, cwd: Path | None = None) -> str | None:
        """What it prints; None where it fails and `check` is off."""
        done = subprocess.run(words, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            assert not check, f"{' '.join(words)}: {done.stdout}{done.stderr}"
            return None
        return done.stdout

    def state(self, job: str) -> str:
        return (self.command("scontrol", "-o", "show", "job", job, check=False) or "").partition("JobState=")[2].partition(" ")[0]
