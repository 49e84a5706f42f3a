"""A Redis server of a test, with or without TLS, which it can kill, start again and fill."""

from __future__ import annotations

import pathlib
import shutil
import signal
import socket
import subprocess
import time
from typing import Any

CERTIFICATES = pathlib.Path(__file__).parents[2] / "tests/support/certificates"
PATIENCE = 30
PASSWORD = "correct horse"


def missing() -> str:
    """Why there can be no server here; empty if there can."""
    if shutil.which("redis-server") is None:
        return "needs redis-server (Debian's package redis-server)"
    try:
        import redis  # noqa: F401
    except ImportError:
        return "needs the package redis"
    return ""


def missing_for_tls() -> str:
    return missing() or ("" if shutil.which("openssl") else "needs openssl")


def make_certificates(folder: pathlib.Path) -> None:
    """Files in PEM, which the program that makes them describes."""
    subprocess.run([CERTIFICATES, folder], check=True)


def make_folder(path: pathlib.Path) -> pathlib.Path:
    path.mkdir()
    return path


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


class RedisServer:
    def __init__(self, folder: pathlib.Path, password: str = "", certificate: str = "") -> None:
        """`certificate`: the server has TLS, with this certificate in `folder`."""
        self.folder, self.password, self.certificate = folder, password, certificate
        self.port = free_port()
        self.start()

    def start(self) -> None:
        """With no data, also after kill()."""
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        words += ["--requirepass", self.password] if self.password else []
        tls: dict[str, Any] = {}
        if self.certificate:
            pem, key = (str(self.folder / f"{self.certificate}.{end}") for end in ("pem", "key"))
            words += ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
            words += ["--tls-cert-file", pem, "--tls-key-file", key]
            tls = {"ssl": True, "ssl_ca_certs": str(self.folder / "ca.pem"), "ssl_check_hostname": False}
        with open(self.folder / "redis.log", "ab") as log:
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        import redis

        self.client: Any = redis.Redis(port=self.port, password=self.password or None, **tls)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                assert time.monotonic() < deadline, (self.folder / "redis.log").read_text()
                time.sleep(0.02)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def keys(self) -> list[str]:
        return sorted(key.decode() for key in self.client.keys())

    def await_keys(self, count: int, besides: set[str]) -> None:
        """Until there are so many other keys. Keys of trained batches are removed a little later."""
        deadline = time.monotonic() + PATIENCE
        while len(set(self.keys()) - besides) < count:
            assert time.monotonic() < deadline, self.keys()
            time.sleep(0.02)
