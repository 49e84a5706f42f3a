"""Whole runs of a real policy over servers that misbehave: the stories that public trackers tell. The servers are
fakes (tests/support/fake_server.py) with the real network behind them; the trainer is ours."""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from pathlib import Path

import pytest
from environment import ROOT
from runs import Run

CONFIG = """
name: misserved
steps: {steps}
task: {{kind: addition, digits: 1}}
model: {{hidden: 32, layers: 2, heads: 2, kv_heads: 1, ffn: 64, context: 16, rope_base: 100}}
pretrain: {{target_accuracy: 0.15, label_noise: 0.3}}
algorithm: {{groups_per_update: 8, responses_per_group: 4, minibatches: 1, learning_rate: 1e-3}}
reference: {{replicas: 0}}
sampling: {{temperature: 1.0, max_new_tokens: 4}}
rollout:
  replicas: 2
  concurrency: 32
  engine: {{kind: {kind}, start: "{python} {fake} --kind {kind} --network --model {{model}} --host {{host}} --port {{port}}"}}
staleness: {{bound: {bound}}}
"""

#: Of a run that is stopped once the test has seen what it wants.
ENDLESS = 100_000

#: At bound 0 a batch is sampled from the weights that are trained next, so the mean distance of its log-probs to the
#: trainer's is that of float32 by another order of sums. One update at these settings moves it by a hundred times as much.
EQUAL = 1e-5


def config(kind: str, steps: int, bound: int = 0) -> str:
    return CONFIG.format(kind=kind, steps=steps, bound=bound, python=sys.executable,
                         fake=ROOT / "tests/support/fake_server.py")


def log_of(run: Run, actor: str) -> str:
    return (run.run_dir / "logs" / f"{actor}.log").read_text()


def ask(run: Run, actor: str, body: dict | None = None) -> dict:
    """What the server of this actor says of itself, or to this."""
    said = Path(run.run_dir / "logs" / f"{actor}.server.log").read_text()
    port = re.findall(r"listening on (\d+)", said)[-1]
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/fake", data), timeout=30) as answer:
        return json.loads(answer.read())


def tell(run: Run, actor: str, **faults: int) -> None:
    """The server of this actor misbehaves from now on, each way so many times."""
    ask(run, actor, {"faults": faults})


def expect_only_true_tokens(run: Run, at_least: int) -> None:
    run.assert_audit_is_clean()
    gaps = [line["log_ratio"] for line in run.metrics()]
    assert len(gaps) >= at_least
    assert max(gaps) < EQUAL, gaps


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_log_probs_of_old_weights_would_be_seen(temper, tmp_path, kind):
    """What the tests below rest on: weights that are an update old are far outside of EQUAL."""
    with Run(temper, tmp_path, config(kind, steps=12, bound=2)) as run:
        run.finish()
        run.assert_audit_is_clean()
        assert max(line["log_ratio"] for line in run.metrics()) > 20 * EQUAL


#: story -> how the server misbehaves, how often, and what our log says of it
STORIES = {
    "an update that is not delivered to one of two servers": ({"not_applied": 2}, "not the trained weights"),
    "a version that rises although its load failed": ({"load_fails": 2}, "out of memory"),
    "a pause that does not stop admission": ({"admits_during_pause": 5}, ""),
    "weights of which half are applied": ({"half_applied": 2}, "not the trained weights"),
    "a resume that fails": ({"resume_fails": 3}, ""),
}


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
@pytest.mark.parametrize("story", STORIES)
def test_no_token_of_other_weights_is_trained(temper, tmp_path, kind, story):
    faults, said = STORIES[story]
    with Run(temper, tmp_path, config(kind, steps=ENDLESS)) as run:
        for update in (3, 8):
            run.await_updates(update)
            tell(run, "rollout-1", **faults)
        run.stop(after=16)
        expect_only_true_tokens(run, 16)
        if said:
            assert said in log_of(run, "rollout-1"), log_of(run, "rollout-1")
            assert said not in log_of(run, "rollout-0")


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_a_server_that_never_takes_an_update_is_replaced(temper, tmp_path, kind):
    with Run(temper, tmp_path, config(kind, steps=ENDLESS)) as run:
        run.await_updates(3)
        tell(run, "rollout-1", not_applied=-1)
        run.stop(after=16)
        expect_only_true_tokens(run, 16)
        assert "not the trained weights" in run.said()


@pytest.mark.parametrize("mode", ["colocated", "hybrid"])
@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_servers_share_their_cards_with_the_trainer(temper, tmp_path, kind, mode):
    sharing = (f"placement.mode={mode}", "placement.lending=always")
    with Run(temper, tmp_path, config(kind, steps=ENDLESS), *sharing) as run:
        run.await_updates(8)
        logs = (run.run_dir / "logs").glob("*.server.log")
        states = [ask(run, file.name.removesuffix(".server.log")) for file in sorted(logs)]
        run.stop(after=12)
        expect_only_true_tokens(run, 12)
    asleep, awake = ({"vllm": ("/sleep", "/wake_up"),
                      "sglang": ("/release_memory_occupation", "/resume_memory_occupation")})[kind]
    assert all(state["begun_without_memory"] == 0 for state in states)
    turns = 7 if mode == "colocated" else 2  # hybrid: only while the trainer has nothing to do
    assert max(state["calls"].count(asleep) for state in states) >= turns
    assert max(state["calls"].count(awake) for state in states) >= turns


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_an_update_that_is_not_delivered_to_a_sleeping_server_is_not_trained_on(temper, tmp_path, kind):
    with Run(temper, tmp_path, config(kind, steps=ENDLESS), "placement.mode=colocated") as run:
        run.await_updates(4)
        tell(run, "rollout-1", not_applied=1)
        run.stop(after=12)
        expect_only_true_tokens(run, 12)
        assert "not the trained weights" in run.said()


LORA = ("model.lora={rank: 4, alpha: 8}", "algorithm.learning_rate=1e-2")


def with_adapters(kind: str, steps: int) -> str:
    return config(kind, steps).replace("--network", "--network --enable-lora --max-lora-rank 4")


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_a_server_takes_fifty_adapters_and_gives_only_true_tokens(temper, tmp_path, kind):
    with Run(temper, tmp_path, with_adapters(kind, ENDLESS), "rollout.replicas=1", *LORA) as run:
        run.await_updates(52)
        state = ask(run, "rollout-0")
        run.stop(after=52)
        expect_only_true_tokens(run, 52)
    assert sum(call.endswith("/load_lora_adapter") for call in state["calls"]) >= 50
    assert len(state["adapters"]) <= 2, "older versions were unloaded"


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
@pytest.mark.parametrize("fault", ["not_applied", "half_applied", "load_fails"])
def test_no_token_of_another_adapter_is_trained(temper, tmp_path, kind, fault):
    with Run(temper, tmp_path, with_adapters(kind, ENDLESS), *LORA) as run:
        for update in (3, 8):
            run.await_updates(update)
            tell(run, "rollout-1", **{fault: 2})
        run.stop(after=16)
        expect_only_true_tokens(run, 16)
        said = "out of memory" if fault == "load_fails" else "not the trained weights"
        assert said in log_of(run, "rollout-1"), log_of(run, "rollout-1")


#: How a server that does not name its weights, and is not started anew with each version, is told to load it.
RELOAD = """'POST /reload {"path": "{model}"}'"""


def unnamed(steps: int, flags: str, reload: bool = False) -> str:
    text = config("openai", steps).replace("--network", f"--network {flags}")
    return text.replace("kind: openai,", f"kind: openai, reload: {RELOAD},") if reload else text


@pytest.mark.parametrize("style", ["prompt_logprobs", "echo", "logit_bias"])
@pytest.mark.parametrize("reload", [False, True], ids=["restarted", "reloaded"])
def test_an_openai_compatible_server_gives_only_true_tokens(temper, tmp_path, style, reload):
    with Run(temper, tmp_path, unnamed(10, f"--style {style}", reload)) as run:
        run.finish()
        expect_only_true_tokens(run, 10)


def test_a_reload_that_does_nothing_is_seen_before_a_token_is_trained(temper, tmp_path):
    with Run(temper, tmp_path, unnamed(ENDLESS, "--style prompt_logprobs", reload=True)) as run:
        for update in (3, 7):
            run.await_updates(update)
            tell(run, "rollout-1", not_applied=2)
        run.stop(after=12)
        expect_only_true_tokens(run, 12)
        assert "not the trained weights" in log_of(run, "rollout-1")
        assert "not the trained weights" not in log_of(run, "rollout-0")


@pytest.mark.parametrize("fault, said", [
    ("no_token_ids", "the response has no token ids"),
    ("no_scores", "none of three ways"),
    ("adds_bos", "it must not add tokens"),
])
def test_a_server_that_cannot_be_exact_is_refused_with_the_reason(temper, tmp_path, fault, said):
    with Run(temper, tmp_path, unnamed(4, f"--fault {fault}")) as run:
        run.finish(status=1)
        assert said in run.said()
