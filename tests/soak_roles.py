"""Roles with tensors for the soak: those of the tests of the SDK, whose trainer also counts what it reads."""
import pathlib

from well import TensorEngine, TensorTrainer

__all__ = ["CountingTrainer", "TensorEngine"]


class CountingTrainer(TensorTrainer):
    """Fails unless each response has the tensors of its own tokens. Appends a line to a file for each tensor that it
    reads: its place and its bytes."""

    def __init__(self, reads):
        super().__init__()
        self.reads = pathlib.Path(reads)

    def update(self, batch):
        with self.reads.open("a") as file:
            file.writelines(f"{t.file} {t.bytes}\n" for row in batch for t in row.tensors.described())
        return super().update(batch)
