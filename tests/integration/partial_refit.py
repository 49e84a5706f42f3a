"""An engine with a fault of real ones, one of its layers keeps the values of the first version, and a reward that is
easy to learn."""

from __future__ import annotations

import temper
import temper.torch
from temper.weights import Weights


class Engine(temper.torch.Engine):
    def load(self, version: int, weights: Weights) -> None:
        layer = self._model.get_submodule("model.layers.0")
        before = {name: value.clone() for name, value in layer.state_dict().items()}
        super().load(version, weights)
        if version:
            layer.load_state_dict(before)


class Reward(temper.Reward):
    """The share of even tokens."""

    def judge(self, samples: list[temper.Sample]) -> list[float]:
        return [float((sample.tokens % 2 == 0).mean()) if sample.tokens.size else 0.0 for sample in samples]
