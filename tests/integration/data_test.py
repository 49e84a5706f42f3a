"""temper.data against the packages that write its input files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import Run

from temper import data

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}\n"
    "    {%- if message.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('a role') }}{% endif %}\n"
    "<|{{ message.role }}|>{{ message.content | trim }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% if not thinking %}<think></think>{% endif %}{% endif %}"
)
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " What is 2 + 2? \u00fc\u20ac"}]
ROWS = [{"messages": [*CHAT, {"role": "assistant", "content": "4"}], "level": 3, "tags": ["a", None]},
        {"messages": [CHAT[1], {"role": "assistant", "content": "four"}], "level": None, "tags": []}]


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory) -> Path:
    """A tokenizer of some merges, with special tokens and a chat template, as transformers saves it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
    tokenizer.train_from_iterator([json.dumps(ROWS)] * 4, trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    folder = tmp_path_factory.mktemp("chat-model")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="<|end|>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return folder


def converted(out: Path) -> list[dict]:
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.needs("pyarrow", "tokenizers", "transformers")
def test_the_chat_template_and_its_tokens_are_those_of_transformers(chat_model, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from transformers import AutoTokenizer

    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    words = [str(tmp_path / "rows.parquet"), str(tmp_path / "out.jsonl"), "--model", str(chat_model), "--tokens"]
    tokenizer = AutoTokenizer.from_pretrained(chat_model)
    for more, thinking in (([], False), (["--template", "thinking=true"], True)):
        assert data.main(words + more) == 0
        for row, source in zip(converted(tmp_path / "out.jsonl"), ROWS, strict=True):
            messages = source["messages"][:-1]
            text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, thinking=thinking)
            assert row["prompt"] == text
            assert row["prompt_token_ids"] == tokenizer(text, add_special_tokens=False)["input_ids"]
            assert row["answer"] == source["messages"][-1]["content"]
            assert (row["level"], row["tags"], row["messages"]) == (source["level"], source["tags"], messages)


@pytest.mark.needs("pyarrow", "tokenizers", "transformers")
def test_prompts_that_are_too_long_are_left_out_and_counted(chat_model, tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text(json.dumps({"prompt": "short", "answer": "a"}) + "\n"
                                       + json.dumps({"prompt": "long " * 50, "answer": "b"}) + "\n")
    words = [str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), "--model", str(chat_model), "--longest", "20"]
    assert data.main(words) == 0
    assert "1 rows" in (said := capsys.readouterr().out) and "1 with too long prompts" in said


@pytest.mark.needs("datasets", "pyarrow")
def test_a_folder_that_datasets_saved_is_read_by_split(tmp_path):
    from datasets import Dataset, DatasetDict

    train = Dataset.from_list([{"question": f"{i}+1", "answer": f"so #### {i + 1}"} for i in range(5)])
    DatasetDict({"train": train, "test": train.select([0])}).save_to_disk(tmp_path / "set")
    for split, size in (("train", 5), ("test", 1)):
        assert data.main([str(tmp_path / "set"), str(tmp_path / "out.jsonl"), "--split", split, "--after", "####"]) == 0
        rows = converted(tmp_path / "out.jsonl")
        assert len(rows) == size and rows[0] == {"prompt": "0+1", "answer": "1"}
    train.save_to_disk(tmp_path / "one")
    assert data.main([str(tmp_path / "one"), str(tmp_path / "out.jsonl")]) == 0
    assert len(converted(tmp_path / "out.jsonl")) == 5


@pytest.mark.needs("reasoning_gym")
def test_right_answers_of_reasoning_gym_are_judged_right_by_its_own_scorers(tmp_path):
    from temper.reasoning_gym import score

    rows = []
    for task in ("chain_sum", "gcd", "letter_counting", "spell_backward", "countdown"):
        assert data.main([f"reasoning_gym:{task}", str(tmp_path / "out.jsonl"), "--size", "5", "--seed", "7"]) == 0
        rows += converted(tmp_path / "out.jsonl")
    columns = {name: [row[name] for row in rows] for name in ("answer", "task", "metadata")}
    prompts = [row["prompt"] for row in rows]
    assert score(prompts=prompts, completions=columns["answer"], **columns) == [1.0] * 25
    assert max(score(prompts=prompts, completions=["no answer"] * 25, **columns)) < 0.5


@pytest.mark.needs("reasoning_gym")
def test_a_task_that_is_not_there_is_refused(tmp_path, capsys):
    assert data.main(["reasoning_gym:none", str(tmp_path / "out.jsonl")]) == 1
    assert "reasoning_gym:none" in capsys.readouterr().err


REASONING = """
name: reasoning-gym
steps: 120
task: {kind: jsonl, path: sums.jsonl, held_out: 0}
model: {hidden: 64, layers: 2, heads: 4, kv_heads: 2, ffn: 128, context: 96, rope_base: 1000}
pretrain: {target_accuracy: 0.25, label_noise: 0.4, max_steps: 2000}
verifier: {kind: python, function: "temper.reasoning_gym:score", pool: 1, deadline: 30s}
algorithm: {groups_per_update: 16, responses_per_group: 8, minibatches: 1, learning_rate: 1e-3}
sampling: {max_new_tokens: 4}
placement: {mode: separate, cards: 2}
rollout: {concurrency: 128}
staleness: {bound: 1}
deadlines: {start: 300s}
"""


@pytest.mark.needs("reasoning_gym")
@pytest.mark.timeout(900)
def test_a_reasoning_gym_task_is_learned_from_its_own_scorers(temper, tmp_path):
    words = ["--size", "200", "--set", "min_terms=2", "--set", "max_terms=2", "--set", "max_digits=1", "--set",
             "min_digits=1"]
    assert data.main(["reasoning_gym:chain_sum", str(tmp_path / "sums.jsonl"), *words]) == 0
    with Run(temper, tmp_path, REASONING) as run:
        run.finish()
        rewards = [one["reward"] for one in run.metrics()]
        first, last = sum(rewards[:10]) / 10, sum(rewards[-10:]) / 10
        assert last > first + 0.25, (first, last)
        run.assert_audit_is_clean()
