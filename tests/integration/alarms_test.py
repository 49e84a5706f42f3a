"""Alarms of whole runs: ten clean ones raise none, each fault that is planted raises its own, and one that is raised
reaches everyone it should."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from environment import ROOT
from runs import Run

#: (configuration, settings): runs that learn, that have nothing to learn from, and simulated ones on 5 and 384 cards.
#: All have more than the 60 updates that alarms about learning look back on.
LEARNING = ("steps=100", "algorithm.groups_per_update=16")
SYNTHETIC = ("policy=synthetic", "synthetic.step_time=1ms", "steps=200", "algorithm.groups_per_update=4")
SIMULATED = ("steps=80", "algorithm.groups_per_update=16")
CLEAN = [
    *(("quickstart", (*LEARNING, f"staleness.bound={bound}")) for bound in (0, 1, 4)),
    *(("quickstart", (*SYNTHETIC, f"seed={seed}", f"staleness.bound={bound}")) for seed, bound in ((4, 0), (5, 1), (6, 4))),
    ("quickstart", (*SYNTHETIC, "placement.mode=colocated", "seed=7")),
    *(("cm384_pangu", (*SIMULATED, f"seed={seed}", f"staleness.bound={bound}")) for seed, bound in ((8, 0), (9, 2))),
    ("cm384_pangu_fused", (*SIMULATED, "seed=10")),
]


def start(temper: str, run: Path, config: str, sets: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    words = [word for given in (f"run_dir={run}", *sets) for word in ("--set", given)]
    driver = [] if config == "quickstart" else ["--driver", "in-process"]
    return subprocess.run([temper, "run", str(ROOT / f"configs/{config}.yaml"), *driver, "--plain", *words],
                          capture_output=True, text=True, timeout=400)


@pytest.mark.parametrize(("config", "sets"), CLEAN, ids=[f"{config}-{i}" for i, (config, _) in enumerate(CLEAN)])
def test_a_clean_run_raises_no_alarm(temper: str, tmp_path: Path, config: str, sets: tuple[str, ...]) -> None:
    done = start(temper, tmp_path / "run", config, sets)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    live = json.loads((tmp_path / "run/live.json").read_text())
    assert live["over"] and live["updates"] > 60
    assert live["alarms"] == []


#: Planted faults (planted.py) by what they raise. That each stops the run is why it ends.
PLANTED = {
    "reward_collapse": (), "entropy_collapse": (), "kl_blow_up": (), "few_effective_samples": (), "engine_mismatch": (), "not_finite": (), "growing_wait": (),
    "slow_engine": ("rollout.replicas=3",),
    "memory_growth": (),
}  # fmt: skip
ALSO = {"memory_growth": {"no_progress"}}  #: Where its update takes so long that this is one, too.


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_fault_raises_its_alarm_and_no_other(temper: str, tmp_path: Path, plant: str) -> None:
    roles = (
        f'{role}.engine={{kind: python, use: "planted:{name}", with: {{plant: {plant}}}}}'
        for role, name in (("rollout", "Engine"), ("trainer", "Trainer"), ("reward", "Reward"))
    )
    settings = (
        "policy=synthetic", "steps=100000", "algorithm.groups_per_update=4", "algorithm.responses_per_group=4",
        "rollout.replicas=1", "rollout.concurrency=16", "placement.cards=2", "checkpoint.every=20", f"alarms.stop_on=[{plant}]",
    )  # fmt: skip
    done = start(temper, tmp_path / "run", "quickstart", (*settings, *roles, *PLANTED[plant]))
    live = json.loads((tmp_path / "run/live.json").read_text())
    raised = {alarm["kind"] for alarm in live["alarms"]}
    assert plant in raised and raised <= {plant, *ALSO.get(plant, ())}, done.stdout[-2000:] + done.stderr[-2000:]
    assert live["summary"]["stopped"]
    assert f" alarm {plant}: " in done.stdout
    report = subprocess.run([temper, "report", str(tmp_path / "run")], capture_output=True, text=True, timeout=60)
    assert plant in report.stdout.split("\nalarms\n")[1]
    assert plant == "slow_engine" or live["updates"] >= 70 - 20  # that one is slow from the start


REFIT = """
name: refit
policy: synthetic
steps: 24
task: {kind: addition, digits: 1}
algorithm: {groups_per_update: 8, responses_per_group: 8, kl: 0, learning_rate: 3e-3}
sampling: {max_new_tokens: 6}
placement: {mode: separate, cards: 2}
rollout: {concurrency: 64, engine: {kind: python, use: "ENGINE", with: {model: MODEL, dtype: float32}}}
trainer: {engine: {kind: python, use: "temper.torch:Trainer", with: {model: MODEL, dtype: float32}}}
reward: {engine: {kind: python, use: "partial_refit:Reward"}}
reference: {replicas: 0}
staleness: {bound: 0}
deadlines: {start: 300s, generate: 120s}
transport: {heartbeat_timeout: 120s, max_restarts: 0}
"""


@pytest.mark.needs("torch", "transformers", "safetensors")
@pytest.mark.parametrize(("engine", "raised"), [("temper.torch:Engine", []), ("partial_refit:Engine", ["engine_mismatch"])])
def test_an_engine_that_does_not_load_all_weights_disagrees_with_the_trainer(
    temper: str, tmp_path: Path, tiny_llama: Path, engine: str, raised: list[str]
) -> None:
    config = REFIT.replace("ENGINE", engine).replace("MODEL", str(tiny_llama))
    with Run(temper, tmp_path, config, path=str(ROOT / "tests/integration")) as run:
        run.finish()
        print([f"{one['ratio']['mismatch']:.1e}" for one in run.metrics()][::5])
        assert [alarm["kind"] for alarm in json.loads((run.run_dir / "live.json").read_text())["alarms"]] == raised


def test_an_alarm_is_logged_shown_told_to_a_command_and_stops_the_run(temper: str, tmp_path: Path) -> None:
    run, told = tmp_path / "run", tmp_path / "told"
    command = tmp_path / "tell"
    command.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >> "{told}"\n')
    command.chmod(0o755)
    planted = ("alarms.disk_free=4000000GB", f"alarms.on_alarm=[{command}, first]", "alarms.stop_on=[disk_almost_full]")
    many = (*SYNTHETIC, "steps=100000", "checkpoint.every=20")
    done = start(temper, run, "quickstart", (*many, *planted))
    live = json.loads((run / "live.json").read_text())
    assert [alarm["kind"] for alarm in live["alarms"]] == ["disk_almost_full"]
    assert live["summary"]["stopped"] and live["updates"] < 100000, done.stdout
    assert "disk_almost_full" in (run / "logs/orchestrator.log").read_text()
    words = told.read_text().split("|")
    assert words[:2] == ["first", "disk_almost_full"] and "MiB are free" in words[2]
    # It stopped as Ctrl-C stops it: it can be resumed, and is told of again while the cause stands.
    again = subprocess.run([temper, "run", "--resume", str(run), "--plain"], capture_output=True, text=True, timeout=200)
    assert again.returncode == done.returncode, again.stdout[-2000:] + again.stderr[-2000:]
    assert told.read_text().count("disk_almost_full") == 2
