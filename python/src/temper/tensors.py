"""Tensors that an engine attaches to a response.

The engine writes them into a store and the trainer reads them from it; only their description passes
through the orchestrator.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .activity import ActivityLog
from .errors import RoleError
from .messages import Tensor
from .stores import Busy, Store, StoreError, patiently
from .xxh3 import hash64


class TensorWriter:
    """Writes the tensors of an engine's responses.

    Args:
        store: The run's store; None if responses may have no tensors.
        engine: Name of the actor, the beginning of its tensors' names.
    """

    def __init__(self, store: Store | None, engine: str) -> None:
        self._store = store
        self._engine = engine
        self._written = 0
        if store is not None:
            store.forget(engine)

    def write(self, tensors: Mapping[str, Any]) -> list[Tensor]:
        """Writes arrays of numpy, or of torch in host memory. Waits for space.

        Raises:
            RoleError: The engine is on another host than the orchestrator, or these are no arrays.
            StoreError: The store cannot keep them, such as when its memory stays full.
        """
        if not isinstance(tensors, Mapping):
            raise RoleError(f"expected arrays by name, found {type(tensors).__name__}")
        if not tensors:
            return []
        if self._store is None:
            raise RoleError(
                "tensors need an engine on the orchestrator's host (transport.kind: ipc, and "
                "/dev/shm), or a server (payloads.store: redis)"
            )
        written: list[Tensor] = []
        try:
            for name, value in tensors.items():
                written.append(self._write(self._store, name, value))
        except Exception:
            for done in written:
                self._store.remove(done.file)
            raise
        return written

    def _write(self, store: Store, name: str, value: Any) -> Tensor:
        if not isinstance(name, str):
            raise RoleError(f"expected the name of a tensor, found {name!r}")
        try:
            # Not ascontiguousarray(), which makes a scalar a vector.
            array = np.asarray(value, order="C")
        except (TypeError, ValueError, RuntimeError) as error:
            raise RoleError(f'tensor "{name}": {error}') from error
        if array.dtype.hasobject:
            raise RoleError(
                f'tensor "{name}": expected numbers, found objects: {type(value).__name__}'
            )
        # The name of a type does not tell the order of its bytes.
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        self._written += 1
        file = f"{self._engine}.{os.getpid()}.{self._written}"
        data = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
        patiently(store, lambda: store.write(file, data))
        return Tensor(name, array.dtype.name, list(array.shape), array.nbytes, hash64(data), file)


@dataclasses.dataclass(slots=True)
class Reads:
    """Bytes that were read, and nanoseconds in which they were read."""

    fetched: int = 0
    fetching: int = 0


class TensorReader:
    """Reads the tensors of one batch.

    Args:
        store: The run's store; None if responses may have no tensors.
        activity: Counts what is read.
    """

    def __init__(self, store: Store | None, activity: ActivityLog) -> None:
        self._store = store
        self._activity: ActivityLog | None = activity
        self._of_batch: list[Tensor] = []
        self._reads = Reads()

    def __getstate__(self) -> dict[str, Any]:
        """For the other ranks of a trainer, which tell rank 0 what they read: only rank 0 reports."""
        return {**self.__dict__, "_activity": None, "_reads": Reads()}

    def add(self, described: Iterable[Tensor]) -> None:
        """The tensors of another response of the batch."""
        self._of_batch += described

    def read(self, t: Tensor) -> memoryview:
        """Returns the bytes. Waits for a store that does not answer.

        Raises:
            StoreError: It is gone or damaged. Then all others of the batch were looked at, so that
                the orchestrator finds none that is damaged, and the trainer ends once for all.
        """
        store = self._store
        if store is None:
            raise StoreError("this run has no store of tensors")
        begin = time.monotonic_ns()
        try:
            data = patiently(store, lambda: store.read(t.file, t.bytes, t.checksum))
        except Busy:
            raise
        except StoreError:
            for other in self._of_batch:
                with contextlib.suppress(StoreError):
                    store.read(other.file, other.bytes, other.checksum)
            raise
        passed = time.monotonic_ns() - begin
        self._reads = Reads(self._reads.fetched + t.bytes, self._reads.fetching + passed)
        if self._activity is not None:
            self._activity.count_tensors(fetched=t.bytes, fetching=passed)
        return data

    def take_reads(self) -> Reads:
        """Returns what this process has read since the last call."""
        taken, self._reads = self._reads, Reads()
        return taken

    def count_others(self, reads: Reads) -> None:
        """Adds the reads of other ranks to what the trainer reports. Without effect on these ranks."""
        if self._activity is not None:
            self._activity.count_tensors(fetched=reads.fetched, fetching=reads.fetching)


class Tensors(Mapping[str, np.ndarray[Any, Any]]):
    """The tensors of a response by name. Each is read when it is first used, and cannot be written.

    A pickled copy has no arrays: the process that unpickles it reads them from the store.

    Attributes:
        reader: Reads the tensors of the whole batch.
    """

    def __init__(self, described: list[Tensor], response: int, reader: TensorReader) -> None:
        self._described = {t.name: t for t in described}
        self._response = response
        self.reader = reader
        reader.add(described)
        self._read: dict[str, np.ndarray[Any, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": {}}

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)

    def __contains__(self, name: object) -> bool:
        return name in self._described  # Mapping's would read the array

    def described(self) -> Iterable[Tensor]:
        """Returns their names, types, shapes and places."""
        return self._described.values()

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        """Returns the array.

        Raises:
            KeyError: The response has no tensor of this name.
            RoleError: It is gone or damaged, or its store does not answer. Ends the trainer: the run
                rolls back to its last checkpoint and generates the response again.
        """
        if name not in self._read:
            t = self._described[name]
            try:
                data = self.reader.read(t)
            except StoreError as error:
                raise RoleError(f'response {self._response}: tensor "{t.name}": {error}') from None
            self._read[name] = np.frombuffer(data, np.dtype(t.dtype)).reshape(t.shape)
        return self._read[name]

    def release(self, name: str) -> None:
        """Frees the memory of an array that nobody uses any more; another use reads it again."""
        self._read.pop(name, None)
