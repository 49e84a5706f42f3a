"""Weights over hosts of their own, on slow links: relay against broadcast beside their prediction, a relay that is
lost, and the folder."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hosts import Hosts, Run, unable

IMAGE = 16 << 20
RATE = 40_000_000  # bits per second
LINK = RATE / 8
NEAR = 0.10
RELAY_TIMEOUT = 3.0
STEPS = 3

CONFIG = f"""name: relay
policy: synthetic
steps: {{steps}}
algorithm: {{{{groups_per_update: 8, responses_per_group: 2, kl: 0}}}}
staleness: {{{{bound: 0}}}}
rollout: {{{{replicas: {{replicas}}, concurrency: 8, launch: attach}}}}
sampling: {{{{max_new_tokens: 16}}}}
synthetic: {{{{tokens: 16, weights: {IMAGE}B}}}}
checkpoint: {{{{every: 0}}}}
deadlines: {{{{weights: 300s}}}}
transport:
  {{{{kind: tcp, bind: 0.0.0.0, advertise: 10.77.0.1, heartbeat: 500ms, heartbeat_timeout: 30s, weights: {{weights}},
    relay_timeout: {RELAY_TIMEOUT}s}}}}
"""


@contextmanager
def run_of(temper: str, folder: Path, replicas: int, weights: str, steps: int = STEPS) -> Iterator[tuple[Run, list[Any]]]:
    """A run with an engine on each of so many hosts."""
    if why := unable():
        pytest.skip(why)
    with Hosts(replicas + 1, f"{RATE}bit") as hosts:
        run = Run(hosts, temper, folder, CONFIG.format(replicas=replicas, weights=weights, steps=steps))
        yield run, [run.worker(slot + 1, slot) for slot in range(replicas)]


def predicted(temper: str, hosts: int, replicas: str) -> float:
    line = [temper, "cost", "host_publication", f"bytes={IMAGE}", f"hosts={hosts}", f"bandwidth={LINK}",
            f"replicas={replicas}", "--json"]
    done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=60)
    return float(next(m["value"] for m in json.loads(done.stdout)["metrics"] if m["name"] == "time"))


class Publications:
    """Of each version: when its engines were asked to stage it, and when each had."""

    def __init__(self, run: Run) -> None:
        self.asked: dict[int, dict[int, float]] = {}
        self.staged: dict[int, dict[int, float]] = {}
        for record in run.records():
            at = record["time"] / 1e9
            for command in record["commands"]:
                if said := command.get("stage_weights"):
                    self.asked.setdefault(said["version"], {}).setdefault(said["actor"], at)
            if said := record["event"].get("weights_staged"):
                assert not said["error"], said
                self.staged.setdefault(said["version"], {})[said["actor"]] = at

    def seconds(self, version: int) -> float:
        return max(self.staged[version].values()) - min(self.asked[version].values())


@pytest.mark.parametrize("receivers", [2, 4, 8])
def test_weights_take_as_long_as_predicted_by_relay_and_by_broadcast(temper: str, tmp_path: Path, receivers: int) -> None:
    measured = {}
    for weights, replicas in (("relay", "tree"), ("broadcast", "direct")):
        with run_of(temper, tmp_path / weights, receivers, weights) as (run, _):
            run.is_whole(STEPS)
            published = Publications(run)
        # Version 0 goes to engines as they come.
        whole = [v for v in range(1, STEPS + 1) if len(published.staged.get(v, {})) == receivers]
        assert len(whole) >= STEPS - 1, published.staged
        seconds = [published.seconds(v) for v in whole]
        expected = predicted(temper, receivers, replicas)
        measured[weights] = statistics.median(seconds)
        print(f"relay: {weights} to {receivers}: {measured[weights]:.2f} s, predicted {expected:.2f} s "
              f"({100 * (measured[weights] / expected - 1):+.1f} %), each {[round(s, 2) for s in seconds]}", flush=True)
        assert abs(measured[weights] / expected - 1) < NEAR, (weights, receivers, seconds, expected)
    assert measured["relay"] < measured["broadcast"]


def test_an_engine_that_is_killed_in_the_middle_of_a_relay_loses_nothing(temper: str, tmp_path: Path) -> None:
    """The second of four: the third and the fourth wait for it."""
    with run_of(temper, tmp_path, 4, "relay") as (run, workers):
        run.after(1)
        run.until(lambda: 1 in Publications(run).asked, "version 1 to be staged")
        run.wait(1.0)
        os.killpg(workers[1].pid, signal.SIGKILL)
        run.is_whole(STEPS)
        published = Publications(run)
        log = run.said()
    staged = published.staged[1]
    assert set(staged) == {0, 2, 3}, log
    # What the third had is not sent again; it waits for a timeout, then has the rest from the first.
    longest = predicted(temper, 4, "tree") * (1 + NEAR) + RELAY_TIMEOUT + 1
    took = max(staged.values()) - min(published.asked[1].values())
    print(f"relay: kill -9 of the second of 4: the others had the version after {took:.2f} s, "
          f"{predicted(temper, 4, 'tree'):.2f} s without it", flush=True)
    assert took < longest, log


def test_an_engine_that_is_killed_first_in_the_chain_is_followed_by_the_orchestrator(temper: str, tmp_path: Path) -> None:
    with run_of(temper, tmp_path, 3, "relay") as (run, workers):
        run.after(1)
        run.until(lambda: 1 in Publications(run).asked, "version 1 to be staged")
        run.wait(1.0)
        os.killpg(workers[0].pid, signal.SIGKILL)
        run.is_whole(STEPS)
        published = Publications(run)
        assert "asks for weights that no other sends" in run.log(), run.said()
    assert set(published.staged[1]) == {1, 2}


def test_weights_in_a_folder_do_not_cross_the_links(temper: str, tmp_path: Path) -> None:
    with run_of(temper, tmp_path, 2, "folder") as (run, _):
        run.is_whole(STEPS)
        published = Publications(run)
        left = list((run.run_dir / "weights").iterdir())
    assert published.seconds(1) < predicted(temper, 1, "tree") / 2
    assert not left
