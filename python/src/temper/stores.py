"""Where the bytes of tensors are: files in shared memory, or Redis servers.

To add a store, implement `Store` here, and the interface of orchestrator/run/tensor_store.hpp for the
orchestrator.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import ssl
import time
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .errors import RoleError
from .messages import TensorPlace, TensorServer
from .weights import map_file, write_all
from .xxh3 import hash64

#: Bytes of a value in Redis, whose limit is 512 MB, as in orchestrator/run/redis_tensors.hpp.
CHUNK = 1 << 20

#: Seconds between two attempts.
_PAUSE = 0.05

_Result = TypeVar("_Result")


class StoreError(Exception):
    """The store cannot keep an array, or has it no longer."""


class Busy(StoreError):
    """The store has no space, or does not answer. Another attempt may succeed."""


class Store(ABC):
    """A cache of arrays. A reader verifies what it reads, so a store need not be reliable.

    Attributes:
        where: Its place, for messages.
        wait: Seconds to repeat an operation that is `Busy`.
    """

    where: str
    wait: float

    @abstractmethod
    def write(self, name: str, data: memoryview) -> None:
        """Writes an array under a name that no other has. It appears as a whole or not at all.

        Raises:
            StoreError: It cannot be written; nothing is left of it.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes an array that this process wrote and nobody knows of."""

    @abstractmethod
    def read(self, file: str, size: int, checksum: int) -> memoryview:
        """Returns an array by the name that the orchestrator gave it, read-only.

        Raises:
            StoreError: It is gone or damaged. Then the orchestrator will not find it either.
        """

    @abstractmethod
    def forget(self, engine: str) -> None:
        """Removes what a predecessor of this engine wrote and did not announce."""


def patiently(store: Store, attempt: Callable[[], _Result]) -> _Result:
    """Repeats an operation that is `Busy` until it succeeds or `store.wait` has passed."""
    begin = time.monotonic()
    while True:
        try:
            return attempt()
        except Busy as busy:
            if time.monotonic() - begin >= store.wait:
                raise Busy(f"{busy}, for {store.wait:g} s (payloads.wait)") from None
        time.sleep(_PAUSE)


class ShmStore(Store):
    """Files in a folder in shared memory."""

    def __init__(self, folder: str, wait: float) -> None:
        self.where = folder
        self.wait = wait

    def write(self, name: str, data: memoryview) -> None:
        path = pathlib.Path(self.where, name)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                write_all(fd, data)
            except OSError:
                os.unlink(path)
                raise
            finally:
                os.close(fd)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)
            raise (Busy if full else StoreError)(f"{self.where}: {error.strerror}") from None

    def remove(self, name: str) -> None:
        os.unlink(pathlib.Path(self.where, name))

    def read(self, file: str, size: int, checksum: int) -> memoryview:
        try:
            return map_file(file, size, checksum)
        except OSError as error:
            raise StoreError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise StoreError(f"{file}: {error}") from None

    def forget(self, engine: str) -> None:
        with contextlib.suppress(OSError):  # write() tells why there is no such folder
            for file in os.listdir(self.where):
                if file.startswith(f"{engine}."):
                    os.unlink(pathlib.Path(self.where, file))


def import_redis() -> types.ModuleType:
    """The package `redis`, which only the store of that name needs."""
    try:
        import redis
    except ImportError:
        raise RoleError(
            "payloads.store: redis needs the package `redis` in this interpreter: "
            "pip install 'redis[hiredis]>=4.3', or Debian's python3-redis"
        ) from None
    return redis


class RedisStore(Store):
    """Hashes in Redis servers: fields 0, 1, ... of a key are chunks of an array.

    The hash of a key chooses its server. Every write sets the time to live, so that a key never outlives a killed run by more.
    """

    def __init__(self, place: TensorPlace) -> None:
        self._place = place
        self._redis = import_redis()
        self._prefix = place.prefix
        self._lease = place.lease // 10**9
        self._tls = place.tls
        self.wait = place.wait / 1e9
        self._servers = [self._client_of(server, place) for server in place.servers]
        self.where = ", ".join(where for where, _ in self._servers)

    def __reduce__(self) -> tuple[Any, ...]:
        """For a process with a copy of a batch, which opens connections of its own. Has the password."""
        return _copy_of_redis, (self._place,)

    def _client_of(self, server: TensorServer, place: TensorPlace) -> tuple[str, Any]:
        """The server's address, for messages, and its client, which connects when it is used."""
        redis = self._redis
        tls: dict[str, Any] = {
            "connection_class": redis.SSLConnection,  # requires a valid certificate
            "ssl_check_hostname": True,
            "ssl_ca_data": place.ca_certificates or None,
        }
        pool = redis.ConnectionPool(
            **(tls if place.tls else {}),
            host=server.host,
            port=server.port,
            password=place.password or None,
            socket_connect_timeout=5,
            socket_timeout=10,
            socket_keepalive=True,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),  # patiently() repeats it
        )
        # With the package hiredis, redis also lets it pack commands, which copies each chunk twice.
        if serializer := getattr(redis.connection, "PythonRespSerializer", None):  # since redis 5
            encode = pool.get_encoder().encode
            pool.connection_kwargs["command_packer"] = serializer(CHUNK // 2, encode)
        where = f"{'rediss://' if place.tls else ''}{server.host}:{server.port}"
        return where, redis.Redis(connection_pool=pool)

    def _at(self, key: str) -> tuple[str, Any]:
        """As in orchestrator/run/redis_tensors.cpp."""
        return self._servers[hash64(key.encode()) % len(self._servers)]

    def write(self, name: str, data: memoryview) -> None:
        key = self._prefix + name
        where, server = self._at(key)
        try:
            for number, begin in enumerate(range(0, max(1, data.nbytes), CHUNK)):
                # With each chunk: the key may have been evicted after the one before.
                with server.pipeline(transaction=True) as both:
                    both.hset(key, str(number), data[begin : begin + CHUNK])
                    both.expire(key, self._lease)
                    both.execute()
        except self._redis.RedisError as error:
            with contextlib.suppress(self._redis.RedisError):
                server.unlink(key)
            raise self._understood(where, error) from None

    def remove(self, name: str) -> None:
        with contextlib.suppress(self._redis.RedisError):  # it expires
            key = self._prefix + name
            self._at(key)[1].unlink(key)

    def read(self, file: str, size: int, checksum: int) -> memoryview:
        data = np.empty(size, np.uint8)
        where, server = self._at(file)
        try:
            for number, begin in enumerate(range(0, max(1, size), CHUNK)):
                chunk: Any = server.hget(file, str(number))
                if chunk is None:
                    raise StoreError(f"{where}: the server has no key {file}")
                part = data[begin : begin + CHUNK]
                if len(chunk) != part.size:
                    raise self._damaged(
                        file, f"expected {part.size} bytes in chunk {number}, found {len(chunk)}"
                    )
                part[:] = np.frombuffer(chunk, np.uint8)
            if hash64(data.data) != checksum:
                raise self._damaged(file, "the checksum differs from the announced one")
        except self._redis.RedisError as error:
            raise self._understood(where, error) from None
        data.flags.writeable = False
        return data.data

    def forget(self, engine: str) -> None:
        pass  # it expires

    def _damaged(self, key: str, what: str) -> StoreError:
        where, server = self._at(key)
        server.unlink(key)  # the orchestrator looks only whether it is there
        return StoreError(f"{where}: key {key}: {what}")

    def _understood(self, where: str, error: Exception) -> Exception:
        r = self._redis.exceptions
        cause = error.__cause__ or error.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            return RoleError(
                f"{where}: expected a valid certificate for the host, found: "
                f"{cause.verify_message}; correct payloads.redis, or name the CA certificate that "
                "signed it in payloads.redis_ca"
            )
        # A pipeline puts the command in front of the server's words.
        text = str(error).rpartition("of pipeline caused error: ")[2].strip().rstrip(".")
        if isinstance(error, (r.AuthenticationError, r.NoPermissionError)):
            return RoleError(
                f"{where}: expected a Redis server that admits this run, found: {text}; check "
                "TEMPER_REDIS_PASSWORD of the orchestrator"
            )
        if isinstance(error, (r.ConnectionError, r.TimeoutError)):
            what = "a Redis server with TLS" if self._tls else "a Redis server"
            return Busy(f"{where}: expected {what} (payloads.redis), found: {text}")
        if "used memory" in text:
            return Busy(f"{where}: expected memory for a tensor, found: {text}")
        return StoreError(f"{where}: {text}")


#: Those that copies of batches use in this process: one connection serves all batches.
_copies: list[tuple[TensorPlace, RedisStore]] = []


def _copy_of_redis(place: TensorPlace) -> RedisStore:
    for known, store in _copies:
        if known == place:
            return store
    _copies.append((place, RedisStore(place)))
    return _copies[-1][1]


def open_store(place: TensorPlace) -> Store | None:
    """Returns the store of the run; None if responses may have no tensors."""
    if place.servers:
        return RedisStore(place)
    return ShmStore(place.folder, place.wait / 1e9) if place.folder else None
