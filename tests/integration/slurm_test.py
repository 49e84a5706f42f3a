"""Runs on a real Slurm cluster of four nodes on this machine, started by the script from `temper launch slurm`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from environment import ROOT
from slurm_cluster import Cluster, provide

PATIENCE = 300.0
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

#: The quickstart's task and model, with fewer digits: it has learned after a sixth of the updates.
LEARNS = (ROOT / "configs/quickstart.yaml").read_text().replace("digits: 3", "digits: 2").replace("steps: 900", "steps: 150")

#: Nothing but the orchestrator's work: what happens when something dies does not depend on what is learned.
QUICK = """name: job
policy: synthetic
steps: {steps}
algorithm: {{groups_per_update: 4, responses_per_group: 4}}
rollout: {{replicas: 3, concurrency: 8}}
synthetic: {{tokens: 16, step_time: 30ms}}
checkpoint: {{every: 5}}
transport: {{heartbeat: 100ms, heartbeat_timeout: 2s}}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if why := provide():
        pytest.skip(why)
    with Cluster(nodes=4) as cluster:
        yield cluster


class Job:
    """A configuration that `temper launch slurm` has made a script of, and that sbatch has taken."""

    def __init__(self, cluster: Cluster, temper: str, folder: Path, config: str, *more: str) -> None:
        self.cluster, self.temper, self.run_dir = cluster, temper, folder / "run"
        self.output = folder / "job.log"
        file = folder / "config.yaml"
        file.write_text(config)
        script = folder / "job.sbatch"
        subprocess.run([temper, "launch", "slurm", str(file), "--nodes", "4", "--run-dir", str(self.run_dir), "--program",
                        temper, "--out", str(script), *more], check=True, capture_output=True, timeout=60)
        # All four nodes are this machine, and share its cores.
        said = cluster.command("sbatch", "--oversubscribe", f"--output={self.output}", str(script), cwd=folder)
        assert said is not None
        self.id = said.split()[-1]

    def said(self) -> str:
        files = [self.output, *sorted((self.run_dir / "logs").glob("*.log"))]
        return "".join(f"\n-- {p.name}\n{p.read_text()[-2500:]}" for p in files if p.exists())

    def updates(self) -> int:
        file = self.run_dir / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        for line in reversed(lines):
            try:
                return int(json.loads(line)["step"])
            except ValueError:
                continue  # not yet whole
        return 0

    def until(self, done, what: str) -> float:
        """Seconds until it was so."""
        begin = time.monotonic()
        look = begin
        while not done():
            now = time.monotonic()
            if now >= look:
                state, look = self.state(), now + 2.0
                over = state in ENDED and not done()
                assert not over and now - begin < PATIENCE, f"{what} in vain; the job is {state}{self.said()}"
            time.sleep(0.1)
        return time.monotonic() - begin

    def state(self) -> str:
        return self.cluster.state(self.id)

    def after(self, updates: int) -> None:
        self.until(lambda: self.updates() >= updates, f"waited for update {updates}")

    def ends_well(self, state: str = "COMPLETED") -> None:
        self.until(lambda: self.state() in ENDED, "waited for the end")
        assert self.state() == state, self.said()

    def is_whole(self, steps: int) -> None:
        """Every update was made, no group was lost or trained twice, and the auditor agrees."""
        audit = subprocess.run([self.temper, "audit", str(self.run_dir)], capture_output=True, text=True, timeout=120, check=False)
        assert audit.returncode == 0, audit.stdout + audit.stderr
        assert self.updates() == steps, self.said()

    def processes(self, program: str, *words: str) -> list[int]:
        """Of this job's run: those of this program whose command line has all of these words."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if Path(line[0]).name == program and any(str(self.run_dir) in part for part in line) and all(word in line for word in words):
                found.append(int(entry.name))
        return found

    def count(self, what: str, pattern: str = "worker-*.log") -> int:
        return sum(p.read_text().count(what) for p in (self.run_dir / "logs").glob(pattern))


@pytest.fixture
def submit(cluster: Cluster, temper: str, tmp_path: Path):
    jobs: list[Job] = []

    def start(config: str, *more: str) -> Job:
        jobs.append(Job(cluster, temper, tmp_path, config, *more))
        return jobs[-1]

    yield start
    for job in jobs:
        cluster.command("scancel", "--signal=KILL", "--full", job.id, check=False)
        cluster.command("scancel", job.id, check=False)


def report(what: str, seconds: float) -> None:
    print(f"slurm: {what}: {seconds:.1f} s", flush=True)


def test_the_quickstart_learns_on_four_nodes(submit) -> None:
    job = submit(LEARNS)
    begin = time.monotonic()
    job.ends_well()
    report("the quickstart with two digits, 150 updates", time.monotonic() - begin)
    job.is_whole(150)
    rewards = [json.loads(line)["reward"] for line in (job.run_dir / "metrics.jsonl").read_text().splitlines()]
    first, last = sum(rewards[:10]) / 10, sum(rewards[-10:]) / 10
    assert last > first + 0.3, f"reward went from {first:.2f} to {last:.2f}"
    logs = {p.name for p in (job.run_dir / "logs").glob("worker-*.log")}
    assert len(logs) == 3, logs


def test_a_job_that_is_requeued_goes_on_where_it_was(submit, cluster: Cluster) -> None:
    job = submit(QUICK.format(steps=60))
    job.after(20)
    cluster.command("scontrol", "requeue", job.id)
    begin = time.monotonic()
    # Slurm puts a requeued job off for two minutes, as its nodes refuse it for as long as their clocks, in whole seconds,
    # are at the time of its first end ("Job credential revoked"). Here they have one clock.
    job.until(lambda: job.state() == "PENDING", "waited for the job to be queued")
    cluster.command("scontrol", "update", f"JobId={job.id}", "StartTime=now+3")
    job.until(lambda: "attempt 1" in job.output.read_text(), "waited for the second attempt")
    job.until(lambda: job.updates() > 20 and job.processes("temper-worker"), "waited for updates")
    report("scontrol requeue, until updates were made again", time.monotonic() - begin)
    job.ends_well()
    job.is_whole(60)


def test_before_its_time_is_up_it_saves_a_checkpoint_and_ends_with_0(submit, cluster: Cluster) -> None:
    job = submit(QUICK.format(steps=100_000), "--time", "2", "--warning", "60")
    job.after(3)
    begin = time.monotonic()
    cluster.command("scancel", "--batch", "--signal=USR1", job.id)  # what Slurm sends, sooner
    job.ends_well()
    report("USR1, until the job had ended", time.monotonic() - begin)
    last = job.updates()
    checkpoints = sorted(int(re.sub(r"\D", "", p.name) or -1) for p in (job.run_dir / "checkpoints").iterdir())
    assert checkpoints[-1] >= last > 0, f"checkpoints {checkpoints}, updates {last}"
    audit = subprocess.run([job.temper, "audit", str(job.run_dir)], capture_output=True, text=True, timeout=120, check=False)
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_a_worker_whose_node_is_killed_is_replaced(submit) -> None:
    job = submit(QUICK.format(steps=200))
    job.after(10)
    job.until(lambda: job.count("worker attached", "orchestrator.log") >= 3, "waited for three workers")
    [victim] = job.processes("temper-worker", "--rank", "1")
    os.kill(victim, signal.SIGKILL)
    took = job.until(lambda: job.count("worker attached", "orchestrator.log") >= 4, "waited for its successor")
    report("kill -9 of a node's task, until another had its place", took)
    job.ends_well()
    job.is_whole(200)


def test_an_orchestrator_that_is_killed_is_followed_by_another_and_workers_stay(submit) -> None:
    job = submit(QUICK.format(steps=200))
    job.after(20)
    job.until(lambda: job.count("worker attached", "orchestrator.log") >= 3, "waited for three workers")
    [head] = job.processes("temper", "run", "--continue")
    os.kill(head, signal.SIGKILL)
    took = job.until(lambda: job.count("resumed with the loaded state") >= 3, "waited for all workers")
    report("kill -9 of the orchestrator's task, until all workers were with the next", took)
    job.ends_well()
    job.is_whole(200)
    assert job.count("role built") == 3, job.said()


def test_a_slurmd_that_is_killed_takes_nothing_with_it(submit, cluster: Cluster) -> None:
    job = submit(QUICK.format(steps=200))
    job.after(10)
    os.kill(cluster.slurmd["n3"].pid, signal.SIGKILL)
    cluster.slurmd["n3"].wait()
    job.after(60)
    cluster.start_node("n3")
    job.ends_well()
    job.is_whole(200)
