"""A sequence classifier of transformers as a verifier: `verifier.kind: model`."""

from __future__ import annotations

import math
import os
from typing import Any

from .errors import RoleError
from .fill import fill
from .messages import ClassifierConfig, TemplateKind
from .roles import Sample

_PACKAGES = ("torch", "transformers")
#: Larger values of `model_max_length` mean that the tokenizer knows no limit.
_NO_LIMIT = 1 << 30


def import_packages() -> tuple[Any, Any]:
    """Returns torch and transformers.

    Raises:
        RoleError: One of them is missing.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the folder is complete; nothing is downloaded
    try:
        import torch
        import transformers
    except ImportError as error:
        raise RoleError(
            f"`kind: model` needs {' and '.join(_PACKAGES)}: {error}; install them with "
            f"`pip install {' '.join(_PACKAGES)}`, or set TEMPER_PYTHON or reward.engine.python to "
            "an interpreter that has them"
        ) from None
    return torch, transformers


class Classifier:
    """Scores responses with `AutoModelForSequenceClassification`.

    Args:
        config: The folder, the label, and the input.
        name: Name of the verifier in errors.
    """

    def __init__(self, config: ClassifierConfig, name: str = "model") -> None:
        self._torch, transformers = import_packages()
        transformers.logging.disable_progress_bar()  # a worker's output is a log
        self._config = config
        self._name = name
        gpu = self._torch.cuda.is_available()
        self._device = self._torch.device(config.device or ("cuda" if gpu else "cpu"))
        dtype = "auto" if self._device.type == "cuda" else self._torch.float32
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                config.path, local_files_only=True
            )
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                config.path, dtype=dtype, local_files_only=True
            )
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            raise RoleError(f"{name}: model folder {config.path}: {error}") from error
        self._model = model.to(self._device).eval()
        self._label = self._find_label()
        self._longest = self._find_longest()
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.unk_token
        if model.config.pad_token_id is None:
            model.config.pad_token_id = self._tokenizer.pad_token_id

    def judge(self, samples: list[Sample]) -> list[float | Exception]:
        """Returns a reward per response, or why it failed."""
        rewards: list[float | Exception] = [RoleError(f"{self._name}: not judged") for _ in samples]
        inputs: list[tuple[int, list[int]]] = []
        for i, sample in enumerate(samples):
            try:
                inputs.append((i, self._tokens(sample)))
            except RoleError as error:
                rewards[i] = error
        inputs.sort(key=lambda item: len(item[1]))  # equal lengths need no padding
        for begin in range(0, len(inputs), self._config.batch):
            batch = inputs[begin : begin + self._config.batch]
            for (i, _), reward in zip(batch, self._scores([tokens for _, tokens in batch])):
                rewards[i] = (
                    reward
                    if math.isfinite(reward)
                    else RoleError(f"{self._name}: the classifier's output is {reward}")
                )
        return rewards

    def _find_label(self) -> int | None:
        """Index of the label, or None if the only output is the reward."""
        names: dict[int, str] = self._model.config.id2label
        label = self._config.label
        if not label and len(names) == 1:
            return None
        for index, name in names.items():
            if str(name) == label:
                return int(index)
        known = ", ".join(f'"{name}"' for name in names.values())
        raise RoleError(f'{self._name}: model.label "{label}": expected one of {known}')

    def _find_longest(self) -> int:
        limits = [
            getattr(self._model.config, "max_position_embeddings", None),
            self._tokenizer.model_max_length,
        ]
        return int(min([n for n in limits if n and n < _NO_LIMIT], default=_NO_LIMIT))

    def _tokens(self, sample: Sample) -> list[int]:
        if self._config.template == TemplateKind.CHAT:
            chat = sample.columns.get("messages") or [{"role": "user", "content": sample.prompt}]
            text = self._tokenizer.apply_chat_template(
                [*chat, {"role": "assistant", "content": sample.response}], tokenize=False
            )
            tokens = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            tokens = self._tokenizer(fill(self._config.text, sample, "model.text"))["input_ids"]
        if not tokens:
            raise RoleError(f"{self._name}: the input of the classifier has no token")
        if len(tokens) > self._longest:
            raise RoleError(
                f"{self._name}: the input has {len(tokens)} tokens, but the classifier takes at most "
                f"{self._longest}"
            )
        return list(tokens)

    def _scores(self, batch: list[list[int]]) -> list[float]:
        torch = self._torch
        longest = max(len(tokens) for tokens in batch)
        pad = self._model.config.pad_token_id or 0
        ids = torch.full((len(batch), longest), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = 1
        with torch.inference_mode():
            outputs = self._model(
                input_ids=ids.to(self._device), attention_mask=mask.to(self._device)
            ).logits.float()
        if self._label is not None:
            outputs = outputs.softmax(-1)
        scores: list[float] = outputs[:, self._label or 0].tolist()
        return scores
