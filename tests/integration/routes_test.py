"""Router replay: a tiny Qwen3-MoE whose engine computes in bfloat16 and whose trainer computes in float32."""

from __future__ import annotations

import numpy as np
import pytest
from runs import Run

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
