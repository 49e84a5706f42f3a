"""Runs with engines on separate hosts behind slow links, and the duration of their weight publications."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hosts import Hosts, Run

IMAGE = 16 << 20
TRAINED = IMAGE // 2  # Of a trainer with a host of its own.
RATE = 20_000_000  # bits per second
LINK = RATE / 8
RELAY_TIMEOUT = 3.0
STEPS = 1000

CONFIG = f"""name: relay
policy: synthetic
steps: {{steps}}
algorithm: {{{{groups_per_update: 8, responses_per_group: 2, kl: 0}}}}
staleness: {{{{bound: 0}}}}
rollout: {{{{replicas: {{replicas}}, concurrency: 8, launch: attach}}}}
sampling: {{{{max_new_tokens: 1}}}}
synthetic: {{{{tokens: 1, weights: {{image}}B, step_time: {{step}}s}}}}
checkpoint: {{{{every: {{checkpoint}}}}}}
trainer: {{{{launch: {{trainer}}}}}}
deadlines: {{{{weights: 300s}}}}
transport:
  {{{{kind: tcp, bind: 0.0.0.0, advertise: 10.77.0.1, heartbeat: 500ms, heartbeat_timeout: 30s, weights: {{weights}},
    relay_timeout: {RELAY_TIMEOUT}s}}}}
"""


def predicted(temper: str, hosts: int, replicas: str) -> float:
    line = [temper, "cost", "kind=host_publication", "hardware=nvidia-h200", f"bytes={IMAGE}", f"hosts={hosts}", f"bandwidth={LINK}",
            f"replicas={replicas}", "--json"]
    done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=60)
    return float(next(m["value"] for m in json.loads(done.stdout)["metrics"] if m["name"] == "time"))


@contextmanager
def run_with_trainer(temper: str, folder: Path, replicas: int, checkpoint: int = 0, image: int = TRAINED,
                     rate: str | None = f"{RATE}bit") -> Iterator[tuple[Run, list[Any], Any]]:
    """A run with an engine on each of so many hosts, and its trainer on the host after them."""
    step = 1 if rate is None else math.ceil(0.6 * image / IMAGE * predicted(temper, replicas, "tree"))
    with Hosts(replicas + 2, rate) as hosts:
        run = Run(hosts, temper, folder, CONFIG.format(replicas=replicas, weights="relay", steps=STEPS, step=step, image=image,
                                                       checkpoint=checkpoint, trainer="attach"))
        yield run, [run.worker(slot + 1, slot) for slot in range(replicas)], run.trainer(replicas + 1)


@contextmanager
def run_of(temper: str, folder: Path, replicas: int, weights: str) -> Iterator[tuple[Run, list[Any]]]:
    """A run with an engine on each of so many hosts. Needs what hosts.unable() looks for. A step of an engine and an update
    together take longer than a version's way to all engines: else those that have it first would make the next one before
    the others have it."""
    step = math.ceil(0.6 * predicted(temper, replicas, "direct" if weights == "broadcast" else "tree"))
    with Hosts(replicas + 1, f"{RATE}bit") as hosts:
        run = Run(hosts, temper, folder, CONFIG.format(replicas=replicas, weights=weights, steps=STEPS, step=step, image=IMAGE,
                                                       checkpoint=0, trainer="local"))
        yield run, [run.worker(slot + 1, slot) for slot in range(replicas)]


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
