"""Tensors of a batch on several ranks: each rank reads those of the rows that it trains, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch.distributed as dist

from ..errors import RoleError, one_line
from ..roles import Row
from ..tensors import Reads, TensorReader, Tensors

_Result = TypeVar("_Result")


def reader_of(rows: Sequence[Row]) -> TensorReader | None:
    """The reader of a batch, which all its rows share; None if none has tensors."""
    return next((row.tensors.reader for row in rows if isinstance(row.tensors, Tensors)), None)


def release(row: Row, name: str) -> None:
    """Frees the memory of a tensor that is no longer needed."""
    if isinstance(row.tensors, Tensors):
        row.tensors.release(name)


class RankReads:
    """Reads in step with the other ranks, and counts the bytes that each reads.

    Args:
        rank: This rank.
        world: Number of ranks.
    """

    def __init__(self, rank: int, world: int) -> None:
        self._rank, self._world = rank, world
        self.fetched = [0] * world  #: By rank, the bytes that it has read.

    def together(self, read: Callable[[], _Result], reader: TensorReader | None) -> _Result:
        """Returns the result of `read`, which reads the tensors of this rank's rows. A collective.

        Raises:
            RoleError: `read` failed on another rank. All ranks raise an exception then, so that none waits for one
                that has ended; ranks that did not fail themselves raise the error of the first that did.
        """
        if reader is not None:
            reader.take_reads()  # before this call, such as those of a subclass
        failure: Exception | None = None
        try:
            found = read()
        except Exception as error:
            failure = error
        own = Reads() if reader is None else reader.take_reads()
        told: list[Any] = [("" if failure is None else one_line(failure), own)]
        if self._world > 1:
            told = told * self._world
            dist.all_gather_object(told, told[self._rank])
        self._count([reads for _, reads in told], reader)
        if failure is not None:
            raise failure
        for said, _ in told:
            if said:
                raise RoleError(said)
        return found

    def _count(self, reads: list[Reads], reader: TensorReader | None) -> None:
        self.fetched = [a + b.fetched for a, b in zip(self.fetched, reads)]
        if self._rank == 0 and reader is not None:
            others = sum(r.fetched for r in reads[1:])
            # The ranks read at the same time, so the trainer waits for the slowest.
            longer = max(r.fetching for r in reads) - reads[0].fetching
            reader.count_others(Reads(others, longer))
