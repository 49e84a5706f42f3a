"""Stores of tensors under a soak, and what happens to them: tensors are removed, evicted and changed, and servers are
killed and start again without data."""
import os
import pathlib
import shutil
import sys

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(TREE / "python/tests"))

from redis_server import PASSWORD, RedisServer, missing  # noqa: E402

#: As many of the tensors in a store are removed or changed at once.
SHARE = 1 / 3
#: Bytes that a server that evicts has for its clients and for the tensors of a few batches.
ROOM = 500_000


def kinds():
    """The stores that can be here."""
    return ["shm"] if missing() else ["shm", "redis"]


def roles(reads):
    """Settings of a run with an engine and a trainer in Python. `reads`: the file of what the trainer has read."""
    return {
        "sampling.max_new_tokens": 64,
        "rollout.engine": '{kind: python, use: "soak_roles:TensorEngine", with: {tokens: 64}}',
        "trainer.engine": f'{{kind: python, use: "soak_roles:CountingTrainer", with: {{reads: "{reads}"}}}}',
    }


def provide_roles():
    """For the runs that this process starts."""
    folders = [TREE / "python/src", TREE / "python/tests/roles", TREE / "tests"]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    os.environ["TEMPER_PYTHON"] = sys.executable


def read_twice(reads):
    """(Bytes that a trainer has read, bytes of these that one had read before.)"""
    once, every = {}, 0
    if reads.exists():
        for line in reads.read_text().splitlines():
            place, size = line.rsplit(" ", 1)
            once[place] = int(size)
            every += int(size)
    return every, every - sum(once.values())


class SharedMemory:
    """Files of the run in /dev/shm."""

    settings = {"payloads.store": "shm"}

    def disturb(self, head, random):
        """Returns the name of what was done; empty: nothing is there."""
        changes = random.random() < 0.5
        files = self.files(head)
        chosen = random.sample(files, round(SHARE * len(files)))
        for file in chosen:
            try:
                if changes:
                    with open(file, "r+b") as opened:
                        opened.write(bytes([random.randrange(256)]))
                else:
                    file.unlink()
            except FileNotFoundError:
                pass  # its group has been trained
        return ("tensors_changed" if changes else "tensors_removed") if chosen else ""

    def files(self, head):
        """The run's tensors, beside the file that its orchestrator has locked."""
        try:
            opened = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{head.pid}/fd").iterdir()]
        except (FileNotFoundError, ProcessLookupError):
            return []
        mine = [pathlib.Path(file).parent / "files" for file in opened if file.startswith("/dev/shm/temper-tensors-")]
        return [file for folder in mine for file in sorted(folder.glob("*"))]

    def evicted(self):
        return 0  # tmpfs evicts nothing

    def end(self):
        """Nothing to stop."""


class Redis:
    """A server of its own, which evicts the oldest tensors in half of the runs."""

    def __init__(self, folder, random):
        self.folder = folder
        folder.mkdir()
        self.server = RedisServer(folder, PASSWORD)
        self.evicts = random.random() < 0.5
        self.limit()
        self.settings = {"payloads.store": "redis", "payloads.redis": f"127.0.0.1:{self.server.port}"}
        os.environ["TEMPER_REDIS_PASSWORD"] = PASSWORD

    def limit(self):
        if self.evicts:
            self.server.client.config_set("maxmemory", self.server.client.info("memory")["used_memory"] + ROOM)
            self.server.client.config_set("maxmemory-policy", "allkeys-random")

    def disturb(self, head, random):
        """See SharedMemory.disturb()."""
        if random.random() < 0.4:
            self.server.kill()
            self.server.start()
            self.limit()
            return "servers_killed"
        changes = random.random() < 0.3
        keys = self.server.keys()
        chosen = random.sample(keys, round(SHARE * len(keys)))
        for key in chosen:
            first = self.server.client.hget(key, "0") if changes else None
            if first:
                self.server.client.hset(key, "0", bytes([random.randrange(256)]) + first[1:])
            elif not changes:
                self.server.client.delete(key)
        return ("tensors_changed" if changes else "tensors_removed") if chosen else ""

    def evicted(self):
        """Since the server's last start."""
        return int(self.server.client.info("stats")["evicted_keys"])

    def end(self):
        self.server.kill()
        shutil.rmtree(self.folder)


def make_store(kind, folder, random):
    """`folder`: for what a server needs."""
    return Redis(folder, random) if kind == "redis" else SharedMemory()
