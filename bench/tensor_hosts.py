#!/usr/bin/env python3
"""What tensors of responses cost between hosts: the bytes per second that reach trainers from engines through a Redis
server, directly from worker to worker (bench/peer_store.py), and over a plain TCP connection.

    ./x bench tensor_hosts [RUNS]       default: 3

Hosts are network namespaces (needs root, ip and tc), each with one link to a switch, without a limit or of 1 Gbit/s.
An engine and a trainer are processes with the store of the Python package; both do nothing else. The engines write while
the trainers read what was written before; an engine has at most 128 MiB that no trainer has read. `own host`: the Redis
server has a host of its own; `trainers' hosts`: there is a server on the host of each trainer. The stores alternate within a run.

Prints two Markdown tables with medians. The first has the time of one write, for which an engine waits, and that until
its tensor was read, if nothing else is under way. In the second, `MB/s` is what reaches all trainers, while all hosts
share the processor of this machine. Hosts of their own have a processor each, so it also has the processor time that a
GB takes in the engines, the server and the trainers, and `thread`, the MB for each second of the busiest thread, which
no number of cores exceeds. Processor times are comparable when the machine has other work, unlike the rest."""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import os
import queue
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/integration"))

import numpy as np  # noqa: E402
import redis  # noqa: E402
import zmq  # noqa: E402
from hosts import Hosts, unable  # noqa: E402
from peer_store import PeerReader, PeerStore  # noqa: E402

from temper.messages import Tensor, TensorPlace, TensorServer  # noqa: E402
from temper.stores import RedisStore, Store  # noqa: E402
from temper.tensors import Tensors, TensorWriter  # noqa: E402

SIZES = (8 << 20, 1 << 16)
LINKS = (None, "1gbit")
SHAPES = ((1, 1), (2, 1), (4, 1), (4, 4))  # engines, trainers
STORES = ("redis, own host", "redis, trainers' hosts", "peer")
UNREAD = 128 << 20  # bytes of an engine
WARM = 0.5  # seconds
SECONDS, BYTES = 2.0, 256 << 20  # that a measurement has at least
SINGLE = 20  # tensors one after the other
PREFIX = "temper:bench:"
PORT = 6379
HEAD = 0  # the host of the orchestrator, which removes what was read, and of a Redis server of its own
FORKED = multiprocessing.get_context("fork")


@dataclasses.dataclass
class Figures:
    """Of one measurement, or medians of several."""

    rate: float  #: Bytes per second that reach all trainers.
    engine: float = 0  #: Processor seconds of all engines for each byte.
    server: float = 0
    trainer: float = 0
    thread: float = 0  #: Bytes for each processor second of the busiest thread.
    write: float = 0  #: Seconds of one write.
    read: float = 0  #: Seconds from the begin of the write until the tensor was read.


def medians_of(found: list[Figures]) -> Figures:
    return Figures(*(statistics.median(column) for column in zip(*map(dataclasses.astuple, found))))


def processor_time(roles: dict[int, str]) -> dict[tuple[str, str], float]:
    """Seconds that each thread has used so far, by role and thread. `roles`: of each process."""
    used = {}
    for process, role in roles.items():
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):  # it has ended
                fields = (thread / "stat").read_text().rpartition(")")[2].split()
                used[role, thread.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def address(host: int) -> str:
    return f"10.77.0.{host + 1}"


def engine_host(engine: int) -> int:
    return 1 + engine


def trainer_host(engines: int, trainer: int) -> int:
    return 1 + engines + trainer


class Reading:
    """Parameters of one measurement."""

    def __init__(self, hosts: Hosts, store: str, size: int, engines: int, trainers: int) -> None:
        self.hosts, self.store, self.size, self.engines, self.trainers = hosts, store, size, engines, trainers
        self.batch = max(1, min(16, (1 << 20) // size))  # tensors of one message
        self.servers = [trainer_host(engines, i) for i in range(trainers)] if store == "redis, trainers' hosts" else [HEAD]
        public, secret = zmq.curve_keypair()
        self.public, self.secret = ("", "") if store == "peer, not encrypted" else (public.decode(), secret.decode())
        self.to_trainers = [FORKED.SimpleQueue() for _ in range(trainers)]
        self.to_engines = [FORKED.SimpleQueue() for _ in range(engines)]
        self.credits = [FORKED.Semaphore(max(1, UNREAD // (size * self.batch))) for _ in range(engines)]
        self.to_head: Any = FORKED.SimpleQueue()
        self.figures: Any = FORKED.Queue()

    def redis_store(self) -> RedisStore:
        servers = [TensorServer(address(host), PORT) for host in self.servers]
        return RedisStore(TensorPlace(servers=servers, prefix=PREFIX, lease=600 * 10**9, wait=30 * 10**9))

    def engine(self, number: int) -> None:
        host = engine_host(number)
        self.hosts.enter(host)
        redis_used = self.store.startswith("redis")
        store: Store = self.redis_store() if redis_used else PeerStore(address(host), self.public)
        prefix = PREFIX if redis_used else f"{store.place} "  # type: ignore[attr-defined]
        writer = TensorWriter(store, f"rollout-{number}")
        array = np.random.default_rng(number).integers(0, 255, self.size, np.uint8)
        turn = number
        while True:
            self.credits[number].acquire()
            while not self.to_engines[number].empty():
                for name in self.to_engines[number].get():
                    store.remove(name)
            batch: list[tuple[Tensor, float, float]] = []
            for _ in range(self.batch):
                begin = time.monotonic()
                [tensor] = writer.write({"x": array})
                tensor.file = prefix + tensor.file  # as the orchestrator passes it on
                batch.append((tensor, begin, time.monotonic() - begin))
            self.to_trainers[turn % self.trainers].put((number, batch))
            turn += 1

    def trainer(self, number: int) -> None:
        self.hosts.enter(trainer_host(self.engines, number))
        store: Store = self.redis_store() if self.store.startswith("redis") else PeerReader(self.public, self.secret)
        while True:
            engine, batch = self.to_trainers[number].get()
            read = []
            for tensor, begin, write in batch:
                found = Tensors([tensor], 0, store)["x"]
                end = time.monotonic()
                assert found.nbytes == self.size
                read.append((end, write, end - begin))
            self.to_head.put((engine, [tensor.file for tensor, _, _ in batch]))
            self.figures.put(read)

    def head(self) -> None:
        self.hosts.enter(HEAD)
        servers = [redis.Redis(host=address(host), port=PORT) for host in self.servers] if self.store.startswith("redis") else []
        while True:
            engine, files = self.to_head.get()
            for server in servers:
                server.unlink(*files)
            if not servers:
                self.to_engines[engine].put([file.rpartition(" ")[2] for file in files])
            self.credits[engine].release()

    @contextmanager
    def processes(self) -> Iterator[dict[int, str]]:
        """Runs all processes; yields the roles of engines and trainers by process."""
        trainers = [FORKED.Process(target=self.trainer, args=(i,), daemon=True) for i in range(self.trainers)]
        engines = [FORKED.Process(target=self.engine, args=(i,), daemon=True) for i in range(self.engines)]
        head = FORKED.Process(target=self.head, daemon=True)
        for process in (head, *trainers, *engines):
            process.start()
        try:
            yield {**{p.pid or 0: "trainer" for p in trainers}, **{p.pid or 0: "engine" for p in engines}}
        finally:
            for process in (head, *trainers, *engines):
                process.kill()
                process.join()

    def throughput(self, servers: list[int]) -> Figures:
        """From `WARM` seconds after the first tensor. `servers`: processes of Redis servers."""
        ends: list[float] = []
        before: dict[tuple[str, str], float] = {}
        begin, first = 0.0, 0
        with self.processes() as processes:
            counted = {**processes, **dict.fromkeys(servers, "server")}
            while not before or ends[-1] - begin < SECONDS or (len(ends) - first) * self.size < BYTES:
                ends += [end for end, _, _ in self.figures.get(timeout=60)]
                if not before and ends[-1] - ends[0] >= WARM:
                    before, begin, first = processor_time(counted), ends[-1], len(ends)
            after = processor_time(counted)
        measured = sorted(end for end in ends if end >= begin)
        count = self.size * (len(measured) - 1)
        used = {thread: seconds - before.get(thread, 0) for thread, seconds in after.items()}
        roles = ("engine", "server", "trainer")
        cost = [sum(seconds for (role, _), seconds in used.items() if role == one) / count for one in roles]
        return Figures(count / (measured[-1] - measured[0]), *cost, count / max(used.values()))

    def single(self, _: list[int]) -> Figures:
        """One tensor at a time."""
        self.batch = 1
        self.credits = [FORKED.Semaphore(1) for _ in range(self.engines)]
        found: list[tuple[float, float, float]] = []
        with self.processes():
            while len(found) < SINGLE + 3:
                found += self.figures.get(timeout=60)
        return Figures(0, write=statistics.median(x[1] for x in found[3:]), read=statistics.median(x[2] for x in found[3:]))


def plain(hosts: Hosts) -> Figures:
    """Bytes per second of one TCP connection from one host to another."""

    def send() -> None:
        hosts.enter(engine_host(0))
        data = memoryview(np.zeros(1 << 20, np.uint8))
        with suppress(OSError), socket.create_connection((address(trainer_host(1, 0)), 7000)) as out:
            while True:
                out.sendall(data)

    def receive(rate: Any) -> None:
        hosts.enter(trainer_host(1, 0))
        with socket.create_server((address(trainer_host(1, 0)), 7000)) as server:
            rate.put(0.0)
            connection, _ = server.accept()
        room = memoryview(bytearray(1 << 20))
        begin = time.monotonic()
        while time.monotonic() - begin < WARM:
            connection.recv_into(room)
        begin, received = time.monotonic(), 0
        while time.monotonic() - begin < SECONDS:
            received += connection.recv_into(room)
        rate.put(received / (time.monotonic() - begin))

    rate = FORKED.Queue()
    receiver = FORKED.Process(target=receive, args=(rate,), daemon=True)
    receiver.start()
    rate.get(timeout=30)
    sender = FORKED.Process(target=send, daemon=True)
    sender.start()
    try:
        return Figures(rate.get(timeout=60))
    finally:
        for process in (sender, receiver):
            process.kill()
            process.join()


@contextmanager
def redis_on(hosts: Hosts, host: int) -> Iterator[int]:
    """A server that stores nothing on disk; yields its process."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "redis.log")
        words = ["redis-server", "--port", str(PORT), "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
        words += ["--dir", folder]
        server = hosts.start(host, words, log)
        deadline = time.monotonic() + 30
        while "Ready to accept" not in log.read_text():
            if time.monotonic() > deadline or server.poll() is not None:
                raise SystemExit(f"redis-server: expected it to accept connections within 30 s\n{log.read_text()}")
            time.sleep(0.02)
        try:
            yield server.pid  # ip executes it
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def measured(hosts: Hosts, store: str, size: int, shape: tuple[int, int], figure: str) -> Figures:
    if store == "plain":
        return plain(hosts)
    reading = Reading(hosts, store, size, *shape)
    measure: Callable[[list[int]], Figures] = getattr(reading, figure)
    try:
        with ExitStack() as running:
            used = reading.servers if store.startswith("redis") else []
            return measure([running.enter_context(redis_on(hosts, host)) for host in used])
    except queue.Empty:
        raise SystemExit(f"tensor_hosts: {store}: no tensor arrived for 60 s") from None


def medians(hosts: Hosts, size: int, shape: tuple[int, int], figure: str, stores: list[str], runs: int) -> dict[str, Figures]:
    found: dict[str, list[Figures]] = {store: [] for store in stores}
    for _ in range(runs):
        for store, figures in found.items():
            figures.append(measured(hosts, store, size, shape, figure))
    return {store: medians_of(figures) for store, figures in found.items()}


def stores_of(shape: tuple[int, int], rate: str | None) -> list[str]:
    out = list(STORES)
    if shape == (1, 1):
        out += ["peer, not encrypted", "plain"] if rate is None else ["plain"]
    return out


def row(f: Figures, redis: Figures) -> str:
    """`redis`: what the ratios are of."""
    rate = f"{f.rate / 1e6:,.0f} | {f.rate / redis.rate:.2f}"
    if not f.thread:
        return f"{rate} | | | | |"
    costs = " | ".join(f"{x * 1e9:.2f}" if x else "" for x in (f.engine, f.server, f.trainer))
    return f"{rate} | {costs} | {f.thread / 1e6:,.0f} | {f.thread / redis.thread:.2f}"


def print_rates(runs: int) -> None:
    print("| link | bytes of a tensor | engines | trainers | store | MB/s | ratio | engines, s/GB | server, s/GB | trainers, s/GB | "
          "thread, MB/s | ratio |\n|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for size, rate in itertools.product(SIZES, LINKS):
        with Hosts(9, rate) as hosts:
            for shape in SHAPES:
                found = medians(hosts, size, shape, "throughput", stores_of(shape, rate), runs)
                for store, f in found.items():
                    figures = row(f, found[STORES[0]])
                    print(f"| {rate or 'no limit'} | {size:,} | {shape[0]} | {shape[1]} | {store} | {figures} |", flush=True)


def print_times(runs: int) -> None:
    print("| link | bytes of a tensor | store | write, ms | write and read, ms | ratio |\n"
          "|---|---:|---|---:|---:|---:|", flush=True)
    for size, rate in itertools.product(SIZES, LINKS):
        with Hosts(3, rate) as hosts:
            found = medians(hosts, size, (1, 1), "single", list(STORES), runs)
            for store, f in found.items():
                figures = f"{f.write * 1e3:,.2f} | {f.read * 1e3:,.2f} | {found[STORES[0]].read / f.read:.2f}"
                print(f"| {rate or 'no limit'} | {size:,} | {store} | {figures} |", flush=True)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # also ends the hosts
    if why := unable():
        print(f"tensor_hosts: {why}", file=sys.stderr)
        return 1
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"Redis clients {'with' if find_spec('hiredis') else 'without'} hiredis\n")
    print_times(runs)
    print()
    print_rates(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
