"""Whole runs whose tensors are in a Redis server that is killed, restarted, evicts or refuses. Skipped without
redis-server, and with TLS without openssl."""

from __future__ import annotations

import pathlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis_server import (
    PASSWORD,
    PATIENCE,
    RedisServer,
    make_certificates,
    make_folder,
    missing,
    missing_for_tls,
)
from test_run import TEMPER, WELL, Gate, Run, python, responses_lost

why_not = "" if TEMPER else "TEMPER names no program to run"
#: Keys that a trainer at the gate has not read: two tensors of each of 16 responses of 2 batches.
AHEAD = 2 * 16 * 2

pytestmark = pytest.mark.skipif(bool(why_not or missing()), reason=why_not or missing())


with_tls = pytest.mark.skipif(bool(missing_for_tls()), reason=missing_for_tls())


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path, PASSWORD)
    yield made
    made.kill()


@pytest.fixture
def tls_server(tmp_path: pathlib.Path) -> Iterator[RedisServer]:
    make_certificates(tmp_path)
    made = RedisServer(tmp_path, PASSWORD, "server")
    yield made
    made.kill()


def run_on(
    server: RedisServer,
    folder: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    sets: tuple[str, ...] = (),
    **settings: Any,
) -> Run:
    monkeypatch.setenv("TEMPER_REDIS_PASSWORD", PASSWORD)
    roles = {**WELL, "rollout": python("well:TensorEngine"), "trainer": python("well:TensorTrainer")}
    address = f"127.0.0.1:{server.port}"
    if server.certificate:
        sets = (f"payloads.redis_ca={server.folder / 'ca.pem'}", *sets)
        address = f"rediss://localhost:{server.port}"
    store = ("payloads.store=redis", f"payloads.redis={address}")
    return Run(folder, [*store, *sets], **{**roles, **settings})


def gated_run_on(
    server: RedisServer,
    folder: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    sets: tuple[str, ...] = (),
    **settings: Any,
) -> tuple[Run, Gate]:
    """A run of 40 steps whose trainer waits at the gate."""
    gate = Gate(folder)
    trainer = python("well:TensorTrainer", gate=str(gate.path))
    settings = {"trainer": trainer, "steps": 40, **settings}
    run = run_on(server, folder, monkeypatch, ("staleness.bound=2", *sets), **settings)
    gate.await_trainer()
    return run, gate


def assert_that_the_rest_expires(server: RedisServer) -> None:
    """What an engine wrote that was killed by a rollback before it announced it."""
    assert all(0 < server.client.ttl(key) <= 600 for key in server.keys())


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_run_leaves_nothing_in_the_server(
    server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    run = run_on(server, tmp_path, monkeypatch, transport=transport)
    run.expect_whole()
    assert responses_lost(run) == 0
    assert server.keys() == []
    everything = b"".join(p.read_bytes() for p in run.run_dir.rglob("*") if p.is_file())
    assert PASSWORD.encode() not in everything


def test_a_server_that_is_killed_and_restarted_empty_costs_no_response(
    server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gate = gated_run_on(server, tmp_path, monkeypatch)
    server.await_keys(AHEAD, besides=gate.read())
    server.kill()
    server.start()
    gate.open()
    run.expect_whole(40)
    assert responses_lost(run) > 0
    assert_that_the_rest_expires(server)


def test_one_of_two_servers_that_is_restarted_empty_costs_its_responses_and_no_rollback(
    server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = RedisServer(make_folder(tmp_path / "other"), PASSWORD)
    both = f"payloads.redis=127.0.0.1:{server.port},127.0.0.1:{other.port}"
    run, gate = gated_run_on(server, tmp_path, monkeypatch, (both,))
    for one in (server, other):  # each has about half
        one.await_keys(AHEAD // 4, besides=gate.read())
    other.kill()
    other.start()
    gate.open()
    run.expect_whole(40)
    assert responses_lost(run) > 0
    assert "rolling back" not in run.log()
    assert_that_the_rest_expires(server)
    assert_that_the_rest_expires(other)
    other.kill()


def test_a_run_outlives_a_server_that_is_away_for_a_while(
    server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gate = gated_run_on(server, tmp_path, monkeypatch)
    server.kill()
    gate.open()  # the trainer has read what it trains now, and waits with the next batch
    run.await_log("the Redis server of tensors does not answer")
    server.start()
    run.expect_whole(40)
    assert_that_the_rest_expires(server)


def test_evicted_responses_are_generated_again_without_a_rollback(
    server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gate = gated_run_on(server, tmp_path, monkeypatch)
    server.await_keys(AHEAD, besides=gate.read())
    for key in server.keys()[::3]:
        server.client.unlink(key)
    gate.open()
    run.expect_whole(40)
    assert responses_lost(run) > 0
    assert "tensors of a batch are gone" in run.log()
    assert "rolling back" not in run.log()


def test_what_a_killed_run_leaves_behind_expires(
    server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gate = gated_run_on(server, tmp_path, monkeypatch)
    server.await_keys(AHEAD, besides=gate.read())
    run.process.kill()
    run.process.wait()
    left = server.keys()
    assert left
    assert_that_the_rest_expires(server)
    gate.open()
    run.process = subprocess.Popen(
        [TEMPER, "run", "--resume", str(run.run_dir), "--plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=run.environment,
    )
    run.expect_whole(40)
    assert set(server.keys()) <= set(left), "the next run has keys of its own"


@pytest.mark.parametrize(
    ("password", "port", "what"),
    [("wrong", 0, "WRONGPASS"), ("", 0, "NOAUTH"), (PASSWORD, 1, "Connection refused")],
    ids=["wrong", "none", "no server"],
)
def test_a_server_that_admits_no_run_is_said_before_it_begins(
    server: RedisServer,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    password: str,
    port: int,
    what: str,
) -> None:
    monkeypatch.setenv("TEMPER_REDIS_PASSWORD", password)
    address = f"payloads.redis=127.0.0.1:{port or server.port}"
    run = Run(tmp_path, ["payloads.store=redis", address], **WELL)
    status, output = run.wait()
    assert status != 0
    assert "payloads.redis: expected a Redis server that admits this run" in output
    assert what in output and (not password or password not in output)
    assert not run.run_dir.exists()


@with_tls
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_run_through_tls_leaves_nothing_in_the_server(
    tls_server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    run = run_on(tls_server, tmp_path, monkeypatch, transport=transport)
    run.expect_whole()
    assert responses_lost(run) == 0
    assert tls_server.keys() == []
    everything = b"".join(p.read_bytes() for p in run.run_dir.rglob("*") if p.is_file())
    assert PASSWORD.encode() not in everything


@with_tls
def test_a_server_that_comes_back_with_a_certificate_for_another_host_is_not_believed(
    tls_server: RedisServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gate = gated_run_on(tls_server, tmp_path, monkeypatch, restarts=0)
    tls_server.kill()
    tls_server.certificate = "other"
    tls_server.start()
    gate.open()
    status, output = run.wait()
    assert status != 0
    assert f"rediss://localhost:{tls_server.port}: expected a valid certificate for the host" in output
    assert tls_server.keys() == []


@with_tls
@pytest.mark.parametrize(
    ("certificate", "ca", "scheme", "what"),
    [
        ("server", "", "rediss://", "localhost, found: unable to get local issuer certificate"),
        ("server", "unrelated.pem", "rediss://", "localhost, found: unable to get local issuer"),
        ("other", "ca.pem", "rediss://", "localhost, found: hostname mismatch"),
        ("", "ca.pem", "rediss://", "expected a server with TLS, found: "),
        ("server", "", "", "correct the address (rediss:// for TLS)"),
    ],
    ids=["no authority", "another authority", "another host", "no TLS", "only TLS"],
)
def test_a_server_that_cannot_be_verified_is_said_before_the_run_begins(
    tls_server: RedisServer,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    certificate: str,
    ca: str,
    scheme: str,
    what: str,
) -> None:
    tls_server.kill()
    tls_server.certificate = certificate
    tls_server.start()
    monkeypatch.setenv("TEMPER_REDIS_PASSWORD", PASSWORD)
    address = f"{scheme}localhost:{tls_server.port}"
    sets = ["payloads.store=redis", f"payloads.redis={address}"]
    sets += [f"payloads.redis_ca={tmp_path / ca}"] if ca else []
    run = Run(tmp_path, sets, **WELL)
    status, output = run.wait()
    assert status != 0
    assert "payloads.redis: expected a Redis server that admits this run" in output
    assert f": {address}: " in output and what in output and PASSWORD not in output
    assert ("payloads.redis_ca" in output) == bool(scheme)
    assert not run.run_dir.exists()


@with_tls
@pytest.mark.parametrize(
    ("file", "what"),
    [("server.key", ": expected certificates in PEM, found none"), ("none.pem", " does not exist")],
)
def test_a_file_without_certificates_is_said_before_the_run_begins(
    tls_server: RedisServer, tmp_path: pathlib.Path, file: str, what: str
) -> None:
    address = f"payloads.redis=rediss://localhost:{tls_server.port}"
    sets = ["payloads.store=redis", address, f"payloads.redis_ca={tmp_path / file}"]
    status, output = Run(tmp_path, sets, **WELL).wait()
    assert status != 0
    assert f"payloads.redis_ca: {tmp_path / file}{what}" in output


@with_tls
@pytest.mark.parametrize(("host", "named"), [("localhost", "localhost"), ("127.0.0.1", None)])
def test_a_server_for_several_hosts_is_told_the_name(
    tmp_path: pathlib.Path, host: str, named: str | None
) -> None:
    """In the handshake (SNI). An address is no name."""
    make_certificates(tmp_path)
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    context.sni_callback = lambda _, name, __: names.append(name)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)

        def serve() -> None:
            connection, _ = listening.accept()
            with context.wrap_socket(connection, server_side=True) as tls:
                tls.recv(1)

        server = threading.Thread(target=serve)
        server.start()
        address = f"payloads.redis=rediss://{host}:{listening.getsockname()[1]}"
        sets = ["payloads.store=redis", address, f"payloads.redis_ca={tmp_path / 'ca.pem'}"]
        status, output = Run(tmp_path, sets, **WELL).wait()
        server.join()
    assert status != 0
    assert names == [named], output
