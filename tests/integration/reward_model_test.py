"""`verifier.kind: model`: a sequence classifier of transformers as the reward."""

from __future__ import annotations

import json

import numpy as np
import pytest
from environment import ROOT
from runs import Run

pytestmark = [pytest.mark.needs("torch", "transformers", "tokenizers"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    import classifier

    made = {labels: tmp_path_factory.mktemp(f"labels-{labels}") for labels in (1, 2)}
    for labels, folder in made.items():
        assert classifier.train(folder, labels) > 0.9
    return made


def samples(*texts):
    import temper

    return [temper.Sample("1+6=", "7", text, np.array([2], np.int32), {}) for text in texts]


def classifier_of(folder, **keys):
    from temper.classifier import Classifier
    from temper.messages import ClassifierConfig

    return Classifier(ClassifierConfig(path=str(folder), **{"text": "{response}", **keys}))


def test_the_reward_is_the_probability_of_the_label(folders):
    seven, other = classifier_of(folders[2], label="seven"), classifier_of(folders[2], label="other")
    texts = samples("7", "8", "1727", "0")
    rewards = seven.judge(texts)
    assert rewards[0] > 0.5 > rewards[1] and rewards[2] > 0.5 > rewards[3]
    assert np.allclose(np.add(rewards, other.judge(texts)), 1)


def test_a_classifier_with_one_output_gives_its_value(folders):
    rewards = classifier_of(folders[1]).judge(samples("7", "8"))
    assert rewards[0] > 0.5 > rewards[1]


def test_padding_and_order_do_not_change_a_reward(folders):
    texts = ["7", "12345678", "0", "17", "999"]
    together = classifier_of(folders[2], label="seven", batch=3).judge(samples(*texts))
    alone = [classifier_of(folders[2], label="seven").judge(samples(text))[0] for text in texts]
    assert np.allclose(together, alone, atol=1e-5)


def test_an_input_that_is_too_long_fails_alone(folders):
    first, second = classifier_of(folders[2], label="seven").judge(samples("7" * 30, "7"))
    assert "the input has 30 tokens, but the classifier takes at most 24" in str(first)
    assert second > 0.5


def test_an_unknown_label_and_folder_are_named(folders, tmp_path):
    from temper.errors import RoleError

    with pytest.raises(RoleError, match='label "eight": expected one of "other", "seven"'):
        classifier_of(folders[2], label="eight")
    with pytest.raises(RoleError, match="model folder .*nothing"):
        classifier_of(tmp_path / "nothing")


CONFIG = """
name: reward-model
extends: {quickstart}
steps: 30
algorithm: {{groups_per_update: 8, responses_per_group: 8, minibatches: 1, kl: 0, learning_rate: 1e-3}}
model: {{hidden: 32, layers: 1, heads: 2, kv_heads: 1, ffn: 64}}
pretrain: {{target_accuracy: 0.02}}
task: {{digits: 1}}
checkpoint: {{every: 15}}
verifier: {{kind: sum, terms: {{
  seven: {{kind: model, model: {{path: {folder}, label: seven, text: "{{response}}"}}}},
  digits: {{kind: regex, pattern: '^[0-9]*$', weight: 0.1}}}}}}
"""


def test_a_run_learns_what_the_classifier_rewards(temper, tmp_path, folders):
    config = CONFIG.format(quickstart=ROOT / "configs/quickstart.yaml", folder=folders[2])
    with Run(temper, tmp_path, config) as run:
        run.finish()
        seven = [line["terms"]["seven"] for line in run.metrics()]
        assert np.mean(seven[-5:]) > np.mean(seven[:5]) + 0.2
        run.assert_audit_is_clean()
        samples = [json.loads(line) for line in (run.run_dir / "samples.jsonl").read_text().splitlines()]
        judged = [s for s in samples if s["reward"] is not None]
        assert judged
        for sample in judged:
            parts = sample["rewards"]
            assert sample["reward"] == pytest.approx(parts["seven"] + 0.1 * parts["digits"])
