"""Tensors in a Redis server through TLS, as engines and trainers reach it. Skipped without redis-server or openssl."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from redis_server import PASSWORD, RedisServer, make_certificates, missing_for_tls

from temper.activity import ActivityLog
from temper.errors import RoleError
from temper.messages import TensorPlace, TensorServer
from temper.stores import CHUNK, Busy, RedisStore
from temper.tensors import TensorReader, Tensors, TensorWriter

pytestmark = pytest.mark.skipif(bool(missing_for_tls()), reason=missing_for_tls())


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    make_certificates(tmp_path)
    return tmp_path


@pytest.fixture
def server(folder: pathlib.Path) -> Iterator[RedisServer]:
    made = RedisServer(folder, PASSWORD, "server")
    yield made
    made.kill()


def store_of(
    server: RedisServer, ca: str = "ca.pem", wait: float = 0, host: str = "localhost", **other: Any
) -> RedisStore:
    told = {
        "password": PASSWORD,
        "prefix": "temper:run:1:",
        "lease": 600 * 10**9,
        "tls": True,
        "ca_certificates": (server.folder / ca).read_text() if ca else "",
    }
    servers = [TensorServer(host, server.port)]
    return RedisStore(TensorPlace(servers=servers, wait=int(wait * 1e9), **{**told, **other}))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_an_array_arrives_as_it_was(server: RedisServer, host: str) -> None:
    store = store_of(server, host=host)
    value = np.random.default_rng(1).integers(0, 255, 3 * CHUNK + 7, np.uint8)
    [described] = TensorWriter(store, "rollout-0").write({"x": value})
    described.file = "temper:run:1:" + described.file
    assert np.array_equal(Tensors([described], 7, TensorReader(store, ActivityLog(0)))["x"], value)


@pytest.mark.parametrize(
    ("certificate", "ca", "what"),
    [
        ("server", "", "unable to get local issuer certificate"),
        ("server", "unrelated.pem", "unable to get local issuer certificate"),
        ("other", "ca.pem", "Hostname mismatch"),
    ],
    ids=["no authority", "another authority", "another host"],
)
def test_a_certificate_that_is_not_valid_is_said_at_once(
    server: RedisServer, certificate: str, ca: str, what: str
) -> None:
    server.kill()
    server.certificate = certificate
    server.start()
    store = store_of(server, ca, wait=60)
    said = rf"rediss://localhost:{server.port}: expected a valid certificate for the host, found: {what}"
    with pytest.raises(RoleError, match=said + ".*payloads.redis_ca"):
        TensorWriter(store, "rollout-0").write({"x": np.arange(3)})


def test_a_server_without_tls_is_waited_for_and_named(server: RedisServer) -> None:
    server.kill()
    server.certificate = ""
    server.start()
    store = store_of(server)
    # Redis waits for the end of the handshake, which it takes for a command.
    store._servers[0][1].connection_pool.connection_kwargs["socket_timeout"] = 0.2
    said = rf"rediss://localhost:{server.port}: expected a Redis server with TLS \(payloads.redis\)"
    with pytest.raises(Busy, match=said):
        TensorWriter(store, "rollout-0").write({"x": np.arange(3)})


def test_a_server_with_tls_is_not_reached_without(server: RedisServer) -> None:
    with pytest.raises(Busy, match=rf"localhost:{server.port}: expected a Redis server \(payloads.redis\)"):
        TensorWriter(store_of(server, tls=False), "rollout-0").write({"x": np.arange(3)})
