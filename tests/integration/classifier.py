"""A tiny sequence classifier over characters, trained to tell whether a text contains the digit 7.

    python3 tests/integration/classifier.py FOLDER [LABELS]     2 labels (`other`, `seven`), or 1: a value
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import tokenizers
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

CHARACTERS = "0123456789+="
LONGEST = 24


def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", *CHARACTERS])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", model_max_length=LONGEST)


def train(folder: Path, labels: int = 2, steps: int = 80) -> float:
    """Saves the classifier. Returns the share of texts that it judges rightly."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    draw = random.Random(1)
    tokens = tokenizer()
    names = {0: "other", 1: "seven"} if labels == 2 else {0: "value"}
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=LONGEST, id2label=names, label2id={n: i for i, n in names.items()}, pad_token_id=0,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    def batch():
        texts = ["".join(draw.choices(CHARACTERS, k=draw.randint(1, 8))) for _ in range(64)]
        return tokens(texts, padding=True, return_tensors="pt"), torch.tensor([int("7" in text) for text in texts])

    for _ in range(steps):
        inputs, right = batch()
        logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
        loss = (torch.nn.functional.cross_entropy(logits, right) if labels == 2
                else torch.nn.functional.mse_loss(logits[:, 0], right.float()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    inputs, right = batch()
    with torch.no_grad():
        logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
    found = logits.argmax(-1) if labels == 2 else (logits[:, 0] > 0.5).long()
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return float((found == right).float().mean())


if __name__ == "__main__":
    print(f"judges {train(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2):.0%} of texts rightly")
