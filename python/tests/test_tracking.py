"""Sidecars continue to read metrics.jsonl at their last position after any interruption."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from temper import tracking, trackio, wandb

LINE = {
    "step": 1,
    "reward": 0.5,
    "entropy": None,
    "tokens_per_s": {"raw": 10.0},
    "states": {"decode": 0.5, "train": 0.25, "wait-data": 0.2, "idle": 0.05},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text("name: a\n")
    return tmp_path


def write(run: Path, *steps: int, end: str = "\n") -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write("\n".join(json.dumps({**LINE, "step": s}) for s in steps) + end)


def test_numbers_are_named_by_their_path_and_shares_are_summed() -> None:
    flat = tracking.flatten(LINE)
    assert flat["tokens_per_s/raw"] == 10.0
    assert flat["busy"] == 0.75
    assert flat["waiting"] == 0.2
    assert "entropy" not in flat


def test_an_alias_has_the_value_of_ours() -> None:
    flat = tracking.with_aliases({"reward": 0.5}, ["verl", "trl"])
    assert flat == {"reward": 0.5, "critic/score/mean": 0.5}
    both = tracking.with_aliases({"rewards/min": -1.0}, ["verl"])
    assert both == {"rewards/min": -1.0, "critic/rewards/min": -1.0, "critic/score/min": -1.0}
    with pytest.raises(ValueError, match="expected trl, verl or prime-rl, found 'x'"):
        tracking.with_aliases({}, ["x"])


def test_reading_goes_on_where_it_stopped(run: Path) -> None:
    position = tracking.Position.load(run, "t")
    write(run, 1, 2)
    assert [line["step"] for line in tracking.lines(run, position, follow=False)] == [1, 2]
    position.save()
    write(run, 3)
    again = tracking.Position.load(run, "t")
    assert [line["step"] for line in tracking.lines(run, again, follow=False)] == [3]


def test_a_line_that_is_being_written_is_waited_for(run: Path) -> None:
    write(run, 1)
    write(run, 2, end="")
    position = tracking.Position.load(run, "t")
    assert [line["step"] for line in tracking.lines(run, position, follow=False)] == [1]
    write(run, end="\n")
    assert [line["step"] for line in tracking.lines(run, position, follow=False)] == [2]


def test_following_ends_with_the_run_and_loses_no_line(run: Path) -> None:
    live = {"over": False, "host": os.uname().nodename, "pid": os.getpid()}
    (run / "live.json").write_text(json.dumps(live))
    write(run, 1)

    def later(_: float) -> None:
        write(run, 2)
        (run / "live.json").write_text(json.dumps({**live, "over": True}))

    position = tracking.Position.load(run, "t")
    read = tracking.lines(run, position, follow=True, sleep=later)
    assert [line["step"] for line in read] == [1, 2]


def test_a_run_whose_process_is_gone_is_over(run: Path) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    live = {"over": False, "host": os.uname().nodename, "pid": pid}
    (run / "live.json").write_text(json.dumps(live))
    assert tracking.is_over(run)


class FakeSession:
    def __init__(self) -> None:
        self.logged: list[dict[str, float]] = []
        self.summary: dict[str, float] = {}

    def define_metric(self, *_: Any, **__: Any) -> None:
        pass

    def log(self, metrics: dict[str, float]) -> None:
        self.logged.append(metrics)

    def finish(self) -> None:
        pass


def test_wandb_gets_each_update_once_under_one_run_id(run: Path, monkeypatch: Any) -> None:
    ids: list[str] = []
    session = FakeSession()
    fake = types.ModuleType("wandb")

    def init(**options: Any) -> FakeSession:
        ids.append(options["id"])
        return session

    fake.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", fake)
    write(run, 1, 2)
    assert wandb.main([str(run), "--once", "--aliases", "trl"]) == 0
    write(run, 3)
    assert wandb.main([str(run), "--once"]) == 0
    assert [m["step"] for m in session.logged] == [1, 2, 3]
    assert session.logged[0]["busy"] == 0.75
    assert len(ids[0]) == 8 and ids == [ids[0]] * 2


def test_trackio_gets_each_update_once_in_one_run_that_is_resumed(
    run: Path, monkeypatch: Any
) -> None:
    begun: list[dict[str, Any]] = []
    logged: list[tuple[int, dict[str, float]]] = []
    fake = types.ModuleType("trackio")
    fake.init = lambda **options: begun.append(options)  # type: ignore[attr-defined]
    fake.log = lambda metrics, step: logged.append((step, metrics))  # type: ignore[attr-defined]
    fake.finish = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trackio", fake)
    write(run, 1, 2)
    assert trackio.main([str(run), "--once", "--name", "mine", "--aliases", "verl"]) == 0
    write(run, 3)
    assert trackio.main([str(run), "--once"]) == 0
    assert [step for step, _ in logged] == [1, 2, 3]
    assert logged[0][1]["critic/score/mean"] == 0.5 and logged[0][1]["busy"] == 0.75
    assert "critic/score/mean" not in logged[2][1]
    assert [(b["name"], b["resume"]) for b in begun] == [("mine", "allow")] * 2


@pytest.mark.parametrize("tracker", [trackio, wandb])
def test_a_tracker_that_is_not_installed_is_named(
    run: Path, monkeypatch: Any, capsys: Any, tracker: Any
) -> None:
    name = tracker.__name__.rpartition(".")[2]
    monkeypatch.setitem(sys.modules, name, None)
    assert tracker.main([str(run), "--once"]) == 1
    assert f"pip install {name}" in capsys.readouterr().err


@pytest.mark.parametrize("tracker", [trackio, wandb])
def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: Any, tracker: Any) -> None:
    with pytest.raises(SystemExit) as stopped:
        tracker.main([str(tmp_path)])
    assert stopped.value.code == 1
    assert "holds no run" in capsys.readouterr().err
