"""The test environment: torch works without CUDA libraries and reports missing features."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from environment import ROOT, Environment, last_line
from run import Counts, counts_of

sys.path.insert(0, str(ROOT / "python/tools"))

torch_needed = pytest.mark.needs("torch")


@torch_needed
def test_torch_computes_and_differentiates_on_the_cpu():
    import torch

    x = torch.arange(4.0, requires_grad=True)
    (x @ x).backward()
    assert x.grad.tolist() == [0, 2, 4, 6]


@torch_needed
def test_torch_says_that_there_is_no_cuda_where_its_libraries_are_missing():
    code = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in ("True", "False")


@torch_needed
def test_pip_finds_every_requirement_of_the_packages_there():
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_a_package_that_cannot_be_had_is_named_and_the_others_are_there(tmp_path, monkeypatch):
    groups = {"base": [], "absent": ["no-such-package-of-temper"], "last": []}
    monkeypatch.setattr(Environment, "_pip", lambda self, wanted: self._run(
        [sys.executable, "-c", f"import sys; sys.exit('no package ' + ' '.join({wanted!r}) if {wanted!r} else 0)"]))
    made = Environment(tmp_path / "environment", groups)
    made.make()
    packages = made.packages()
    assert packages["base"] == packages["last"] == ""
    assert "no package no-such-package-of-temper" in packages["absent"]
    made.make()
    assert json.loads(made.report.read_text())["groups"] == packages


def test_a_package_that_was_fetched_and_does_not_work_is_broken_and_not_absent(tmp_path, monkeypatch):
    monkeypatch.setattr(Environment, "_pip", lambda self, wanted: None)
    made = Environment(tmp_path / "environment", {"base": [], "torch": ["torch"]})
    made.make()
    assert made.broken() == ["torch"]
    assert "torch_without_cuda" in made.packages()["torch"]


def test_libraries_of_another_machine_are_not_taken_for_ours(tmp_path, monkeypatch):
    import torch_without_cuda

    ours, other = tmp_path / "ours.so", tmp_path / "other.so"
    head = Path(sys.executable).resolve().read_bytes()[:20]
    ours.write_bytes(head)
    other.write_bytes(head[:4] + b"\x01" + head[5:])
    cache = f"2 libs\n\tlibx.so (libc6,x86-64) => {ours}\n\tlibx.so (libc6) => {other}\n"
    monkeypatch.setattr(subprocess, "run", lambda *words, **named: subprocess.CompletedProcess([], 0, cache))
    assert torch_without_cuda.system_libraries() == {"libx.so": ours}


def test_a_file_that_ends_without_a_report_is_one_failure(tmp_path):
    assert counts_of(tmp_path / "none.xml", 139) == Counts(0, 1, 0)
    assert counts_of(tmp_path / "none.xml", 124) == Counts(0, 1, 0)


def test_the_reason_is_the_last_line_that_has_words():
    assert last_line("a\n b \n\n") == "b"
    assert last_line("") == "no word"
