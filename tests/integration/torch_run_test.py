"""Complete runs with temper.torch in every role, also when a role dies or fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest
from environment import ROOT
from runs import Run

pytestmark = [pytest.mark.needs("torch", "transformers", "safetensors"), pytest.mark.timeout(900)]

CONFIG = """
name: torch
policy: synthetic
steps: STEPS
task: {kind: addition, digits: 1}
algorithm: {name: tis, groups_per_update: 4, responses_per_group: 4, minibatches: 2, kl: 0.01, learning_rate: 1e-3}
sampling: {max_new_tokens: 4}
placement: PLACEMENT
rollout: {concurrency: 16, engine: {kind: python, use: "ENGINE", with: {model: MODEL}}}
trainer: {engine: {kind: python, use: "TRAINER", with: {model: MODEL, ranks: RANKS}}}
reference: {engine: {kind: python, use: "temper.torch:Reference", with: {model: MODEL}}}
staleness: {bound: BOUND}
checkpoint: {every: 2}
deadlines: {start: 300s, generate: 120s}
transport: {heartbeat_timeout: 120s, max_restarts: RESTARTS}
"""


def config(model, reference: bool = True, **given: object) -> str:
    settings = {"MODEL": model, "STEPS": 12, "RANKS": 1, "RESTARTS": 3, "BOUND": 2, "ENGINE": "temper.torch:Engine",
                "TRAINER": "temper.torch:Trainer", "PLACEMENT": "{mode: separate, cards: 2}", **given}
    text = CONFIG if reference else re.sub("(?m)^reference:.*\n", "", CONFIG).replace("kl: 0.01", "kl: 0")
    for name, value in settings.items():
        text = text.replace(name, str(value))
    return text


def test_a_run_outlives_the_death_of_every_role_and_of_a_rank(temper, tmp_path, tiny_llama):
    with Run(temper, tmp_path, config(tiny_llama, STEPS=40, RANKS=2)) as run:
        for count, name in enumerate(("rollout-0", "trainer-rank-1", "reference-0", "trainer")):
            run.await_updates(1 + 2 * count)
            pids = run.pids_of(name)
            assert pids, f"no process {name}:\n{run.said()}"
            os.kill(pids[0], signal.SIGKILL)
        run.finish()
        metrics = run.metrics()
        assert [one["step"] for one in metrics] == list(range(1, 41))
        assert max(one["staleness"]["max"] for one in metrics) <= 2
        run.assert_audit_is_clean()
        assert "rank 1 ended with signal 9" in run.said()


def test_roles_that_share_one_card_take_turns(temper, tmp_path, tiny_llama):
    with Run(temper, tmp_path, config(tiny_llama, STEPS=6, PLACEMENT="{mode: colocated, cards: 1}")) as run:
        run.finish()
        assert len(run.metrics()) == 6
        run.assert_audit_is_clean()


#: The built-in roles, with a policy of their own and a teacher of another shape.
NATIVE = """
name: top-tokens
steps: STEPS
task: {kind: addition, digits: 1}
model: {hidden: 16, layers: 1, heads: 2, kv_heads: 2, ffn: 24, context: 16}
pretrain: {target_accuracy: 0.15}
algorithm: {name: tis, groups_per_update: 4, responses_per_group: 4, minibatches: 2, kl: 0.01, learning_rate: 1e-3}
sampling: {max_new_tokens: 4}
placement: {mode: separate, cards: 2}
rollout: {concurrency: 16}
reference: {model: MODEL}
staleness: {bound: 2}
checkpoint: {every: 2}
"""


@pytest.mark.parametrize("kind", ["native", "python"])
def test_the_top_tokens_of_a_teacher_outlive_deaths_and_a_resume(kind, temper, tmp_path, tiny_llama):
    text = (config(tiny_llama, STEPS=100_000) if kind == "python"
            else NATIVE.replace("MODEL", str(tiny_llama)).replace("STEPS", "100000"))
    sets = [f"algorithm.{key}" for key in ("name=opd", "kl=0", "distillation_top_k=4")]
    with Run(temper, tmp_path, text, *sets) as run:
        for count, name in enumerate(("reference-0", "trainer")):
            run.await_updates(2 + 3 * count)
            os.kill(run.pids_of(name)[0], signal.SIGKILL)
        run.stop(after=10)
        refused = subprocess.run([temper, "run", "--resume", str(run.run_dir), "--plain", "--set", "algorithm.distillation_top_k=3"],
                                 capture_output=True, text=True, timeout=60)
        assert refused.returncode != 0 and "scored under this setting" in refused.stderr + refused.stdout
        # The trainer refuses responses without these tokens: those that were scored before the stop have them still.
        steps = run.updates() + 10
        resumed = subprocess.run([temper, "run", "--resume", str(run.run_dir), "--plain", "--set", f"steps={steps}"],
                                 capture_output=True, text=True, timeout=300,
                                 env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")})
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr + run.said()
        metrics = run.metrics()
        assert [one["step"] for one in metrics] == list(range(1, steps + 1))
        assert all(one["groups"]["failed"] == 0 for one in metrics), run.said()
        run.assert_audit_is_clean()


ILL = """
import numpy as np
import torch

import temper.torch


class NanWeights(temper.torch.Trainer):
    def update(self, batch):
        metrics = super().update(batch)
        with torch.no_grad():
            next(iter(self._update._parameters.values())).fill_(float("nan"))
        return metrics


class WrongShape(temper.torch.Trainer):
    def publish(self):
        return {"model.embed_tokens.weight": np.zeros((2, 2), np.float32)}


class Diverges(temper.torch.Trainer):
    def __init__(self, **given):
        super().__init__(**given)
        for group in self._update._optimizer.param_groups:
            group["lr"] = float("inf")


class Hangs(temper.torch.Engine):
    def generate(self, requests):
        import time
        time.sleep(600)
        yield None


class TooMany(temper.torch.Engine):
    def generate(self, requests):
        for done in super().generate(requests):
            yield done
            if done is not None:
                yield done
"""


@pytest.mark.parametrize(("role", "ill", "why"), [
    ("TRAINER", "NanWeights", "logits are not finite"),
    ("TRAINER", "WrongShape", "tensor"),
    ("TRAINER", "Diverges", "not both finite"),
    ("ENGINE", "TooMany", "answered response"),
])
def test_what_goes_wrong_in_a_role_is_named_and_trains_nothing_further(role, ill, why, temper, tmp_path, tiny_llama):
    (tmp_path / "ill.py").write_text(ILL)
    # Bound 0: no second batch waits for a trainer whose weights are ill, so the engine is the first to see them.
    given = config(tiny_llama, reference=False, RESTARTS=0, BOUND=0, **{role: f"ill:{ill}"})
    with Run(temper, tmp_path, given) as run:
        said = run.finish(status=1)
        assert why in said, run.said()
        assert run.updates() <= (1 if ill == "NanWeights" else 0)


def test_an_engine_that_hangs_is_replaced_when_its_deadline_is_over(temper, tmp_path, tiny_llama):
    (tmp_path / "ill.py").write_text(ILL)
    given = config(tiny_llama, reference=False, RESTARTS=0, ENGINE="ill:Hangs").replace("generate: 120s", "generate: 5s")
    with Run(temper, tmp_path, given) as run:
        said = run.finish(status=1)
        assert "rollout-0 was lost" in said and "within 5s (deadlines.generate)" in said, run.said()
        assert run.updates() == 0
