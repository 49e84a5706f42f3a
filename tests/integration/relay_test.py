"""Weights over hosts of their own, on slow links: a relay that is lost, and the folder. How long they take when nothing
is lost is measured by bench/relay.py."""

from __future__ import annotations

import os
import signal
import statistics
from pathlib import Path

import pytest
from hosts import Run, unable
from publications import RELAY_TIMEOUT, Publications, predicted, run_of

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


def test_weights_in_a_folder_do_not_cross_the_links(temper: str, tmp_path: Path) -> None:
    with run_of(temper, tmp_path, 2, "folder") as (run, _):
        run.until(lambda: len(Publications(run).whole(2)) >= 2, "versions that both engines have")
        run.stop()
        run.is_whole(None)
        published = Publications(run)
        left = list((run.run_dir / "weights").iterdir())
    assert statistics.median(map(published.seconds, published.whole(2))) < predicted(temper, 1, "tree") / 2
    assert not left
