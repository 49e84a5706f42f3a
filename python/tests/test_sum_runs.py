"""Complete runs whose reward is a sum of verifiers. TEMPER has the path of `temper`; without it, they are skipped."""

from __future__ import annotations

import json
import pathlib
import threading
from collections.abc import Iterator

import pytest
from judge_server import JudgeServer
from test_run import NATIVE, TEMPER, WELL, Run

pytestmark = pytest.mark.skipif(not TEMPER, reason="TEMPER names no program to run")

JUDGE = """{{kind: judge, weight: 0.5, pool: 8, deadline: 20s, judge: {{url: "{url}", model: m, pattern: 'is (\\d+)',
  prompt: "expected: {{answer}}\\ngiven: {{response}}", highest: 10, input_price: 2}}}}"""


@pytest.fixture
def url() -> Iterator[str]:
    with JudgeServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def expect_terms(run: Run, weights: dict[str, float]) -> None:
    """Each line has the terms, and their sum is the reward."""
    for line in map(json.loads, run.metrics()):
        assert set(line["terms"]) == set(weights)
        total = sum(weight * line["terms"][name] for name, weight in weights.items())
        assert line["rewards"]["mean"] == pytest.approx(total, abs=3e-4)


def test_each_term_of_a_sum_is_shown(tmp_path: pathlib.Path, url: str) -> None:
    terms = (
        "{right: {kind: exact}, digits: {kind: regex, pattern: '^[0-9]*$', weight: 0.25}, "
        f"close: {JUDGE.format(url=url)}, "
        'brief: {kind: python, function: "reward_functions:length", weight: -0.125}}'
    )
    run = Run(tmp_path, verifier=f"{{kind: sum, terms: {terms}}}", **{**WELL, "reward": NATIVE})
    run.expect_whole()
    expect_terms(run, {"right": 1.0, "digits": 0.25, "close": 0.5, "brief": -0.125})
    lines = [json.loads(line) for line in run.metrics()]
    asked = [line["judge"] for line in lines]
    trained = 16 * len(lines)
    assert sum(a["requests"] + a["cached"] for a in asked) >= trained
    assert asked[-1]["cost"] == pytest.approx(
        2e-6 * sum(a["input_tokens"] for a in asked), abs=1e-6
    )
    judges = json.loads((run.run_dir / "summary.json").read_text())["judges"]
    assert judges["requests"] >= sum(a["requests"] for a in asked)
    report = run.temper("report").stdout
    assert "of them retries" in report
    assert "Reward of terms" in report


def test_a_sum_without_python_is_judged_by_the_worker(tmp_path: pathlib.Path) -> None:
    terms = "{right: {kind: exact}, digits: {kind: regex, pattern: '^[0-9]*$', weight: 0.25}}"
    run = Run(tmp_path, verifier=f"{{kind: sum, terms: {terms}}}", **{**WELL, "reward": NATIVE})
    run.expect_whole()
    expect_terms(run, {"right": 1.0, "digits": 0.25})


def test_a_judge_that_is_down_ends_the_run_with_its_address(tmp_path: pathlib.Path) -> None:
    verifier = JUDGE.format(url="http://127.0.0.1:1/v1").replace("weight: 0.5, ", "")
    run = Run(tmp_path, verifier=verifier.replace("20s", "1s"), **{**WELL, "reward": NATIVE})
    status, output = run.wait()
    assert status != 0
    assert "judge http://127.0.0.1:1/v1: ConnectionRefusedError" in output
