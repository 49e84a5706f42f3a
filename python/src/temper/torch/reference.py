"""The reference: scores responses under the fixed base weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .. import roles
from ..roles import Memory, Scored, Scores
from .model import (
    bytes_of,
    choose_device,
    choose_dtype,
    model_folder,
    open_model,
    packed,
    release,
    top_logprobs,
    use_cores,
)


class Reference(roles.Reference):
    """A reference; its arguments are set by `with:` in the YAML.

    Args:
        model: Model folder; None: the run's.
        device: `cpu`, `cuda` or `cuda:1`; None: a GPU if there is one.
        dtype: `float32` or `bfloat16`; None: bfloat16 on a GPU, else float32.
        pass_tokens: Maximum number of padded tokens per forward pass.
    """

    def __init__(
        self,
        model: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        pass_tokens: int = 16384,
    ) -> None:
        use_cores(self.role)
        self._device = choose_device(device)
        self._dtype = choose_dtype(dtype, self._device)
        self._pass_tokens = pass_tokens
        self._model = open_model(model_folder(self.role, model), self._dtype, self._device)
        self._away = False
        self._top_k = self.role.settings.algorithm.distillation_top_k

    @torch.inference_mode()
    def score(self, items: list[Scored]) -> Sequence[Any]:
        pairs = [(item.prompt, item.response) for item in items]
        none = np.zeros((0, self._top_k))
        scores: list[Any] = [Scores(item.response[:0], none, none) for item in items]
        order = sorted(
            (i for i, pair in enumerate(pairs) if pair[1].size),
            key=lambda i: sum(map(len, pairs[i])),
        )
        for chosen in packed(pairs, order, self._pass_tokens):
            logprobs, ids = top_logprobs(
                self._model,
                [pairs[i] for i in chosen],
                self._top_k,
                self.role.settings.temperature,
                self._device,
            )
            for i, row, top in zip(chosen, logprobs.cpu().numpy(), ids.cpu().numpy()):
                size = pairs[i][1].size
                scores[i] = Scores(row[:size, 0], top[:size], row[:size, 1:])
        return scores

    def offload(self) -> None:
        self._model.to("cpu")
        release(self._device)
        self._away = True

    def onload(self) -> None:
        self._model.to(self._device)
        self._away = False

    def memory(self) -> Memory:
        held = bytes_of(self._model.parameters())
        return Memory(host=held) if self._away else Memory(device=held)
