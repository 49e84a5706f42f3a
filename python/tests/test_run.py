"""Complete runs with roles in Python. The variable TEMPER has the path of `temper`; without it, they are skipped."""

from __future__ import annotations

import collections.abc
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from conftest import TREE

TEMPER = os.environ.get("TEMPER", "")
pytestmark = pytest.mark.skipif(not TEMPER, reason="TEMPER names no program to run")

CONFIG = """
name: python
policy: synthetic
steps: {steps}
algorithm: {{groups_per_update: 4, responses_per_group: 4}}
sampling: {{max_new_tokens: 8}}
rollout: {{replicas: 1, concurrency: 16, engine: {rollout}}}
trainer: {{engine: {trainer}}}
reference: {{engine: {reference}}}
reward: {{engine: {reward}}}
checkpoint: {{every: 4}}
deadlines: {{generate: {generate}, start: 60s}}
transport: {{kind: {transport}, heartbeat: 100ms, max_restarts: {restarts}}}
placement: {placement}
task: {task}
verifier: {verifier}
"""
PATIENCE = 90


def python(use: str, **arguments: Any) -> str:
    return f'{{kind: python, use: "{use}", with: {json.dumps(arguments)}}}'


NATIVE = "{kind: native}"


class Gate:
    """Holds a trainer after `well.GATED` updates, so that no run is over before the test has done
    to it what it wanted."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / "gate"
        self.file = self.path.open("w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def await_trainer(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not pathlib.Path(f"{self.path}.reached").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def read(self) -> set[str]:
        """The tensors that the waiting trainer has read, also those of the batch it waits with."""
        return set(pathlib.Path(f"{self.path}.reached").read_text().split())

    def open(self) -> None:
        self.file.close()


class Run:
    def __init__(
        self, folder: pathlib.Path, sets: collections.abc.Iterable[str] = (), **engines: Any
    ) -> None:
        self.folder = folder
        self.run_dir = folder / "run"
        settings: dict[str, Any] = {
            "steps": 12,
            "generate": "60s",
            "transport": "ipc",
            "restarts": 3,
            "placement": "{mode: separate, cards: 2}",
            "task": "{kind: addition}",
            "verifier": "{kind: exact}",
            **dict.fromkeys(["rollout", "trainer", "reference", "reward"], NATIVE),
        }
        config = folder / "config.yaml"
        config.write_text(CONFIG.format(**{**settings, **engines}))
        path = os.pathsep.join([str(TREE / "python/src"), str(TREE / "python/tests/roles")])
        self.environment = {**os.environ, "TEMPER_PYTHON": sys.executable, "PYTHONPATH": path}
        self.process = subprocess.Popen(
            [TEMPER, "run", str(config), "--plain"]
            + [word for s in (f"run_dir={self.run_dir}", *sets) for word in ("--set", s)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=self.environment,
        )

    def attach(self, slot: str) -> subprocess.Popen[bytes]:
        key = self.run_dir / "keys/worker.key"
        words = ["--connect", self.run_dir / "endpoint", "--key", key, "--slot", slot]
        with open(self.folder / f"{slot}.log", "wb") as log:
            return subprocess.Popen(
                [TEMPER, "worker", *words], stdout=log, stderr=log, env=self.environment
            )

    def wait(self) -> tuple[int, str]:
        try:
            output, _ = self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()
        return self.process.returncode, output

    def temper(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TEMPER, command, str(self.run_dir)], capture_output=True, text=True)

    def log(self) -> str:
        return "".join(p.read_text() for p in (self.run_dir / "logs").glob("*.log"))

    def metrics(self) -> list[str]:
        file = self.run_dir / "metrics.jsonl"
        return file.read_text().splitlines() if file.exists() else []

    def updates(self) -> int:
        """The last one; those that a lost trainer voids are made again."""
        lines = self.metrics()
        return int(json.loads(lines[-1])["step"]) if lines else 0

    def await_updates(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.updates() < count and self.process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def await_log(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.log():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def pid_of(self, name: str) -> int:
        """The actor's process, by what the kernel shows of our children."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in children.read_text().split():
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(word.endswith(name.encode()) for word in command):
                return int(pid)
        raise AssertionError(f"no process of {name}")

    def expect_whole(self, updates: int = 12) -> None:
        status, output = self.wait()
        assert status == 0, output + self.log()
        audit = self.temper("audit")
        assert audit.returncode == 0, audit.stdout + audit.stderr
        assert audit.stdout.rstrip().endswith("clean")
        assert self.temper("replay").returncode == 0
        assert self.updates() == updates


WELL = {
    "rollout": python("well:Engine"),
    "trainer": python("well:Trainer"),
    "reference": python("well:Reference"),
    "reward": python("well:Reward"),
}


def test_every_role_in_python(tmp_path: pathlib.Path) -> None:
    Run(tmp_path, **WELL).expect_whole()


@pytest.mark.parametrize("role", list(WELL))
def test_one_role_in_python_among_our_own(tmp_path: pathlib.Path, role: str) -> None:
    engines = {role: WELL[role]}
    if role == "rollout":  # which looks into the weights
        engines["trainer"] = WELL["trainer"]
    Run(tmp_path, **engines).expect_whole()


def test_roles_in_python_take_turns_on_a_card(tmp_path: pathlib.Path) -> None:
    placement = "{mode: colocated, cards: 1}"
    Run(tmp_path, placement=placement, **WELL).expect_whole()


def test_roles_in_python_attach(tmp_path: pathlib.Path) -> None:
    attach = [f"{role}.launch=attach" for role in WELL]
    gate = Gate(tmp_path)
    engines = {**WELL, "trainer": python("well:Trainer", gate=str(gate.path))}
    run = Run(tmp_path, attach, transport="tcp", steps=30, **engines)
    slots = ["rollout-0", "trainer", "reference-0", "reward-0"]
    workers = {slot: run.attach(slot) for slot in slots}
    run.await_updates(5)
    workers["reward-0"].kill()
    workers["reward-0"].wait(PATIENCE)
    workers["reward-0"] = run.attach("reward-0")
    gate.open()
    run.expect_whole(30)
    assert {slot: worker.wait(PATIENCE) for slot, worker in workers.items()} == dict.fromkeys(
        slots, 0
    )
    assert "lost; waiting for another worker actor=reward-0" in run.log()


@pytest.mark.parametrize("kind", ["ipc", "tcp"])
def test_a_trainer_that_is_a_loop(tmp_path: pathlib.Path, kind: str) -> None:
    script = TREE / "python/tests/roles/loop.py"
    gate = Gate(tmp_path)
    trainer = f"{{kind: command, command: [{sys.executable}, {script}, {gate.path}]}}"
    run = Run(tmp_path, steps=20, transport=kind, **{**WELL, "trainer": trainer})
    run.await_updates(6)
    os.kill(run.pid_of("loop.py"), signal.SIGKILL)
    gate.open()
    run.expect_whole(20)


def test_reward_functions_with_columns_of_the_file(tmp_path: pathlib.Path) -> None:
    rows = [{"prompt": f"{i}+1=", "answer": str(i + 1), "level": i % 3} for i in range(40)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = f"{{kind: jsonl, path: {tmp_path / 'tasks.jsonl'}, held_out: 0}}"
    verifier = '{kind: python, function: "reward_functions:level"}'
    run = Run(tmp_path, task=task, verifier=verifier, **{**WELL, "reward": NATIVE})
    run.expect_whole()
    rewards = [json.loads(line)["reward"] for line in run.metrics()]
    assert 0 < sum(rewards) / len(rewards) < 2


@pytest.mark.parametrize("name", ["rollout-0", "trainer", "reference-0", "reward-0"])
def test_one_that_is_killed_is_replaced(tmp_path: pathlib.Path, name: str) -> None:
    gate = Gate(tmp_path)
    engines = {**WELL, "trainer": python("well:Trainer", gate=str(gate.path))}
    run = Run(tmp_path, steps=40, **engines)
    run.await_updates(5)
    os.kill(run.pid_of(name), signal.SIGKILL)
    gate.open()
    run.expect_whole(40)
    lost = (
        "rolling back to the last checkpoint"
        if name == "trainer"
        else f"lost; starting it again actor={name}"
    )
    assert lost in run.log()


TENSORS = {
    **WELL,
    "rollout": python("well:TensorEngine"),
    "trainer": python("well:TensorTrainer"),
}


BYTES = 4 * 6 + 4 * 6 * 6
"""Of the tensors of one response."""

AHEAD = 2 * 2 * 16
"""Tensors of all other responses that a bound of 2 allows: two batches, and two tensors each. The
engine has nothing more to do, and all but the last 16 responses are known to the orchestrator."""


def tensor_folder(run: Run) -> pathlib.Path:
    """Beside the file that the orchestrator has locked."""
    opened = pathlib.Path(f"/proc/{run.process.pid}/fd")
    [owner] = {t for fd in opened.iterdir() if (t := os.readlink(fd)).startswith("/dev/shm/temper-tensors-")}
    return pathlib.Path(owner).parent / "files"


def responses_lost(run: Run) -> int:
    return int(json.loads((run.run_dir / "summary.json").read_text())["groups"]["responses_lost"])


def test_a_trainer_reads_the_tensors_of_its_engine_and_nothing_is_left(tmp_path: pathlib.Path) -> None:
    gate = Gate(tmp_path)
    trainer = python("well:TensorTrainer", gate=str(gate.path))
    run = Run(tmp_path, steps=20, **{**TENSORS, "trainer": trainer})
    run.await_updates(5)
    folder = tensor_folder(run)
    gate.open()
    run.expect_whole(20)
    assert responses_lost(run) == 0
    assert not folder.exists()
    use = json.loads((run.run_dir / "summary.json").read_text())["tensors"]
    assert use["fetched_bytes"] == 20 * 16 * BYTES
    assert use["stored_bytes"] >= use["fetched_bytes"]
    assert use["fetch_s"] > 0
    assert use["held_bytes"] is None
    assert "of responses, read by the trainer" in run.temper("report").stdout


def test_a_response_that_names_the_file_of_another_fails(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path, **{**TENSORS, "rollout": python("well:SharingEngine")})
    run.expect_whole()
    assert "its file is that of another tensor" in run.log()


def test_responses_whose_tensors_are_gone_are_generated_again(tmp_path: pathlib.Path) -> None:
    gate = Gate(tmp_path)
    trainer = python("well:TensorTrainer", gate=str(gate.path), ahead=AHEAD)
    run = Run(tmp_path, ["staleness.bound=2"], steps=40, **{**TENSORS, "trainer": trainer})
    gate.await_trainer()
    for file in tensor_folder(run).glob(".*"):
        file.unlink()
    gate.open()
    run.expect_whole(40)
    assert "tensors of a batch are gone" in run.log()
    assert "rolling back to the last checkpoint" not in run.log()
    assert responses_lost(run) > 0


def test_a_trainer_that_misses_tensors_ends_and_the_run_goes_on(tmp_path: pathlib.Path) -> None:
    trainer = python("well:LosingTrainer", lost=str(tmp_path / "lost"), ahead=AHEAD)
    run = Run(tmp_path, ["staleness.bound=2"], **{**TENSORS, "trainer": trainer})
    run.expect_whole()
    assert "No such file" in run.log() and "rolling back to the last checkpoint" in run.log()
    assert responses_lost(run) > 0


def test_a_resume_generates_what_the_killed_orchestrator_held(tmp_path: pathlib.Path) -> None:
    gate = Gate(tmp_path)
    trainer = python("well:TensorTrainer", gate=str(gate.path), ahead=AHEAD)
    run = Run(tmp_path, ["staleness.bound=2"], steps=40, **{**TENSORS, "trainer": trainer})
    run.await_updates(5)
    folder = tensor_folder(run)
    run.process.kill()
    run.process.wait()
    gate.open()
    run.process = subprocess.Popen(
        [TEMPER, "run", "--resume", str(run.run_dir), "--plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=run.environment,
    )
    run.expect_whole(40)
    assert responses_lost(run) > 0
    assert not folder.exists(), "the next run removes what a killed one left"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("raises", "KeyError: 'no such layer' ("),
        ("ends", "exit code 3"),
        ("not_finite", "token 0: log-prob nan, expected -100 to 0"),
        ("shapes", "2 tokens but 1 log-probs"),
        ("empty", "ended without a token"),
        ("above_zero", "token 0: log-prob 5, expected -100 to 0"),
        ("unlikely", "token 0: log-prob -1000, expected -100 to 0"),
        ("lowest", "token 0: log-prob -3e+38, expected -100 to 0"),
        ("outside", "token 0: token id 1000000000; the vocabulary has ids 0 to 13"),
        ("negative", "token 0: token id -5; the vocabulary has ids 0 to 13"),
        ("long", "9 tokens; sampling.max_new_tokens allows 8"),
        ("mask", "token 0: mask 7, expected 0 or 1"),
        ("huge_rewards", "token 0: reward 3e+38, expected -1e+18 to 1e+18"),
        ("huge_sum", "the sum over tokens: reward 1.6e+18, expected"),
        ("segments", "has 1 tokens, its segments 2"),
        ("future", "has tokens of version 1000"),
        ("undecodable", "ValueError: caf"),
        ("too_many", "twice"),
    ],
)
def test_an_engine_that_goes_wrong_once_costs_nothing(
    tmp_path: pathlib.Path, how: str, why: str
) -> None:
    engine = python("ill:Engine", how=how, once=str(tmp_path / "done"))
    run = Run(tmp_path, **{**WELL, "rollout": engine})
    run.expect_whole()
    assert why in run.log()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("infinite", "Reward.judge(): term "),
        ("misnamed", "Reward.judge(): terms: found the name "),
        ("undecodable", "OSError: caf"),
    ],
)
def test_a_reward_that_goes_wrong_once_costs_one_response(
    tmp_path: pathlib.Path, how: str, why: str
) -> None:
    run = Run(tmp_path, **{**WELL, "reward": python("ill:Reward", how=how)})
    run.expect_whole()
    assert why in run.log()
    assert "lost; starting it again" not in run.log()


def test_an_engine_that_hangs_is_replaced(tmp_path: pathlib.Path) -> None:
    engine = python("ill:Engine", how="hangs", once=str(tmp_path / "done"))
    Run(tmp_path, generate="2s", **{**WELL, "rollout": engine}).expect_whole()


@pytest.mark.parametrize(
    ("role", "engine", "why"),
    [
        ("rollout", python("ill:Engine", how="raises", after=0), "ill.py:"),
        ("rollout", python("ill:CannotBeMade"), "RuntimeError: no GPU here"),
        ("trainer", python("ill:Trainer", how="raises"), "do not fit"),
        ("trainer", python("ill:Trainer", how="not_finite"), "loss: expected a finite number, found nan"),
        ("trainer", python("ill:NanWeights"), "tensor w: the values are not finite"),
    ],
)
def test_what_never_works_ends_the_run_by_its_name(
    tmp_path: pathlib.Path, role: str, engine: str, why: str
) -> None:
    run = Run(tmp_path, restarts=1, **{**WELL, role: engine})
    status, output = run.wait()
    assert status == 1, output
    assert why in output, output + run.log()
    assert ("rollout-0" if role == "rollout" else "trainer") in output
    assert run.temper("audit").returncode == 0
    assert run.updates() <= 3


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("ill:NotARole", "expected a subclass of temper.Engine"),
        ("ill:Nothing", "ill has no Nothing"),
        ("nowhere:Engine", "no module nowhere in"),
    ],
)
def test_a_role_that_cannot_be_imported_is_refused_before_the_run(
    tmp_path: pathlib.Path, use: str, why: str
) -> None:
    run = Run(tmp_path, **{**WELL, "rollout": python(use)})
    status, output = run.wait()
    assert status == 2, output
    assert "rollout.engine.use" in output
    assert why in output
    assert not run.run_dir.exists()


def test_a_program_that_is_not_there_is_said_before_the_run(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path, **{**WELL, "rollout": "{kind: command, command: [/nonexistent/engine]}"})
    status, output = run.wait()
    assert status == 2
    assert "rollout.engine.command: cannot execute /nonexistent/engine" in output
    assert not run.run_dir.exists()
