"""`verifier.kind: judge` against a real server with a real language model: llama.cpp with SmolLM2-135M-Instruct. It is a
poor judge: what counts is that every request is one that the server accepts, and that what it says costs no step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llamacpp_environment import LlamacppEnvironment, free_port
from runs import Run

pytestmark = pytest.mark.timeout(900)

CONFIG = """
name: judged
steps: 24
task: {kind: addition, digits: 1}
model: {hidden: 64, layers: 2, heads: 4, kv_heads: 2, ffn: 128, context: 32, rope_base: 100}
pretrain: {target_accuracy: 0.15, label_noise: 0.3}
algorithm: {groups_per_update: 4, responses_per_group: 4, minibatches: 1, learning_rate: 1e-3, failure_limit: 100}
reference: {replicas: 0}
sampling: {temperature: 1.0, max_new_tokens: 4}
placement: {mode: separate, cards: 2}
staleness: {bound: 1}
verifier:
  kind: judge
  pool: 8
  deadline: 60s
  judge:
    url: URL/v1
    model: smollm2
    prompt: |
      Expected answer: {answer}
      Given answer: {response}
      Rate the given answer from 0 to 10. Reply with the number only.
    highest: 10
    max_tokens: 24
    input_price: 1
    output_price: 10
"""
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}}, "required": ["score"]}
FORMAT = {"response_format": {"type": "json_schema", "json_schema": {"name": "score", "schema": SCHEMA}}}
SHAPED = f"    field: score\n    extra_body: '{json.dumps(FORMAT)}'\n"
SERVER = ("--parallel", "8", "--ctx-size", "8192")
FREE = "    pattern: '\\b(10|[0-9])\\b'\n    temperature: 0.7\n"


@pytest.fixture(scope="module")
def environment() -> LlamacppEnvironment:
    """Makes the environment of TEMPER_LLAMACPP, else build/llamacpp, and the model: 230 MB."""
    made = LlamacppEnvironment()
    try:
        made.make()
        made.smollm2()
    except RuntimeError as reason:
        pytest.skip(f"llama.cpp's server or SmolLM2 is not here: {reason}")
    return made


def figures_of(run: Run) -> dict[str, float]:
    """Of a run that is over: the work of the judge, sums over the steps."""
    run.assert_audit_is_clean()
    lines = run.metrics()
    assert len(lines) == 24
    figures = {name: sum(line["judge"][name] for line in lines) for name in lines[0]["judge"]}
    figures["cost"] = lines[-1]["judge"]["cost"]  # since the start
    figures["failed"] = sum(line["groups"]["failed"] for line in lines)
    rewards = [line["reward"] for line in lines]
    figures["lowest"], figures["highest"] = min(rewards), max(rewards)
    print(", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    return figures


def judged(environment: LlamacppEnvironment, temper: str, folder: Path, more: str) -> dict[str, float]:
    server = environment.server(environment.smollm2(), folder / "server.log", *SERVER)
    with server as url, Run(temper, folder, CONFIG.replace("URL", url) + more) as run:
        run.finish(patience=800)
        return figures_of(run)


def test_every_answer_that_a_schema_shapes_is_a_score(environment, temper, tmp_path):
    figures = judged(environment, temper, tmp_path, SHAPED)
    assert figures["requests"] > 0 and figures["retries"] == figures["failed"] == 0
    tokens = figures["input_tokens"] + 10 * figures["output_tokens"]
    assert figures["cost"] == pytest.approx(tokens / 1e6, rel=1e-3)


def test_an_answer_in_free_text_that_has_no_score_is_asked_for_again(environment, temper, tmp_path):
    figures = judged(environment, temper, tmp_path, FREE)
    assert figures["requests"] > figures["retries"] > 0


def test_a_server_that_is_away_for_a_while_costs_no_response(environment, temper, tmp_path):
    model, port = environment.smollm2(), free_port()
    away = CONFIG.replace("URL", f"http://127.0.0.1:{port}") + SHAPED + "    attempts: 100\n"
    with environment.server(model, tmp_path / "first.log", *SERVER, port=port):
        run = Run(temper, tmp_path, away)
        run.await_updates(4)
    with run, environment.server(model, tmp_path / "second.log", *SERVER, port=port):
        run.finish(patience=800)
        figures = figures_of(run)
    assert figures["retries"] > 0 and figures["failed"] == 0
