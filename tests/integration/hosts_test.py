"""Runs over simulated hosts: network namespaces with addresses, rate-limited links, and optionally separate clocks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hosts import PATIENCE, Hosts, Run, unable

CONFIG = """name: hosts
policy: synthetic
steps: {steps}
algorithm: {{groups_per_update: 4, responses_per_group: 4}}
rollout: {{replicas: 3, concurrency: 8, launch: attach}}
synthetic: {{tokens: 16, step_time: 20ms}}
checkpoint: {{every: 5}}
transport: {{kind: tcp, bind: 0.0.0.0, advertise: 10.77.0.1, heartbeat: 100ms, heartbeat_timeout: {timeout}}}
"""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if why := unable():
        pytest.skip(why)
    with Hosts() as hosts:
        yield hosts


@pytest.fixture
def begin(hosts: Hosts, temper: str, tmp_path: Path) -> Callable[..., Run]:
    return lambda steps, timeout="1s": Run(hosts, temper, tmp_path, CONFIG.format(steps=steps, timeout=timeout))


def report(what: str, seconds: float) -> None:
    print(f"hosts: {what}: {seconds:.1f} s", flush=True)


def test_a_cut_that_is_shorter_than_the_timeout_costs_nobody_its_place(begin: Callable[..., Run]) -> None:
    run = begin(150, timeout="5s")
    for slot in range(3):
        run.worker(slot + 1, slot)
    run.after(10)
    run.hosts.cut(1)
    run.wait(2)
    run.hosts.mend(1)
    there = run.updates()
    report("a cut of 2 s, until the next ten updates", run.until(lambda: run.updates() >= there + 10, "updates"))
    run.is_whole(150)
    assert not run.events("actor_down"), run.said()
    assert [run.attached(slot) for slot in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("seconds", [2, 30])
def test_a_host_that_is_cut_off_is_replaced_until_it_is_back(begin: Callable[..., Run], seconds: int) -> None:
    run = begin(3000)
    for slot in range(3):
        run.worker(slot + 1, slot)
    run.after(10)
    # Cut for longer than the heartbeat's timeout: both ends have a connection of which the other knows nothing.
    run.hosts.cut(1)
    lost = run.until(lambda: "rollout-0" in "".join(re.findall("actor lost.*", run.log())), "the loss of rollout-0")
    report(f"a cut of {seconds} s, until its work was given to others", lost)
    run.hosts.cut(2)  # and this one for ever
    run.wait(seconds - lost)
    run.hosts.mend(1)
    report(f"a cut of {seconds} s mended, until its worker was back", run.until(lambda: run.attached(0) >= 2, "its return"))
    assert run.worker_said(0, "resumed with the loaded state") >= 1, run.said()
    run.after(run.updates() + 10)
    run.stop()
    run.is_whole(None)


def test_a_worker_that_died_behind_a_cut_is_succeeded_by_the_next_of_its_host(begin: Callable[..., Run]) -> None:
    """The orchestrator has a connection whose other end is gone, and is not told."""
    run = begin(150)
    dead = run.worker(1, 0)
    for slot in (1, 2):
        run.worker(slot + 1, slot)
    run.after(10)
    run.hosts.cut(1)
    os.killpg(dead.pid, signal.SIGKILL)
    dead.wait()
    run.hosts.mend(1)
    run.worker(1, 0)
    report("kill -9 of a worker behind a cut, until its successor had its place",
           run.until(lambda: run.attached(0) == 2, "its successor"))
    run.is_whole(150)


def test_workers_of_an_orchestrator_that_died_behind_a_cut_join_the_next(begin: Callable[..., Run]) -> None:
    """Workers have a connection whose other end is gone, and are not told."""
    run = begin(150)
    for slot in range(3):
        run.worker(slot + 1, slot)
    run.after(10)
    run.hosts.cut(0)
    os.killpg(run.head.pid, signal.SIGKILL)
    run.head.wait()
    run.begin()
    run.hosts.mend(0)
    joined = run.until(lambda: all(run.worker_said(s, "resumed with the loaded state") == 1 for s in range(3)), "the workers")
    report("kill -9 of the orchestrator behind a cut, until all workers were with the next", joined)
    run.is_whole(150)
    assert all(run.worker_said(slot, "role built") == 1 for slot in range(3)), run.said()


def test_a_worker_that_missed_a_succession_has_no_say_until_it_is_given_a_place(begin: Callable[..., Run]) -> None:
    run = begin(3000)
    for slot in range(3):
        run.worker(slot + 1, slot)
    run.after(10)
    run.hosts.cut(1)
    os.killpg(run.head.pid, signal.SIGKILL)
    run.head.wait()
    run.begin()
    run.worker(2, 0)  # in the place of the one that is cut off
    run.until(lambda: run.attached(0) >= 2, "another worker")
    run.hosts.mend(1)
    run.until(lambda: run.worker_said(0, "waiting for a place") >= 1, "the old one to be told that its place is taken")
    run.after(run.updates() + 10)
    run.stop()
    run.is_whole(None)
    assert run.attached(0) == 2, run.said()
    assert [e["actor"] for e in run.events("worker_attached")].count(0) == 2, "of neither orchestrator the old one's"


def ends_with(run: Run, worker: subprocess.Popen[bytes], code: int) -> None:
    run.until(lambda: worker.poll() is not None, "the end of a worker")
    assert worker.returncode == code, run.said()


def test_a_worker_whose_key_is_revoked_is_let_go_and_does_not_come_back(begin: Callable[..., Run], temper: str) -> None:
    run = begin(3000)
    subprocess.run([temper, "keys", "make", str(run.run_dir), "guest"], check=True, capture_output=True, timeout=60)
    key = run.folder / "guest.key"  # as it was carried to its host: that file stays
    shutil.copy2(run.run_dir / "keys/guest.key", key)
    guest = run.worker(3, 2, key=key)
    for slot in range(2):
        run.worker(slot + 1, slot)
    run.until(lambda: run.attached(2) == 1, "the guest")
    run.after(run.updates() + 5)
    subprocess.run([temper, "keys", "revoke", str(run.run_dir), "guest"], check=True, capture_output=True, timeout=60)
    report("a key revoked, until its worker was let go", run.until(lambda: "its key guest was revoked" in run.log(), "its loss"))
    ends_with(run, guest, 1)
    # Once more, from another host.
    again = run.worker(1, 2, key=key)
    ends_with(run, again, 1)
    assert run.worker_said(2, "refuses the key guest") == 2, run.said()
    run.after(run.updates() + 10)
    run.stop()
    run.is_whole(None)
    assert len(run.events("actor_down")) == 1, run.said()
    assert [e["actor"] for e in run.events("worker_attached")].count(2) == 1


def test_a_worker_with_a_key_of_another_run_has_no_effect(begin: Callable[..., Run], temper: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run([temper, "keys", "make", str(other), "foreign"], check=True, capture_output=True, timeout=60)
    key = other / "keys/foreign.key"
    run = begin(3000)
    for slot in range(2):
        run.worker(slot + 1, slot)
    run.after(5)
    # It says so itself where it can read the endpoint file; a file that says it is of this run is turned away.
    ends_with(run, run.worker(3, 2, key=key), 1)
    assert run.worker_said(2, "the key foreign belongs to run") == 1, run.said()
    good = (run.run_dir / "keys/worker.key").read_text()
    own = r"own:\n  .*\n  .*\n"
    forged = run.folder / "forged.key"
    forged.touch(mode=0o600)
    forged.write_text(good.replace(re.findall(own, good)[0], re.findall(own, key.read_text())[0]).replace("name: worker", "name: forged"))
    ends_with(run, run.worker(3, 2, key=forged), 1)
    assert run.worker_said(2, "refuses the key forged") == 1, run.said()
    run.after(run.updates() + 10)
    run.stop()
    run.is_whole(None)
    assert not run.events("actor_down"), run.said()
    assert {e["actor"] for e in run.events("worker_attached")} == {0, 1}


def test_a_host_whose_clock_is_an_hour_ahead_keeps_the_runs_time(begin: Callable[..., Run]) -> None:
    run = begin(40)
    for slot, ahead in enumerate((3600, 0, 86400)):
        run.worker(slot + 1, slot, clock_ahead=ahead)
    audit = run.is_whole(40)
    clocks = re.search(r"clocks +(\d) of attached workers, offset at most (\S+) ms", audit)
    assert clocks and clocks[1] == "3" and float(clocks[2]) < 1000, audit
    second = 1_000_000_000
    spans = [span for said in run.events("activity") for span in said["spans"]]
    assert spans and all(0 <= span["begin"] <= span["end"] <= PATIENCE * second for span in spans)
    reads = run.events("clock_read")
    assert {read["actor"] for read in reads} == {0, 1, 2}
    assert all(abs(read["ahead"]) < second and 0 < read["error"] < second for read in reads), reads


def test_an_orchestrator_that_is_killed_again_and_again_keeps_its_workers(begin: Callable[..., Run]) -> None:
    run = begin(200)
    heads = 20
    for slot in range(3):
        run.worker(slot + 1, slot)
    longest = 0.0
    for number in range(1, heads + 1):
        run.after(min(5 * number, 195))
        os.killpg(run.head.pid, signal.SIGKILL)
        run.head.wait()
        run.begin()
        took = run.until(lambda n=number: all(run.worker_said(s, "resumed with the loaded state") >= n for s in range(3)),
                         f"the workers to join orchestrator {number + 1}")
        longest = max(longest, took)
    report(f"kill -9 of the orchestrator, {heads} times, until all workers were with the next, at the longest", longest)
    run.is_whole(200)
    assert all(run.worker_said(slot, "role built") == 1 for slot in range(3)), run.said()
