"""`python -m temper.check`: checks the Python names in a run's YAML."""

from __future__ import annotations

import json
import pathlib
import sys
import types

import pytest

from temper import check


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("reward_functions:right_answer", ""),
        ("reward_functions:os.path.join", ""),
        ("reward_functions:rigth_answer", "has no rigth_answer; did you mean right_answer?"),
        ("reward_functions:os.path.none", "reward_functions has no os.path.none"),
        ("reward_functions", "expected module:name"),
        (":right_answer", "expected module:name"),
        ("reward_functions:", "expected module:name"),
        ("no_module:f", "no module no_module in"),
        ("reward_functions.sub:f", "no module reward_functions.sub in"),
        ("reward_functions:__name__", "expected a function, found str"),
        ("not_importable_syntax:f", "SyntaxError"),
        ("not_importable_import:f", "No module named 'not_there_either'"),
        ("not_importable_exit:f", "SystemExit"),
        ("not_importable_raise:f", "ValueError: at import"),
    ],
)
def test_a_check_says_what_a_run_would(
    function: str, message: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "syntax": "def f(:\n",
        "import": "import not_there_either\n",
        "exit": "import sys\nsys.exit(0)\n",
        "raise": "raise ValueError('at import')\n",
    }.items():
        (tmp_path / f"not_importable_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    said = check.problem("function", "verifier.function", function)
    assert bool(said) == bool(message), said
    assert message in said


def test_a_role_has_to_be_a_class_of_its_kind(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report"
    check.main([str(report), "rollout", "rollout.engine.use", "temper:Engine",
                "trainer", "trainer.engine.use", "temper:Engine"])  # fmt: skip
    ready, good, bad = report.read_text().splitlines()
    assert ready == "ready"
    assert json.loads(good) == {"key": "rollout.engine.use", "message": ""}
    assert "expected a subclass of temper.Trainer" in json.loads(bad)["message"]


def test_a_store_needs_the_package_of_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    said = check.problem("store", "payloads.store", "redis")
    assert "needs the package `redis`" in said and "pip install" in said
    monkeypatch.setitem(sys.modules, "redis", types.ModuleType("redis"))
    assert check.problem("store", "payloads.store", "redis") == ""


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"score: (\d+)", ""),
        ("", ""),
        ("(", "not a regular expression"),
        ("(a)(b)", "at most one group"),
    ],
)
def test_the_pattern_of_a_judge_is_compiled(
    tmp_path: pathlib.Path, pattern: str, message: str
) -> None:
    report = tmp_path / "report"
    key = "verifier.terms.liked.judge.pattern"
    check.main([str(report), "pattern", key, pattern])
    said = json.loads(report.read_text().splitlines()[1])["message"]
    assert said.startswith(message) if message == "not a regular expression" else message in said
    assert bool(said) == bool(message)


def test_a_classifier_needs_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    said = check.problem("classifier", "verifier.kind", "folder")
    assert "needs torch and transformers" in said and "pip install torch transformers" in said
