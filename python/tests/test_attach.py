"""A worker that attaches: the slot that it requests, and how it finds its run."""

from __future__ import annotations

import pathlib
import time

import pytest

from temper import attach
from temper.credentials import Credentials, read
from temper.errors import OrchestratorGone, RoleError

KEY = """secret: s3
orchestrator_key: "head"
own:
  open: mine
  secret: hidden
run: this-run
name: worker
"""


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, "any"),
        ({"SLURM_PROCID": "3"}, "#3"),
        ({"RANK": "4", "WORLD_SIZE": "8", "SLURM_PROCID": "0"}, "#4"),
        ({"RANK": "4"}, "any"),
        ({"OMPI_COMM_WORLD_RANK": "5", "SLURM_PROCID": "0"}, "#5"),
        ({"JOB_COMPLETION_INDEX": "0"}, "#0"),
    ],
)
def test_the_place_is_the_rank_that_the_nearest_launcher_gave(
    variables: dict[str, str], place: str
) -> None:
    assert attach.place_of(None, None, None, variables) == place


def test_the_command_line_says_the_place_whoever_launched_it() -> None:
    slurm = {"SLURM_PROCID": "3"}
    assert attach.place_of("rollout-7", None, None, slurm) == "rollout-7"
    assert attach.place_of(None, "reward", None, slurm) == "reward"
    assert attach.place_of(None, None, 2, slurm) == "#2"


def test_a_rank_that_is_no_number_is_named() -> None:
    with pytest.raises(RoleError, match=r"SLURM_PROCID: expected a rank .*, found three"):
        attach.place_of(None, None, None, {"SLURM_PROCID": "three"})


def test_a_key_says_which_run_it_is_of(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "worker.key"
    file.write_text(KEY)
    file.chmod(0o600)
    key = read(file)
    assert (key.run, key.name, key.own_open) == ("this-run", "worker", "mine")


def finder(file: pathlib.Path) -> attach._Finder:
    return attach._Finder(str(file), Credentials(run="this-run", name="worker"))


def test_the_run_is_where_its_file_says(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "endpoint"
    file.write_text("endpoint: tcp://head:7000\nrun: this-run\nincarnation: 2\n")
    found = finder(file)
    assert found.find(time.monotonic())
    assert found.endpoint == "tcp://head:7000"
    assert found.is_there()
    file.write_text("endpoint: tcp://other:7000\nrun: this-run\nincarnation: 3\n")
    assert not found.is_there()


def test_a_run_that_has_ended_wants_nobody(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "endpoint"
    file.write_text('endpoint: ""\nrun: this-run\nincarnation: 2\n')
    assert not finder(file).find(time.monotonic())


def test_a_key_of_another_run_is_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "endpoint"
    file.write_text("endpoint: tcp://head:7000\nrun: that-run\nincarnation: 1\n")
    with pytest.raises(RoleError, match=r"the key worker belongs to run this-run, but .* belongs to run that-run"):
        finder(file).find(time.monotonic())


def test_patience_for_a_file_ends(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OrchestratorGone, match="did not appear in time"):
        finder(tmp_path / "endpoint").find(time.monotonic())
