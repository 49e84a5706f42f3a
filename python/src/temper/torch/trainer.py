"""A trainer: AdamW on a policy gradient loss for a model of `transformers`, on one or several ranks."""

from __future__ import annotations

import logging
import pathlib

from .. import roles
from ..roles import Batch, Memory
from .model import model_folder, use_cores
from .ranks import Ranks
from .update import Settings, Update

log = logging.getLogger("temper")


class Trainer(roles.Trainer):
    """A trainer; its arguments are set by `with:` in the YAML.

    Args:
        model: Model folder; None: the run's.
        device: `cpu`, `cuda` or `cuda:1`; None: a GPU if there is one.
        dtype: Data type of computations, `float32` or `bfloat16`; None: bfloat16 on a GPU, else float32. Trained
            weights and moments are always float32; with `model.lora`, the frozen weights have this type.
        checkpointing: Recompute activations in the backward pass.
        ranks: Number of processes that share weights, gradients and moments (FSDP2), including this one.
        rank_timeout: Seconds that a rank waits for another.
        replay_routes: Use the experts that the engine chose (`record_routes`), for mixture-of-experts models.
    """

    def __init__(
        self,
        model: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        checkpointing: bool = False,
        ranks: int = 1,
        rank_timeout: float = 600,
        replay_routes: bool = False,
    ) -> None:
        use_cores(self.role)
        settings = Settings(
            folder=model_folder(self.role, model),
            algorithm=self.role.settings.algorithm,
            temperature=self.role.settings.temperature,
            longest_response=self.role.settings.longest_response,
            seed=self.role.seed,
            lora=self.role.model.lora,
            base=self.role.model.path,
            device=device,
            dtype=dtype,
            checkpointing=checkpointing,
            replay_routes=replay_routes,
            cores=list(self.role.cards),
        )
        self._ranks = Ranks(ranks, rank_timeout, settings)
        self._update: Update = self._ranks.own

    def update(self, batch: Batch) -> dict[str, float]:
        return dict(self._ranks.call("run", batch.rows, batch.version))

    def publish(self) -> bytes:
        return bytes(self._ranks.call("image"))

    def save(self, folder: pathlib.Path) -> None:
        self._ranks.call("save", folder)

    def load(self, folder: pathlib.Path) -> None:
        self._ranks.call("load", folder)

    def offload(self) -> None:
        self._ranks.call("offload")

    def onload(self) -> None:
        self._ranks.call("onload")

    def memory(self) -> Memory:
        return self._update.memory()

    def close(self) -> None:
        fetched = self._update.reads.fetched
        if any(fetched):
            log.info("bytes of tensors read, by rank: %s", ", ".join(map(str, fetched)))
        self._ranks.close()
