"""Correct roles for the tests, with deterministic tokens and weights."""

import fcntl
import json
import pathlib
import time

import numpy as np

import temper
from temper.tensors import TensorWriter


class Engine(temper.Engine):
    def __init__(self, tokens=6):
        self.length = tokens

    def load(self, version, weights):
        assert int(weights["updates"][0]) == version

    def generate(self, requests):
        first = self.role.vocabulary.first
        for request in requests:
            n = min(self.length - request.prefix.size, request.max_new_tokens)
            yield request.done(first + np.arange(n) % 10, np.full(n, -1.0), "length")


GATED = 8
"""The updates that a trainer with a gate makes before it waits."""


def wait_at(gate, read=()):
    """Until nobody holds the lock of this file. A file beside it says that somebody waits, and which
    tensors it has read."""
    reached = pathlib.Path(f"{gate}.reached")
    written = reached.with_suffix(".written")
    written.write_text("\n".join(read))
    written.rename(reached)
    with open(gate) as file:
        fcntl.flock(file, fcntl.LOCK_SH)


class Trainer(temper.Trainer):
    def __init__(self, gate=None):
        self.updates, self.gate, self.read = 0, gate, set()

    def update(self, batch):
        assert batch.version == self.updates
        if self.gate and self.updates >= GATED:
            wait_at(self.gate, self.read)
        self.updates += 1
        return {"loss": 1 / self.updates}

    def publish(self):
        return {"updates": np.array([self.updates], np.int64)}

    def save(self, folder: pathlib.Path):
        (folder / "updates.json").write_text(json.dumps(self.updates))

    def load(self, folder: pathlib.Path):
        self.updates = json.loads((folder / "updates.json").read_text())


class Reference(temper.Reference):
    def score(self, items):
        return [np.full(i.response.size, -1.0) for i in items]


class Reward(temper.Reward):
    def judge(self, samples):
        return [float(s.response == s.answer) for s in samples]


class TensorEngine(Engine):
    """Attaches the tokens of each response, and their squares, as tensors."""

    def generate(self, requests):
        for done in super().generate(requests):
            tokens = np.concatenate([done.request.prefix, done.tokens]).astype(np.int32)
            done.tensors = {"tokens": tokens, "squares": np.outer(tokens, tokens)}
            yield done


class SharingEngine(TensorEngine):
    """Describes the tensors of the response before at every eighth one."""

    def __init__(self):
        super().__init__()
        write, self.described = TensorWriter.write, []

        def describe(writer, tensors):
            self.described.append(write(writer, tensors))
            return self.described[-2 if len(self.described) % 8 == 0 else -1]

        TensorWriter.write = describe


class TensorTrainer(Trainer):
    """Fails unless each response has the tensors of its own tokens.

    With `ahead`, its updates wait until so many tensors of other responses are there, up to the one
    that waits at the gate.
    """

    def __init__(self, gate=None, ahead=0):
        super().__init__(gate)
        self.ahead = ahead

    def update(self, batch):
        mine = {t.file for row in batch for t in row.tensors.described()}
        folder = pathlib.Path(min(mine)).parent
        while self.updates <= GATED and len(set(map(str, folder.glob(".*"))) - mine) < self.ahead:
            time.sleep(0.001)
        self.read |= set(map(str, mine))
        for row in batch:
            assert list(row.tensors) == ["tokens", "squares"]
            assert np.array_equal(row.tensors["tokens"], row.response)
            assert np.array_equal(row.tensors["squares"], np.outer(row.response, row.response))
        return super().update(batch)


class LosingTrainer(TensorTrainer):
    """Removes a tensor of its sixth batch, once."""

    def __init__(self, lost, ahead):
        super().__init__(ahead=ahead)
        self.lost = pathlib.Path(lost)

    def update(self, batch):
        if batch.version == 5 and not self.lost.exists():
            self.lost.touch()
            for tensor in batch.rows[3].tensors.described():
                pathlib.Path(tensor.file).unlink()
        return super().update(batch)
