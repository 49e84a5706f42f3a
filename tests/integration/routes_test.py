"""Router replay: a tiny Qwen3-MoE whose engine computes in bfloat16 and whose trainer computes in float32."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch_parity_test as parity
from environment import ROOT
from runs import Run
from worker import InProcess

from temper import messages as m
from temper.balance import balanced
from temper.stores import ShmStore
from temper.tensors import TensorWriter

pytestmark = [pytest.mark.needs("torch", "transformers", "safetensors"), pytest.mark.timeout(900)]

CONFIG = """
name: routes
policy: synthetic
steps: 6
task: {kind: addition, digits: 1}
algorithm: {name: tis, groups_per_update: 8, responses_per_group: 4, kl: 0, learning_rate: 1e-3}
sampling: {max_new_tokens: 6}
placement: {mode: separate, cards: 2}
rollout: {concurrency: 16, engine: {kind: python, use: "temper.torch:Engine", with: {model: MODEL, dtype: bfloat16ENGINE}}}
trainer: {engine: {kind: python, use: "temper.torch:Trainer", with: {model: MODEL, dtype: float32TRAINER}}}
reference: {replicas: 0}
staleness: {bound: 0}
checkpoint: {every: 2}
deadlines: {start: 300s, generate: 120s}
transport: {heartbeat_timeout: 120s, max_restarts: 0}
"""
RECORD, REPLAY = ", record_routes: true", ", replay_routes: true"


def config(model, engine: str = "", trainer: str = "") -> str:
    return CONFIG.replace("MODEL", str(model)).replace("ENGINE", engine).replace("TRAINER", trainer)


def write_tiny_moe(folder, vocabulary: int) -> None:
    import torch
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(3)
    shape = Qwen3MoeConfig(
        vocab_size=vocabulary, hidden_size=32, intermediate_size=48, moe_intermediate_size=16, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, num_experts=16, num_experts_per_tok=4,
        norm_topk_prob=True, max_position_embeddings=32, tie_word_embeddings=False, eos_token_id=1, initializer_range=0.2)
    Qwen3MoeForCausalLM(shape).save_pretrained(folder)


@pytest.fixture(scope="module")
def tiny_moe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny-moe")
    write_tiny_moe(folder, 14)
    return folder


def mismatch(temper, folder, text: str) -> float:
    """Mean of |log importance ratio| of tokens that the version being updated sampled."""
    folder.mkdir()
    with Run(temper, folder, text) as run:
        run.finish()
        run.assert_audit_is_clean()
        steps = run.metrics()
        assert all(one["ratio"]["stale_tokens"] == 0 for one in steps)
        return float(np.mean([one["ratio"]["mismatch"] for one in steps]))


@pytest.fixture(scope="module")
def without_replay(temper, tmp_path_factory, tiny_moe) -> float:
    return mismatch(temper, tmp_path_factory.mktemp("runs") / "without", config(tiny_moe))


@pytest.mark.parametrize("more", ["", ", checkpointing: true, ranks: 2"])
def test_replay_lowers_the_mismatch_of_engine_and_trainer(more, temper, tmp_path, tiny_moe, without_replay):
    with_replay = mismatch(temper, tmp_path / "with", config(tiny_moe, RECORD, REPLAY + more))
    print(f"mean |log r| at equal versions: {without_replay:.4f} without replay, {with_replay:.4f} with it")
    assert with_replay < 0.7 * without_replay


@pytest.fixture(params=["shm", pytest.param("redis", marks=pytest.mark.needs("redis"))])
def store(request, tmp_path, monkeypatch) -> Iterator[list[str]]:
    """Settings of a store of tensors, with its server."""
    if request.param == "shm":
        yield []
        return
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "python/tests")])
    from redis_server import PASSWORD, RedisServer, make_folder, missing

    if why := missing():
        pytest.skip(why)
    monkeypatch.setenv("TEMPER_REDIS_PASSWORD", PASSWORD)
    server = RedisServer(make_folder(tmp_path / "redis"), PASSWORD)
    yield ["payloads.store=redis", f"payloads.redis=127.0.0.1:{server.port}"]
    server.kill()


def test_two_ranks_read_each_tensor_once(store, temper, tmp_path, tiny_moe):
    with Run(temper, tmp_path, config(tiny_moe, RECORD, REPLAY + ", ranks: 2"), *store) as run:
        run.finish()
        use = json.loads((run.run_dir / "summary.json").read_text())["tensors"]
        log = (run.run_dir / "logs/trainer.log").read_text()
    by_rank = [int(n) for n in log.partition("bytes of tensors read, by rank: ")[2].split("\n")[0].split(",")]
    # Bound 0: each response was trained, which is not possible without its tensor.
    assert use["fetched_bytes"] == use["stored_bytes"] == sum(by_rank), run.said()
    assert use["fetch_s"] > 0
    assert min(by_rank) > 0.45 * sum(by_rank), "balanced"


LOSING = """
import pathlib
import time

import temper.torch
from temper.balance import balanced
from temper.torch.update import split_minibatches

AHEAD = 2 * 16  # tensors of two batches


class Trainer(temper.torch.Trainer):
    def update(self, batch):
        mine = {tensor.file for row in batch for tensor in row.tensors.described()}
        folder = pathlib.Path(min(mine)).parent
        while batch.version <= 5 and len(set(map(str, folder.glob(".*"))) - mine) < AHEAD:
            time.sleep(0.001)
        lost = pathlib.Path(__file__).with_name("lost")
        if batch.version == 5 and not lost.exists():
            lost.touch()
            [rows] = split_minibatches([row.group for row in batch], 1, self.role.seed, batch.version)
            parts = balanced([batch.rows[i].prompt.size + batch.rows[i].response.size for i in rows], 2)
            [tensor] = batch.rows[rows[parts[1][0]]].tensors.described()
            pathlib.Path(tensor.file).unlink()
        return super().update(batch)
"""


def test_a_lost_tensor_of_another_rank_is_found_and_its_response_generated_again(temper, tmp_path, tiny_moe):
    (tmp_path / "losing.py").write_text(LOSING)
    text = config(tiny_moe, RECORD, REPLAY + ", ranks: 2").replace("groups_per_update: 8", "groups_per_update: 4")
    text = text.replace("max_restarts: 0", "max_restarts: 1").replace("bound: 0", "bound: 2")
    with Run(temper, tmp_path, text.replace("steps: 6", "steps: 8").replace("temper.torch:Trainer", "losing:Trainer")) as run:
        said = run.finish()
        assert (tmp_path / "lost").exists()
        # Not that rank 1 has ended: rank 0 ends with the same error.
        assert re.search(r'rolling back: trainer: response \d+: tensor "routes": .*: No such file', said), run.said()
        assert json.loads((run.run_dir / "summary.json").read_text())["groups"]["responses_lost"] > 0
        assert [one["step"] for one in run.metrics()] == list(range(1, 9))
        run.assert_audit_is_clean()


def batch_with_routes(step: int, folder: Path) -> m.Train:
    """A group of four responses and one of one response, with random routes in files."""
    work = parity.work_of(step)
    work.items, work.certificate.groups = work.items[:5], work.certificate.groups[:2]
    random = np.random.default_rng(step)
    writer = TensorWriter(ShmStore(str(folder), wait=0), "rollout-0")
    for number, item in enumerate(work.items):
        item.id = number
        tokens = item.prompt.size + item.response.size - 1
        routes = np.argsort(random.random((tokens, 4, 16)))[..., :4]
        item.tensors = writer.write({"routes": routes.astype(np.uint8)})
        item.tensors[0].file = str(folder / item.tensors[0].file)
    return work


def replaying(model, algorithm: m.AlgorithmConfig, folder: Path, ranks: int) -> InProcess:
    role = parity.trainer_role(model, algorithm, "temper.torch:Trainer", ranks=ranks, replay_routes="true")
    role.tensors = m.TensorPlace(folder=str(folder))
    return InProcess(role)


def test_three_ranks_make_the_update_that_one_makes_and_read_each_tensor_once(temper, tmp_path, tiny_moe):
    # Proximal log-probs of the second minibatch are computed first. One of the minibatches has one row, for three ranks.
    algorithm = parity.algorithm(m.AlgorithmName.DECOUPLED_PPO, temper)
    results = []
    for ranks in (1, 3):
        metrics, total = [], 0
        with replaying(tiny_moe, algorithm, tmp_path, ranks) as worker:
            worker.await_one(m.TrainerReady)
            for step in range(2):
                work = batch_with_routes(step, tmp_path)
                total += sum(item.tensors[0].bytes for item in work.items)
                worker.send(work)
                done = worker.await_one(m.Trained)
                metrics.append(done.metrics)
            results.append((metrics, dict(worker.weights(done.weights))))
            use = worker.await_one(m.Activity).usage.tensors
        assert use.fetched == total and use.fetching > 0
        for file in tmp_path.iterdir():
            file.unlink()
    (one, one_weights), (three, weights) = results
    for ours, theirs in zip(three, one):
        parity.assert_metrics_agree(ours, theirs)
    assert {k: d for k in weights if (d := parity.differ(weights[k], one_weights[k])) > parity.CLOSE} == {}


@pytest.mark.parametrize("rank", [0, 1])
def test_all_ranks_end_with_the_error_of_the_one_that_misses_a_tensor(rank, temper, tmp_path, tiny_moe):
    from temper.errors import RoleError
    from temper.torch.update import split_minibatches

    with replaying(tiny_moe, parity.algorithm(m.AlgorithmName.GRPO, temper, minibatches=1), tmp_path, 2) as worker:
        worker.await_one(m.TrainerReady)
        work = batch_with_routes(0, tmp_path)
        [rows] = split_minibatches([item.group for item in work.items], 1, 11, 0)
        parts = balanced([work.items[i].prompt.size + work.items[i].response.size for i in rows], 2)
        lost = work.items[rows[parts[rank][0]]]
        Path(lost.tensors[0].file).write_bytes(bytes(lost.tensors[0].bytes))
        with pytest.raises(RoleError, match=f'^response {lost.id}: tensor "routes": .*checksum'):
            worker.send(work)


def test_a_trainer_that_gets_no_routes_says_which_setting_is_missing(temper, tmp_path, tiny_moe):
    with Run(temper, tmp_path, config(tiny_moe, trainer=REPLAY)) as run:
        run.finish(status=1)
        assert "set record_routes in `rollout.engine.with`" in run.said()


def test_a_router_that_weights_its_experts_otherwise_is_refused():
    import torch
    from temper.errors import RoleError
    from temper.torch.routes import check_router

    class Router(torch.nn.Module):
        norm_topk_prob = True

    logits = torch.tensor([[2.0, 1.0, 0.0]])
    chosen = torch.tensor([[0, 1]])
    softmax = logits.softmax(-1)[:, :2]
    check_router(Router(), (logits, softmax / softmax.sum(), chosen))
    with pytest.raises(RoleError, match="Router does not weight its experts by the softmax"):
        check_router(Router(), (logits, logits.sigmoid()[:, :2], chosen))


def test_a_dense_model_has_no_routes(temper, tmp_path, tiny_llama):
    with Run(temper, tmp_path, config(tiny_llama, RECORD)) as run:
        run.finish(status=1)
        assert "routes: LlamaForCausalLM has no module of a class" in run.said()
