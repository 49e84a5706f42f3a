"""A real llama.cpp server as the rollout of real runs, restarted with the GGUF of each version."""

from __future__ import annotations

import os
import re
import signal

import pytest
from environment import ROOT
from llamacpp_environment import LlamacppEnvironment
from runs import Run, canaries

CONFIG = """
name: served
steps: {steps}
task: {{kind: addition, digits: 1}}
model: {{hidden: 64, layers: 2, heads: 4, kv_heads: 2, ffn: 128, context: 32, rope_base: 100}}
pretrain: {{target_accuracy: 0.15, label_noise: 0.3}}
algorithm: {{groups_per_update: 16, responses_per_group: 8, minibatches: 1, learning_rate: 1e-3}}
reference: {{replicas: 0}}
sampling: {{temperature: 1.0, max_new_tokens: 4}}
placement: {{mode: separate, cards: 2}}
rollout:
  concurrency: 32
  engine: {{kind: llamacpp, start: "{start}"}}
staleness: {{bound: 2}}
checkpoint: {{every: 10}}
"""

START = "{python} {script} {{model}}/model.gguf --host {{host}} --port {{port}} --parallel 32 --ctx-size 1024"


@pytest.fixture(scope="module")
def config() -> str:
    """Makes the environment of TEMPER_LLAMACPP, else build/llamacpp: 140 MB, some seconds."""
    environment = LlamacppEnvironment()
    try:
        environment.make()
    except RuntimeError as reason:
        pytest.skip(f"llama.cpp's server is not here: {reason}")
    start = START.format(python=environment.python, script=ROOT / "tests/integration/llama_server.py")
    return CONFIG.replace("{start}", start).replace("{{", "{").replace("}}", "}")


def seconds_of(run: Run, phase: str) -> list[float]:
    text = (run.run_dir / "logs" / "rollout-0.log").read_text()
    return [float(x) / 1e3 for x in re.findall(rf"version committed .* {phase}=(\S+)ms", text)]


def quantiles(values: list[float]) -> str:
    ordered = sorted(values)
    of = [ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0, 0.5, 1)]
    return "least {:.2g}, median {:.2g}, most {:.2g}".format(*of)


@pytest.mark.timeout(900)
def test_a_run_over_llamacpp_learns_and_every_batch_has_the_trainers_log_probs(config, temper, tmp_path):
    # At bound 0 a batch is sampled from the weights that are trained next: their log-probs are the trainer's.
    with Run(temper, tmp_path, config.replace("{steps}", "40"), "staleness.bound=0") as run:
        run.finish(patience=600)
        run.assert_audit_is_clean()
        distances, metrics, loads = canaries(run), run.metrics(), seconds_of(run, "load")
    assert len(distances) >= 40 and len(metrics) == 40
    print(f"canary of {len(distances)} versions: {quantiles(distances)}")
    gaps = [line["log_ratio"] for line in metrics]
    print(f"|log-prob of the server - of the trainer|, mean of each of {len(gaps)} batches: {quantiles(gaps)}")
    print(f"seconds of a restart with new weights: {quantiles(loads)}")
    assert max(distances) < 1e-4 and max(gaps) < 1e-4
    made = [line["reward"] for line in metrics]
    first, last = sum(made[:10]) / 10, sum(made[-10:]) / 10
    print(f"reward: {first:.2f} in the first ten updates, {last:.2f} in the last ten")
    assert last > first + 0.1


@pytest.mark.timeout(900)
def test_log_probs_after_sampling_are_the_trainers_at_another_temperature(config, temper, tmp_path):
    other = ["staleness.bound=0", "sampling.temperature=0.8"]
    with Run(temper, tmp_path, config.replace("{steps}", "6"), *other) as run:
        run.finish(patience=300)
        run.assert_audit_is_clean()
        gaps = [line["log_ratio"] for line in run.metrics()]
    print(f"at temperature 0.8, mean of each of {len(gaps)} batches: {quantiles(gaps)}")
    assert len(gaps) == 6 and max(gaps) < 1e-4


@pytest.mark.timeout(900)
def test_the_same_server_as_any_that_is_openai_compatible(config, temper, tmp_path):
    # It is given a folder, and makes of it what it loads; its /v1/completions is all that is known of it.
    convert = f"{{python}} {ROOT / 'tests/integration/folder_to_gguf.py'} {{model}} {{model}}/own.gguf && exec "
    python = str(LlamacppEnvironment().python)
    other = config.replace("kind: llamacpp", "kind: openai").replace("model.gguf", "own.gguf")
    other = other.replace('start: "', 'start: "' + convert.replace("{python}", python)).replace("{steps}", "12")
    with Run(temper, tmp_path, other, "staleness.bound=0") as run:
        run.finish(patience=600)
        run.assert_audit_is_clean()
        distances, gaps = canaries(run), [line["log_ratio"] for line in run.metrics()]
    print(f"as openai: canary of {len(distances)} versions: {quantiles(distances)}; batches: {quantiles(gaps)}")
    assert len(gaps) == 12 and max(distances) < 1e-4 and max(gaps) < 1e-4


@pytest.mark.timeout(900)
def test_a_run_goes_on_after_its_llamacpp_was_killed_five_times(config, temper, tmp_path):
    with Run(temper, tmp_path, config.replace("{steps}", "24")) as run:
        for update in range(2, 12, 2):
            run.await_updates(update)
            said = (run.run_dir / "logs" / "rollout-0.server.log").read_text()
            try:
                os.kill(int(re.findall(r"listening on \d+ as (\d+)", said)[-1]), signal.SIGKILL)
            except ProcessLookupError:
                pass  # It is being started anew just now.
        run.finish(patience=300)
        run.assert_audit_is_clean()
        text = (run.run_dir / "logs" / "rollout-0.log").read_text()
        print(re.findall(r"server back .*", text), text.count("server away"))
