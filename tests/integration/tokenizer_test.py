"""Our byte-level BPE beside the library `tokenizers`: tokenizers trained here on text of the tree, with the expressions
and normal forms of published models, over a corpus of many scripts and of what is awkward."""

from __future__ import annotations

import json
import random
import subprocess
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from conftest import TEMPER
from environment import ROOT

from temper import messages as m
from temper.roles import Role

pytestmark = pytest.mark.needs("tokenizers")

PROBE = Path(TEMPER).parents[1] / "tests/actors/tokenizer_probe"

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KINDS = {"qwen": (QWEN, True, False), "llama3": (LLAMA3, False, True), "gpt4o": (GPT4O, False, False), "gpt2": (None, False, False)}

SENTENCES = [
    "The quick brown fox doesn't jump; it's 12345 + 67,890 = 80235!", "I'LL we'Ve YOU'RE 'sneaky' o'clock", "a\tb\n\n  c\r\nd  \n",
    "Größe, naïve café, Ångström, Łódź", "Съешь же ещё этих мягких французских булок", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "快速的棕色狐狸跳过了懒狗。你好，世界！", "いろはにほへと ちりぬるを カタカナ", "다람쥐 헌 쳇바퀴에 타고파", "ऋषियों को सताने वाले", "نص حكيم له سر قاطع", "דג סקרן שט בים",
    "😀👩‍👩‍👧‍👦🇩🇪 emoji ✓ → ∑ √2 ½ ² Ⅷ ٣ ३", "\u00a0nbsp\u2003em\u3000ideographic\u0085nel\u000bvt\u2028ls", "e\u0301 \u1e9b\u0323 \uac00 \u1100\u1161 \u212b \u2126",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|", "x<|im_end|><|im_end|>y", "", " ", "   ", "\n", "def f(x):\n    return x ** 2  # ok\n",
    "ſ'ſ K'K ﬁ", "a" * 300, " " * 257, "\n" * 40, "ab " * 100, "{\"json\": [1, 2, {\"k\": null}]}", "https://example.org/a?b=c&d=%20e#f",
]


def corpus() -> list[str]:
    """Those sentences, the documents of the tree by their lines, and random characters of every plane in use."""
    texts = list(SENTENCES)
    for file in sorted((ROOT / "docs").glob("*.md"))[:12]:
        text = file.read_text()
        texts += [text[:4000], *text.splitlines()[:60]]
    draw = random.Random(7)
    letters = [chr(c) for c in range(0x20, 0x20000) if unicodedata.category(chr(c)) not in ("Cs", "Cn", "Co")]
    texts += ["".join(draw.choices(letters, k=draw.randint(1, 40))) for _ in range(400)]
    common = list("aàáäeéiIsS'  \n\t.,!09½√ßक한漢字😀\u0301\u0308\u200d\u00a0")
    texts += ["".join(draw.choices(common, k=draw.randint(1, 60))) for _ in range(800)]
    return texts


def make_tokenizer(kind: str):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    pattern, nfc, whole_first = KINDS[kind]
    made = Tokenizer(models.BPE(ignore_merges=whole_first))
    if nfc:
        made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True) if pattern is None else (
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=2500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator([*SENTENCES, *(f.read_text() for f in sorted((ROOT / "docs").glob("*.md")))], trainer)
    made.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<|im_start|>", "<|im_end|>")])
    made.add_tokens([AddedToken("<think>", normalized=False, special=False)])
    return made


def ask(folder: Path, **what) -> dict:
    asked = json.dumps({"tokenizer": str(folder / "tokenizer.json"), "texts": [], "ids": [], **what})
    done = subprocess.run([PROBE], input=asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_those_of_the_library(kind, tmp_path):
    theirs = make_tokenizer(kind)
    theirs.save(str(tmp_path / "tokenizer.json"))
    texts = corpus()
    tokens = 0
    for text, ours in zip(texts, ask(tmp_path, texts=texts)["texts"]):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.get("ids") == ids, (text, ours)
        assert ours["text"] == theirs.decode(ids, skip_special_tokens=True), text
        tokens += len(ids)
    print(f"{kind}: {len(texts)} texts, {tokens} tokens")


def test_a_character_cut_in_two_decodes_as_the_library_does(tmp_path):
    theirs = make_tokenizer("qwen")
    theirs.save(str(tmp_path / "tokenizer.json"))
    # Of a text, the tokens up to every place, also inside of characters: what an engine stopped by its limit leaves.
    ids = theirs.encode("漢字😀é ﬁ नि", add_special_tokens=False).ids
    prefixes = [ids[:n] for n in range(len(ids) + 1)] + [ids[n:] for n in range(len(ids))]
    decoded = [theirs.decode(prefix) for prefix in prefixes]
    assert any("\ufffd" in text for text in decoded), "no prefix cuts a character"
    assert ask(tmp_path, ids=prefixes)["ids"] == decoded


def test_a_role_in_python_reads_and_writes_text_as_ours_does(tmp_path):
    theirs = make_tokenizer("llama3")
    theirs.save(str(tmp_path / "tokenizer.json"))
    end = theirs.token_to_id("<|im_end|>")
    told = m.Welcome()
    told.role.kind = m.RoleKind.REWARD
    told.role.vocabulary = m.Vocabulary(size=theirs.get_vocab_size(), folder=str(tmp_path), end=end,
                                        ends=np.array([end], np.int32))
    role = Role(told, "reward-0")
    ours = ask(tmp_path, texts=SENTENCES)["texts"]
    for text, said in zip(SENTENCES, ours):
        ids = role.encode(text).tolist()
        assert ids == said["ids"], text
        assert role.decode(ids, to_end=False) == said["text"]
    assert role.decode([*role.encode("1 + 1"), end, *role.encode("?")]) == "1 + 1"
