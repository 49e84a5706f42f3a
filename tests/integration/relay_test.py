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
RATE = 20_000_000  # bits per second
LINK = RATE / 8
NEAR = 0.10
RELAY_TIMEOUT = 3.0
STEPS = 1000
MEASURED = 2

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
def run_of(temper: str, folder: Path, replicas: int, weights: str) -> Iterator[tuple[Run, list[Any]]]:
    """A run with an engine on each of so many hosts."""
    if why := unable():
        pytest.skip(why)
    with Hosts(replicas + 1, f"{RATE}bit") as hosts:
        run = Run(hosts, temper, folder, CONFIG.format(replicas=replicas, weights=weights, steps=STEPS))
        yield run, [run.worker(slot + 1, slot) for slot in range(replicas)]


def predicted(temper: str, hosts: int, replicas: str) -> float:
    line = [temper, "cost", "kind=host_publication", "hardware=nvidia-h200", f"bytes={IMAGE}", f"hosts={hosts}", f"bandwidth={LINK}",
            f"replicas={replicas}", "--json"]
    done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=60)
    return float(next(m["value"] for m in json.loads(done.stdout)["metrics"] if m["name"] == "time"))


class Publications:
    """Of each version: when its engines were asked to stage it, and when each had."""

    def __init__(self, run: Run) -> None:
        self.asked: dict[int, dict[int, float]] = {}
        self.staged: dict[int, dict[int, float]] = {}
        for record in run.records() if run.updates() > 0 else []:
            at = float(record["time"])
            for command in record["commands"]:
                if said := command.get("stage_weights"):
                    self.asked.setdefault(said["version"], {}).setdefault(said["actor"], at)
            if said := record["event"].get("weights_staged"):
                assert not said["error"], said
                self.staged.setdefault(said["version"], {})[said["actor"]] = at

    def seconds(self, version: int) -> float:
        return max(self.staged[version].values()) - min(self.asked[version].values())

    def together(self, engines: int) -> list[int]:
        """Versions that so many engines were asked to stage at once."""
        return [v for v, asked in self.asked.items() if len(asked) == engines and max(asked.values()) - min(asked.values()) < 0.1]

    def whole(self, engines: int) -> list[int]:
        return [v for v in self.together(engines) if len(self.staged.get(v, {})) == engines]


def in_the_middle(run: Run, engines: int) -> int:
    """The version that all engines are being sent, after one that all have."""
    run.until(lambda: Publications(run).whole(engines), "a version that all engines have")
    there = max(Publications(run).together(engines))
    run.until(lambda: max(Publications(run).together(engines)) > there, "the next version")
    run.wait(1.0)
    return max(Publications(run).together(engines))


@pytest.mark.parametrize("receivers", [2, 4, 8])
def test_weights_take_as_long_as_predicted_by_relay_and_by_broadcast(temper: str, tmp_path: Path, receivers: int) -> None:
    measured, expected = {}, {}
    for weights, replicas in (("relay", "tree"), ("broadcast", "direct")):
        with run_of(temper, tmp_path / weights, receivers, weights) as (run, _):
            # The first version goes to engines as they come, the second opens connections.
            run.until(lambda n=receivers: len(Publications(run).whole(n)) > MEASURED, "versions that all engines have")
            run.stop()
            run.is_whole(None)
            published = Publications(run)
        seconds = [published.seconds(v) for v in published.whole(receivers)][1 : MEASURED + 1]
        expected[weights] = predicted(temper, receivers, replicas)
        measured[weights] = statistics.median(seconds)
        print(f"relay: {weights} to {receivers}: {measured[weights]:.2f} s, predicted {expected[weights]:.2f} s "
              f"({100 * (measured[weights] / expected[weights] - 1):+.1f} %), each {[round(s, 2) for s in seconds]}", flush=True)
    assert measured["relay"] < measured["broadcast"]
    assert all(abs(measured[w] / expected[w] - 1) < NEAR for w in measured), (measured, expected)


def test_an_engine_that_is_killed_in_the_middle_of_a_relay_loses_nothing(temper: str, tmp_path: Path) -> None:
    """The second of four: the third and the fourth wait for it."""
    with run_of(temper, tmp_path, 4, "relay") as (run, workers):
        version = in_the_middle(run, 4)
        os.killpg(workers[1].pid, signal.SIGKILL)
        run.until(lambda: len(Publications(run).staged.get(version, {})) == 3, "the others to have it")
        run.stop()
        run.is_whole(None)
        published = Publications(run)
        log = run.said()
    assert set(published.staged[version]) == {0, 2, 3}, log
    # The third waits for a timeout, then has the rest from the first, and the fourth with it from the third.
    expected = predicted(temper, 4, "tree")
    took = published.seconds(version)
    print(f"relay: kill -9 of the second of 4: the others had the version after {took:.2f} s, {expected:.2f} s without", flush=True)
    assert took < (1 + NEAR) * 2 * expected + RELAY_TIMEOUT, log


def test_an_engine_that_is_killed_first_in_the_chain_is_followed_by_the_orchestrator(temper: str, tmp_path: Path) -> None:
    with run_of(temper, tmp_path, 3, "relay") as (run, workers):
        version = in_the_middle(run, 3)
        os.killpg(workers[0].pid, signal.SIGKILL)
        run.until(lambda: len(Publications(run).staged.get(version, {})) == 2, "the others to have it")
        run.stop()
        run.is_whole(None)
        published = Publications(run)
        assert "asks for weights that no other sends" in run.log(), run.said()
    assert set(published.staged[version]) == {1, 2}


def test_weights_in_a_folder_do_not_cross_the_links(temper: str, tmp_path: Path) -> None:
    with run_of(temper, tmp_path, 2, "folder") as (run, _):
        run.until(lambda: len(Publications(run).whole(2)) >= MEASURED, "versions that both engines have")
        run.stop()
        run.is_whole(None)
        published = Publications(run)
        left = list((run.run_dir / "weights").iterdir())
    assert statistics.median(map(published.seconds, published.whole(2))) < predicted(temper, 1, "tree") / 2
    assert not left
