"""Tensors in a Redis server: what an engine writes, and what a trainer reads. Skipped without redis-server."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from redis_server import PASSWORD, RedisServer, make_folder, missing

from temper.activity import ActivityLog
from temper.errors import RoleError
from temper.messages import Tensor, TensorPlace, TensorServer
from temper.stores import CHUNK, Busy, RedisStore, StoreError
from temper.tensors import TensorReader, Tensors, TensorWriter
from temper.xxh3 import hash64

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path, PASSWORD)
    yield made
    made.kill()


@pytest.fixture
def two_servers(tmp_path: pathlib.Path) -> Iterator[list[RedisServer]]:
    made = [RedisServer(make_folder(tmp_path / name), PASSWORD) for name in ("first", "second")]
    yield made
    for one in made:
        one.kill()


def store_of(*servers: RedisServer, wait: float = 0, **other: Any) -> RedisStore:
    told = {"password": PASSWORD, "prefix": "temper:run:1:", "lease": 600 * 10**9, **other}
    places = [TensorServer("127.0.0.1", server.port) for server in servers]
    return RedisStore(TensorPlace(servers=places, wait=int(wait * 1e9), **told))


def written(store: RedisStore, value: Any) -> Tensor:
    [described] = all_written(store, [value])
    return described


def all_written(store: RedisStore, values: list[Any]) -> list[Tensor]:
    all_described = TensorWriter(store, "rollout-0").write({f"x{n}": v for n, v in enumerate(values)})
    for described in all_described:
        described.name = "x"
        described.file = "temper:run:1:" + described.file  # as the orchestrator passes it on
    return all_described


def back(store: Any, described: Tensor) -> Any:
    """The array, as a trainer reads it."""
    return Tensors([described], 7, TensorReader(store, ActivityLog(0)))["x"]


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.zeros((0, 5), np.float16),
        np.array(3.5, np.float32),
        np.arange(CHUNK, dtype=np.uint8),
        np.arange(CHUNK // 4 + 1, dtype=np.int32),
        np.random.default_rng(1).integers(0, 255, 3 * CHUNK + 7, np.uint8),
    ],
    ids=["matrix", "empty", "scalar", "one chunk", "two chunks", "four chunks"],
)
def test_an_array_arrives_as_it_was(server: RedisServer, value: Any) -> None:
    store = store_of(server)
    described = written(store, value)
    assert server.client.hlen(described.file) == max(1, -(-described.bytes // CHUNK))
    found = back(store, described)
    assert found.dtype == value.dtype and np.array_equal(found, value)
    assert not found.flags.writeable


def test_copies_of_batches_in_another_rank_share_a_connection(server: RedisServer) -> None:
    store = store_of(server)
    described = all_written(store, [np.full(3, number) for number in range(2)])
    readers = []
    for number, one in enumerate(described):
        row = Tensors([one], number, TensorReader(store, ActivityLog(0)))
        copy = pickle.loads(pickle.dumps(row))
        assert np.array_equal(copy["x"], np.full(3, number))
        readers.append(copy.reader)
    first, second = (reader._store for reader in readers)
    assert first is second and first is not store


def test_two_servers_share_the_arrays(two_servers: list[RedisServer]) -> None:
    store = store_of(*two_servers)
    described = all_written(store, [np.full(3, number) for number in range(30)])
    keys = [set(server.keys()) for server in two_servers]
    for number, one in enumerate(described):
        assert one.file in keys[hash64(one.file.encode()) % 2], "as the orchestrator looks for it"
        assert np.array_equal(back(store, one), np.full(3, number))
    assert len(keys[0]) + len(keys[1]) == 30 and min(map(len, keys)) > 3


def test_of_two_servers_the_one_that_is_away_is_named(two_servers: list[RedisServer]) -> None:
    first, second = two_servers
    store = store_of(first, second)
    described = all_written(store, [np.full(3, number) for number in range(30)])
    away = set(first.keys())
    first.kill()
    for one in described:
        if one.file in away:
            with pytest.raises(RoleError, match=f"127.0.0.1:{first.port}: expected a Redis server"):
                back(store, one)
        else:
            assert len(back(store, one)) == 3
    first.start()


def test_every_key_expires(server: RedisServer) -> None:
    key = written(store_of(server), np.zeros(2 * CHUNK, np.uint8)).file
    assert 0 < server.client.ttl(key) <= 600


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda c, key: c.unlink(key), "the server has no key"),
        (lambda c, key: c.hdel(key, "1"), "the server has no key"),
        (lambda c, key: c.hset(key, "1", b"short"), f"expected {CHUNK} bytes in chunk 1, found 5"),
        (lambda c, key: c.hset(key, "1", b"x" * CHUNK), "the checksum differs"),
    ],
    ids=["gone", "a chunk gone", "shorter", "changed"],
)
def test_what_is_gone_or_damaged_is_named_and_not_there_any_more(
    server: RedisServer, damage: Any, what: str
) -> None:
    store = store_of(server)
    described = written(store, np.zeros(2 * CHUNK, np.uint8))
    damage(server.client, described.file)
    with pytest.raises(RoleError, match=f'response 7: tensor "x": 127.0.0.1:{server.port}: .*{what}'):
        back(store, described)
    assert server.client.hlen(described.file) != 2, "the orchestrator finds it missing"


def test_one_damaged_array_makes_all_damaged_ones_of_the_batch_go(server: RedisServer) -> None:
    store = store_of(server)
    described = all_written(store, [np.full(3, number) for number in range(6)])
    for one in described[1:4]:
        server.client.hset(one.file, "0", b"x" * one.bytes)
    reader = TensorReader(store, ActivityLog(0))
    rows = [Tensors([one], number, reader) for number, one in enumerate(described)]
    assert rows[0]["x"][0] == 0
    with pytest.raises(RoleError, match=r"response 1: .*the checksum differs"):
        rows[1]["x"]
    there = set(server.keys())
    assert [one.file in there for one in described] == [True, False, False, False, True, True]


def test_a_wrong_password_is_said_at_once(server: RedisServer) -> None:
    store = store_of(server, wait=60, password="wrong")
    with pytest.raises(RoleError, match=r"admits this run.*TEMPER_REDIS_PASSWORD"):
        written(store, np.arange(3))


def test_a_server_without_memory_is_waited_for_and_named(server: RedisServer) -> None:
    server.client.config_set("maxmemory", "1mb")
    store = store_of(server)
    with pytest.raises(Busy, match=r"expected memory for a tensor, found: .*, for 0 s \(payloads.wait\)"):
        written(store, np.zeros(4 * CHUNK, np.uint8))
    assert server.keys() == [], "nothing is left of it"
    server.client.config_set("maxmemory", "0")
    written(store, np.zeros(4 * CHUNK, np.uint8))


def test_a_server_that_is_away_is_waited_for(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(server, wait=60)
    server.kill()
    pauses: list[float] = []

    def restarted_at_the_third(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            monkeypatch.undo()
            server.start()

    monkeypatch.setattr("temper.stores.time.sleep", restarted_at_the_third)
    described = written(store, np.arange(3))
    assert len(pauses) == 3
    assert np.array_equal(back(store, described), [0, 1, 2])


def test_a_server_that_stays_away_is_named(server: RedisServer) -> None:
    store = store_of(server)
    server.kill()
    with pytest.raises(StoreError, match=rf"127.0.0.1:{server.port}: expected a Redis server \(payloads.redis\)"):
        written(store, np.arange(3))
    server.start()
