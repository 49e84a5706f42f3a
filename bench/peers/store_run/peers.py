"""Moves rows of responses from producers to one consumer through Ray's object store or TransferQueue. For
bench/peers/stores.py, which writes one JSON list a line to its standard input and reads an answer for each:

    python peers.py PRODUCERS STORE... < ["ray" | "ray, list" | "transfer_queue", TOKENS, SIZE, BATCH, SECONDS]

The answer is responses per second, and processor seconds of all processes for a response. A response has ids (int32),
log-probs (float32), six numbers, and with a SIZE a column of so many bytes, all of which the consumer reads. A
measurement is from the first put to the last get, after a warm-up with the same processes."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # on a machine with other work
os.environ.setdefault("TQ_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("TQ_NUM_THREADS", "1")  # its default of 8 makes threads of PyTorch wait for each other on 2 cores
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))

import numpy as np  # noqa: E402
import ray  # noqa: E402
from figures_program import family  # noqa: E402

NUMBERS = 6  # reward, version, prompt, group, finish reason, number of tokens
PENDING = 16  # batches of a Ray producer that wait for their consumer
MOST = 1 << 30  # bytes of a run


def columns(tokens: int, size: int, batch: int) -> dict[str, np.ndarray]:
    out = {"ids": np.full((batch, tokens), 7, np.int32), "logprobs": np.full((batch, tokens), -1.0, np.float32),
           "numbers": np.zeros((batch, NUMBERS), np.float32)}
    if size:
        out["column"] = np.random.default_rng(1).integers(0, 255, (batch, size), np.uint8)
    return out


class RayProducer:
    """`listed`: a batch is a list of rows, as a producer has them that does not pad; else arrays of all rows."""

    def __init__(self, listed: bool):
        self.listed = listed

    def make(self, tokens: int, size: int, batch: int) -> None:
        made = columns(tokens, size, batch)
        self.batch: Any = [{name: x[i].copy() for name, x in made.items()} for i in range(batch)] if self.listed else made

    def produce(self, consumer: Any, count: int) -> float:
        begin = time.monotonic()
        pending: list[Any] = []
        for _ in range(count):
            if len(pending) >= PENDING:
                _, pending = ray.wait(pending, num_returns=1)
            pending.append(consumer.take.remote([ray.put(self.batch)]))
        ray.get(pending)
        return begin


class RayConsumer:
    def make(self, fields: list[str], batch: int) -> None:
        self.rows = 0
        self.batch = batch

    def take(self, refs: list[Any]) -> None:
        batch = ray.get(refs[0])
        for row in batch if isinstance(batch, list) else [batch]:
            if "column" in row:
                row["column"].sum(dtype=np.uint64)
        self.rows += len(batch) if isinstance(batch, list) else len(batch["ids"])

    def end(self, count: int) -> float:
        """When `count` batches had arrived."""
        assert self.rows == count * self.batch, f"expected {count} batches of {self.batch}, found {self.rows} rows"
        self.rows = 0
        return time.monotonic()


class QueueProducer:
    def __init__(self) -> None:
        import transfer_queue

        transfer_queue.init()
        self.client = transfer_queue.interface._TQ_CLIENT

    def make(self, tokens: int, size: int, batch: int) -> None:
        import torch
        from tensordict import TensorDict

        made = {name: torch.from_numpy(x) for name, x in columns(tokens, size, batch).items()}
        self.batch = TensorDict(made, batch_size=batch)

    def produce(self, _: Any, count: int) -> float:
        begin = time.monotonic()
        for _ in range(count):
            self.client.put(self.batch.copy(), partition_id="train")
        return begin


class QueueConsumer:
    def __init__(self) -> None:
        import transfer_queue

        transfer_queue.init()
        self.client = transfer_queue.interface._TQ_CLIENT

    def make(self, fields: list[str], batch: int) -> None:
        self.fields, self.batch = fields, batch

    def end(self, count: int) -> float:
        """Consumes `count` batches; returns when that was done."""
        for _ in range(count):
            while True:
                meta = self.client.get_meta(data_fields=self.fields, batch_size=self.batch, partition_id="train", task_name="train",
                                            sampling_config={})
                if meta.size:
                    break
                time.sleep(0.001)
            data = self.client.get_data(meta)
            assert data.batch_size[0] == self.batch
            if "column" in data.keys():
                column = data["column"]
                (column.values() if column.is_nested else column).numpy().sum(dtype=np.uint64)
            self.client.clear_samples(meta)
        return time.monotonic()


class Movement:
    """The processes of one store."""

    def __init__(self, store: str, producers: int):
        self.queue = store == "transfer_queue"
        if self.queue:
            import transfer_queue
            from omegaconf import OmegaConf

            # Without polling, its controller sleeps 5 s where a batch is not complete yet.
            transfer_queue.init(OmegaConf.create({"controller": {"polling_mode": True}}))
        words = [] if self.queue else [store == "ray, list"]
        self.producers = [ray.remote(QueueProducer if self.queue else RayProducer).remote(*words) for _ in range(producers)]
        self.consumer = ray.remote(QueueConsumer if self.queue else RayConsumer).remote()

    def move(self, count: int) -> float:
        """Seconds for `count` batches of each producer."""
        total = count * len(self.producers)
        begun = [p.produce.remote(self.consumer, count) for p in self.producers]
        if not self.queue:
            begun = ray.get(begun)
        end = ray.get(self.consumer.end.remote(total))
        return end - min(ray.get(begun) if self.queue else begun)

    def measured(self, tokens: int, size: int, batch: int, seconds: float) -> tuple[float, float]:
        """Responses per second, and processor seconds for one."""
        fields = list(columns(1, 1 if size else 0, 1))
        ray.get([p.make.remote(tokens, size, batch) for p in self.producers] + [self.consumer.make.remote(fields, batch)])
        most = max(2, MOST // (batch * (size + 8 * tokens) * len(self.producers)))
        count = 2
        while (took := self.move(count)) < 0.2 * seconds and count < most:  # warm-up
            count = min(2 * count, most)
        count = max(2, min(most, round(count * seconds / took)))
        before = processor_seconds()
        took = self.move(count)
        rows = count * batch * len(self.producers)
        return rows / took, (processor_seconds() - before) / rows


def processor_seconds() -> float:
    """Of this process and its descendants."""
    ticks = 0
    for pid in family(os.getpid()):
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    producers, stores = int(sys.argv[1]), sys.argv[2:]
    ray.init(num_cpus=4 * producers + 8, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    movements = {store: Movement(store, producers) for store in stores}
    print("ready", flush=True)
    for line in sys.stdin:
        store, *asked = json.loads(line)
        print(json.dumps(movements[store].measured(*asked)), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
