"""Tensors that an engine attaches to a response, as files in shared memory.

The engine writes a file, the trainer maps it; only its description passes through the orchestrator.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .errors import RoleError
from .messages import Tensor
from .weights import map_file, write_all
from .xxh3 import hash64


class TensorWriter:
    """Writes the tensors of an engine's responses.

    Args:
        folder: The run's folder for tensors; empty if responses may have none.
        engine: Name of the actor, the beginning of its files' names.
    """

    def __init__(self, folder: str, engine: str) -> None:
        self.folder = folder
        self._engine = engine
        self._written = 0
        if folder:
            self._remove_abandoned()

    def _remove_abandoned(self) -> None:
        """Removes files of a predecessor that died before it announced them."""
        with contextlib.suppress(OSError):  # write() tells why there is no such folder
            for file in os.listdir(self.folder):
                if file.startswith(f"{self._engine}."):
                    os.unlink(pathlib.Path(self.folder, file))

    def write(self, tensors: Mapping[str, Any]) -> list[Tensor]:
        """Writes arrays of numpy, or of torch in host memory.

        Raises:
            RoleError: The engine is on another host than the orchestrator, or these are no arrays.
            OSError: A file cannot be written, such as when the memory is full.
        """
        if not isinstance(tensors, Mapping):
            raise RoleError(f"expected arrays by name, found {type(tensors).__name__}")
        if tensors and not self.folder:
            raise RoleError(
                "tensors need an engine on the orchestrator's host: transport.kind: ipc, and /dev/shm"
            )
        written: list[Tensor] = []
        try:
            for name, value in tensors.items():
                written.append(self._write(name, value))
        except Exception:
            for done in written:
                os.unlink(pathlib.Path(self.folder, done.file))
            raise
        return written

    def _write(self, name: str, value: Any) -> Tensor:
        if not isinstance(name, str):
            raise RoleError(f"expected the name of a tensor, found {name!r}")
        try:
            # Not ascontiguousarray(), which makes a scalar a vector.
            array = np.asarray(value, order="C")
        except (TypeError, ValueError, RuntimeError) as error:
            raise RoleError(f'tensor "{name}": {error}') from error
        if array.dtype.hasobject:
            raise RoleError(f'tensor "{name}": expected numbers, found objects: {type(value).__name__}')
        # The name of a type does not tell the order of its bytes.
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        self._written += 1
        file = f"{self._engine}.{os.getpid()}.{self._written}"
        path = pathlib.Path(self.folder, file)
        data = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        return Tensor(name, array.dtype.name, list(array.shape), array.nbytes, hash64(data), file)


class Tensors(Mapping[str, np.ndarray[Any, Any]]):
    """The tensors of a response by name. Each is mapped, read-only, when it is first used."""

    def __init__(self, described: list[Tensor], response: int) -> None:
        self._described = {t.name: t for t in described}
        self._response = response
        self._mapped: dict[str, np.ndarray[Any, Any]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)

    def described(self) -> Iterable[Tensor]:
        """Returns their names, types, shapes and files."""
        return self._described.values()

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        """Returns the array.

        Raises:
            KeyError: The response has no tensor of this name.
            RoleError: The file is gone or damaged. Ends the trainer: the run rolls back to its last
                checkpoint and generates the response again.
        """
        if name not in self._mapped:
            self._mapped[name] = self._map(self._described[name])
        return self._mapped[name]

    def _map(self, t: Tensor) -> np.ndarray[Any, Any]:
        what = f'response {self._response}: tensor "{t.name}" in {t.file}'
        try:
            data = map_file(t.file, t.bytes, t.checksum)
        except OSError as error:
            raise RoleError(f"{what}: {error.strerror}") from None
        except ValueError as error:
            raise RoleError(f"{what}: {error}") from None
        return np.frombuffer(data, np.dtype(t.dtype)).reshape(t.shape)
