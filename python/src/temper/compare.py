"""`python -m temper.compare MODEL FOLDER`: what transformers computes for `temper model --compare`.

FOLDER has `request.json`: `{"sequences": [[id, ...], ...], "texts": [...], "chats": [[{"role": ...,
"content": ...}, ...], ...]}`. Writes to FOLDER:

- `started`, an empty file, when this module is imported,
- `logits.f32`: the logits after each token of each sequence, raw float32, little-endian,
- `answer.json`, last: versions, the class of the model, its vocabulary, the token ids of the texts
  without special tokens, and the rendered chats (null without a chat template).

The last line on stderr gives the reason for an exit code other than 0: 78 if a package is missing.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

from .errors import PERMANENT_EXIT, one_line

_PACKAGES = "'transformers>=4.56' 'torch>=2.6' safetensors jinja2"


def _write_logits(model: Any, torch: Any, sequences: list[list[int]], file: pathlib.Path) -> int:
    """Returns the number of logits of a position."""
    width = 0
    with file.open("wb") as out, torch.inference_mode():
        for ids in sequences:
            logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
            width = logits.shape[-1]
            out.write(logits.contiguous().numpy().astype("<f4").tobytes())
    return width


def _rendered(tokenizer: Any, chat: list[dict[str, str]]) -> dict[str, str]:
    try:
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template may raise anything
        return {"error": one_line(error)[:1000] or type(error).__name__}
    return {"text": text}


def _of_tokenizer(folder: str, texts: list[str], chats: list[Any]) -> dict[str, Any]:
    """Token ids of the texts and rendered chats, or why the tokenizer cannot be used."""
    if not texts:
        return {"tokenizer_error": "", "tokens": [], "chats": None}
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        tokens = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    except Exception as error:
        return {"tokenizer_error": one_line(error)[:1000]}
    template = getattr(tokenizer, "chat_template", None)
    rendered = [_rendered(tokenizer, chat) for chat in chats] if template else None
    return {"tokenizer_error": "", "tokens": tokens, "chats": rendered}


def compare(model_folder: str, folder: pathlib.Path) -> None:
    """Computes the request in `folder`. Raises ImportError without transformers or torch."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM

    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    model: Any = AutoModelForCausalLM.from_pretrained(
        model_folder, dtype=torch.float32, local_files_only=True, attn_implementation="eager"
    )
    model.eval()
    answer = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "architecture": type(model).__name__,
        "vocabulary": _write_logits(model, torch, request["sequences"], folder / "logits.f32"),
        **_of_tokenizer(model_folder, request["texts"], request["chats"]),
    }
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """The program. Returns the exit code."""
    model_folder, folder = arguments[0], pathlib.Path(arguments[1])
    (folder / "started").touch()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the folder is complete; nothing is downloaded
    try:
        compare(model_folder, folder)
    except ImportError as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        print(
            f"{sys.executable} cannot import the packages of the comparison ({reason[0]}); run "
            f"`{sys.executable} -m pip install {_PACKAGES}`, or set TEMPER_PYTHON to an interpreter "
            "that has them",
            file=sys.stderr,
        )
        return PERMANENT_EXIT
    except Exception as error:
        print(f"transformers cannot run {model_folder}: {one_line(error)[:2000]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
