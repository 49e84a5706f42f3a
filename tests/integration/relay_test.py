"""Weights over hosts of their own, on slow links: a relay or a trainer that is lost, what passes the orchestrator's link, and
the folder. How long they take when nothing is lost is measured by bench/relay.py."""

from __future__ import annotations

import os
import signal
import statistics
from pathlib import Path

import pytest
from hosts import Run, unable
from publications import RELAY_TIMEOUT, TRAINED, Publications, predicted, run_of, run_with_trainer

pytestmark = pytest.mark.skipif(bool(unable()), reason=unable())


def in_the_middle(run: Run, engines: int) -> int:
    """The version that all engines are being sent, after one that all have."""
    run.until(lambda: Publications(run).whole(engines), "a version that all engines have")
    there = max(Publications(run).together(engines))
    run.until(lambda: max(Publications(run).together(engines)) > there, "the next version")
    run.wait(1.0)
    return max(Publications(run).together(engines))


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
    assert took < 3 * expected + RELAY_TIMEOUT, log


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


def test_weights_of_a_trainer_elsewhere_do_not_cross_the_orchestrators_link(temper: str, tmp_path: Path) -> None:
    with run_with_trainer(temper, tmp_path, 2) as (run, _, _trainer):
        run.until(lambda: len(Publications(run).whole(2)) >= 2, "versions that both engines have")
        run.stop()
        run.is_whole(None)
        assert "fetching weights from the trainer" not in run.log(), run.said()
        versions, (received, sent), (_, served) = len(Publications(run).staged), run.hosts.traffic(0), run.hosts.traffic(3)
    assert served >= versions * TRAINED, "the trainer's link carries each version"
    assert received < TRAINED / 8, f"the orchestrator received {received} bytes during {versions} versions"
    assert sent < TRAINED / 8, f"the orchestrator sent {sent} bytes during {versions} versions"


def test_engines_that_cannot_reach_the_trainer_get_its_weights_from_the_orchestrator(temper: str, tmp_path: Path) -> None:
    with run_with_trainer(temper, tmp_path, 2) as (run, _, _trainer):
        for engine in (1, 2):
            run.hosts.separate(engine, 3)
        run.until(lambda: Publications(run).whole(2), "a version that both engines have")
        run.stop()
        run.is_whole(None)
        log = run.log()
    assert "asks for weights that no other sends" in log
    assert "fetching weights from the trainer" in log


def test_engines_get_the_checkpoints_weights_after_a_trainer_is_killed_in_a_publication(temper: str, tmp_path: Path) -> None:
    with run_with_trainer(temper, tmp_path, 2, checkpoint=1) as (run, _, trainer):
        version = in_the_middle(run, 2)
        os.killpg(trainer.pid, signal.SIGKILL)
        run.trainer(3)
        run.until(lambda: run.events("resumed"), "the run to roll back")
        after = max(i for i, record in enumerate(run.records()) if "resumed" in record["event"])

        def staged() -> dict[int, list[int]]:
            """The versions that each engine has had since then, in order."""
            versions: dict[int, list[int]] = {}
            for record in run.records()[after:]:
                if (said := record["event"].get("weights_staged")) and not said["error"]:
                    versions.setdefault(said["actor"], []).append(said["version"])
            return versions

        run.until(lambda: len(staged()) == 2, "both engines to have weights again")
        saved = [said["checkpoint_saved"]["version"] for record in run.records()[:after] if "checkpoint_saved" in (said := record["event"])]
        assert [versions[0] for versions in staged().values()] == [max(saved)] * 2
        run.until(lambda: any(versions[-1] >= version for versions in staged().values()), "the lost version to be made again")
        run.stop()
        run.is_whole(None)


def test_weights_in_a_folder_do_not_cross_the_links(temper: str, tmp_path: Path) -> None:
    with run_of(temper, tmp_path, 2, "folder") as (run, _):
        run.until(lambda: len(Publications(run).whole(2)) >= 2, "versions that both engines have")
        run.stop()
        run.is_whole(None)
        published = Publications(run)
        left = list((run.run_dir / "weights").iterdir())
    assert statistics.median(map(published.seconds, published.whole(2))) < predicted(temper, 1, "tree") / 2
    assert not left
