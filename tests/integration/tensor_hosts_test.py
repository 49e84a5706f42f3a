"""Tensors between hosts: the orchestrator with a Redis server, an engine and a trainer, each on a host of its own behind
a link of limited rate. The trainer checks every tensor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from environment import ROOT
from hosts import PATIENCE, Hosts, Run, unable

STEPS = 12
RESPONSES = 4
TOKENS = 128
#: Of one response: its tokens and their products, as int32.
TENSORS = 4 * TOKENS + 4 * TOKENS * TOKENS
PORT = 6379

CONFIG = f"""name: tensors
policy: synthetic
steps: {STEPS}
algorithm: {{groups_per_update: {RESPONSES // 2}, responses_per_group: 2, minibatches: 1}}
sampling: {{max_new_tokens: {TOKENS}}}
staleness: {{bound: 1}}
rollout: {{replicas: 1, concurrency: 8, launch: attach, engine: {{kind: python, use: "well:TensorEngine", with: {{tokens: {TOKENS}}}}}}}
trainer: {{launch: attach, engine: {{kind: python, use: "well:TensorTrainer"}}}}
reference: {{replicas: 0}}
checkpoint: {{every: 0}}
transport: {{kind: tcp, bind: 0.0.0.0, advertise: 10.77.0.1}}
payloads: {{store: redis, redis: "10.77.0.1:{PORT}"}}
"""


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an interpreter with the package redis."""
    venv = subprocess.run([ROOT / "python/venv", ROOT / "build/python"], capture_output=True, text=True, check=False)
    if venv.returncode != 0:
        pytest.skip(venv.stderr)
    monkeypatch.setenv("TEMPER_PYTHON", venv.stdout.strip())
    folders = [ROOT / "python/tests/roles", os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))


def await_server(log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while "Ready to accept connections" not in log.read_text():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)


def run_over(rate: str | None, temper: str, folder: Path) -> dict[str, float]:
    """What the run reports of its tensors. `rate`: of each host's link."""
    if why := unable():
        pytest.skip(why)
    if shutil.which("redis-server") is None:
        pytest.skip("needs redis-server (Debian's package redis-server)")
    with Hosts(3, rate) as hosts:
        server = ["redis-server", "--port", str(PORT), "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
        folder.mkdir()
        hosts.start(0, server, folder / "redis.log")
        await_server(folder / "redis.log")
        run = Run(hosts, temper, folder, CONFIG)
        run.worker(1, 0)
        run.trainer(2)
        run.is_whole(STEPS)
        return json.loads((run.run_dir / "summary.json").read_text())["tensors"]


def test_the_report_names_the_time_that_a_slow_link_costs(roles: None, temper: str, tmp_path: Path) -> None:
    mbit = 10
    slow = run_over(f"{mbit}mbit", temper, tmp_path / "slow")
    fast = run_over(None, temper, tmp_path / "fast")
    for use in slow, fast:
        assert use["fetched_bytes"] == STEPS * RESPONSES * TENSORS
        assert use["stored_bytes"] >= use["fetched_bytes"]
    on_the_link = RESPONSES * TENSORS * 8 / (mbit * 1e6)  # seconds of a step
    # The first 64 KB of a burst pass at once, and a message of the protocol has a few bytes of its own.
    assert 0.7 * on_the_link <= slow["fetch_s_per_update"] <= 2 * on_the_link + fast["fetch_s_per_update"]
    assert fast["fetch_s_per_update"] < 0.3 * on_the_link
