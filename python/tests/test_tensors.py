"""Tensors of responses: what an engine writes, and what a trainer reads."""

from __future__ import annotations

import os
import pathlib
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import user

import temper
from temper import messages as m
from temper.activity import ActivityLog
from temper.errors import RoleError
from temper.rollout import RolloutActor
from temper.stores import Busy, ShmStore, StoreError, patiently
from temper.tensors import Reads, TensorReader, Tensors, TensorWriter


def store_in(folder: pathlib.Path) -> ShmStore:
    return ShmStore(str(folder), wait=0)


def round_trip(folder: pathlib.Path, value: Any) -> Any:
    described = TensorWriter(store_in(folder), "rollout-0").write({"x": value})
    described[0].file = str(folder / described[0].file)
    return Tensors(described, 7, TensorReader(store_in(folder), ActivityLog(0)))["x"]


def rows_in(folder: pathlib.Path, activity: ActivityLog, values: list[Any]) -> list[Tensors]:
    """The tensors of a batch with one in each response."""
    writer, reader = TensorWriter(store_in(folder), "rollout-0"), TensorReader(store_in(folder), activity)
    rows = []
    for number, value in enumerate(values):
        [described] = writer.write({"x": value})
        described.file = str(folder / described.file)
        rows.append(Tensors([described], number, reader))
    return rows


def reported(activity: ActivityLog) -> m.TensorUse:
    sent: list[Any] = []
    activity.flush(sent.append)
    return sent[-1].usage.tensors if sent else m.TensorUse()


def test_another_rank_reads_the_tensors_of_its_copy_of_a_batch(tmp_path: pathlib.Path) -> None:
    activity = ActivityLog(0)
    rows = rows_in(tmp_path, activity, [[1, 2], np.arange(1 << 20)])
    assert rows[1]["x"].size == 1 << 20
    pickled = pickle.dumps(rows)
    assert len(pickled) < 2000, "descriptions, and no arrays"
    copies = pickle.loads(pickled)
    assert copies[0]["x"].tolist() == [1, 2]
    assert copies[0].reader is copies[1].reader and copies[0].reader.take_reads().fetched == 16
    assert reported(activity).fetched == 8 << 20, "a copy reports nothing"
    rows[0].reader.count_others(Reads(16, 5))
    assert reported(activity).fetched == (8 << 20) + 16


def test_a_copy_of_a_batch_looks_at_all_of_its_tensors(tmp_path: pathlib.Path) -> None:
    rows = rows_in(tmp_path, ActivityLog(0), [np.full(3, number) for number in range(4)])
    copies = pickle.loads(pickle.dumps(rows))
    looked_at = []
    store = copies[0].reader._store
    read = store.read
    store.read = lambda *what: looked_at.append(what[0]) or read(*what)
    files = [t.file for row in rows for t in row.described()]
    pathlib.Path(files[2]).unlink()
    with pytest.raises(RoleError, match=r"response 2: .*No such file"):
        copies[2]["x"]
    assert set(looked_at) == set(files)


def test_whether_there_is_a_tensor_is_known_without_reading_it(tmp_path: pathlib.Path) -> None:
    [row] = rows_in(tmp_path, ActivityLog(0), [[1, 2]])
    assert "x" in row and "y" not in row
    assert row.reader.take_reads().fetched == 0


def test_an_array_that_was_released_is_read_again(tmp_path: pathlib.Path) -> None:
    [row] = rows_in(tmp_path, ActivityLog(0), [[1, 2]])
    for _ in range(2):
        assert row["x"].tolist() == [1, 2] and row["x"] is row["x"]
        row.release("x")
    assert row.reader.take_reads().fetched == 2 * 16
    assert row.reader.take_reads().fetched == 0


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.arange(24, dtype=np.float64).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(20, dtype=np.uint8)[::3],
        np.array(3.5, np.float32),
        np.zeros((0, 5), np.float16),
        np.array([True, False]),
        np.arange(3, dtype=">i4"),
        [1, 2, 3],
    ],
    ids=["matrix", "transposed", "strided", "scalar", "empty", "bool", "big-endian", "list"],
)
def test_an_array_arrives_as_it_was(tmp_path: pathlib.Path, value: Any) -> None:
    back = round_trip(tmp_path, value)
    assert back.dtype == np.asarray(value).dtype.newbyteorder("=") and back.shape == np.asarray(value).shape
    assert np.array_equal(back, value)
    assert not back.flags.writeable


def test_a_file_that_is_gone_shorter_or_changed_is_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "x"
    for content, what in ((None, "No such file"), (b"123", "expected 4 bytes as announced, found 3"), (b"1235", "checksum")):
        for old in tmp_path.iterdir():
            old.unlink()
        [described] = TensorWriter(store_in(tmp_path), "rollout-0").write({"x": np.frombuffer(b"1234", np.uint8)})
        described.file = str(file)
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(RoleError, match=f'response 7: tensor "x": {file}: .*{what}'):
            Tensors([described], 7, TensorReader(store_in(tmp_path), ActivityLog(0)))["x"]


@pytest.mark.parametrize(
    ("tensors", "what"),
    [
        ({"good": np.zeros(4), "bad": np.array([object()])}, 'tensor "bad": expected numbers, found objects: ndarray'),
        ({"good": np.zeros(4), "bad": None}, 'tensor "bad": expected numbers, found objects: NoneType'),
        ({"good": np.zeros(4), "bad": [[1], [2, 3]]}, 'tensor "bad": .*inhomogeneous'),
        ({"good": np.zeros(4), 7: np.zeros(4)}, "expected the name of a tensor, found 7"),
        ([np.zeros(4)], "expected arrays by name, found list"),
        (np.zeros(4), "expected arrays by name, found ndarray"),
    ],
    ids=["objects", "none", "ragged", "number", "list", "array"],
)
def test_what_cannot_be_written_is_named_and_leaves_no_file(tmp_path: pathlib.Path, tensors: Any, what: str) -> None:
    with pytest.raises(RoleError, match=what):
        TensorWriter(store_in(tmp_path), "rollout-0").write(tensors)
    assert not list(tmp_path.iterdir())


def test_a_new_engine_removes_what_its_predecessor_did_not_announce(tmp_path: pathlib.Path) -> None:
    for engine in ("rollout-1", "rollout-10"):
        TensorWriter(store_in(tmp_path), engine).write({"x": np.zeros(4)})
    taken = tmp_path / ".1"
    taken.touch()
    TensorWriter(store_in(tmp_path), "rollout-1")
    assert [p.name.split(".")[0] for p in tmp_path.iterdir() if p != taken] == ["rollout-10"]
    assert taken.exists()
    TensorWriter(store_in(tmp_path / "of-another-host"), "rollout-1")  # may have responses without tensors


class Engine(temper.Engine):
    tensors: ClassVar[Any] = {"x": np.arange(3)}

    def load(self, version: int, weights: temper.Weights) -> None:
        pass

    def generate(self, requests: list[temper.Request]) -> Any:
        for r in requests:
            yield r.done([2, 1], [-1.0, -0.5], tensors=self.tensors)


def generated(activity: ActivityLog, folder: str) -> m.GeneratedItem:
    sent: list[Any] = []
    actor = RolloutActor(user(Engine, "rollout", tensors=m.TensorPlace(folder=folder)), activity, sent.append)
    actor._version = 0
    actor.on_message(m.Generate(1, np.array([3], np.int32), [m.GenerateItem(5, np.array([], np.int32))]))
    actor.work()
    return next(x for x in sent if isinstance(x, m.Generated)).items[0]


def test_a_response_describes_its_tensors(tmp_path: pathlib.Path, activity: ActivityLog) -> None:
    item = generated(activity, str(tmp_path))
    [t] = item.tensors
    assert (t.name, t.dtype, t.shape, t.bytes) == ("x", "int64", [3], 24)
    assert np.array_equal(np.fromfile(tmp_path / t.file, np.int64), [0, 1, 2])


def test_a_response_whose_tensors_do_not_fit_fails(
    tmp_path: pathlib.Path, activity: ActivityLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    item = generated(activity, str(tmp_path))
    assert item.finish is m.FinishReason.FAILED
    assert item.failure == f"its tensors: {tmp_path}: No space left on device, for 0 s (payloads.wait)"
    assert not item.tensors and not list(tmp_path.iterdir())


def test_an_engine_waits_for_space(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, refused = os.write, []

    def full_at_first(fd: int, data: Any) -> int:
        if len(refused) < 3:
            refused.append(fd)
            raise OSError(28, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr("os.write", full_at_first)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    [described] = TensorWriter(ShmStore(str(tmp_path), wait=60), "rollout-0").write({"x": np.arange(3)})
    assert len(refused) == 3
    assert np.array_equal(np.fromfile(tmp_path / described.file, np.int64), [0, 1, 2])


def test_only_what_is_busy_is_tried_again(tmp_path: pathlib.Path) -> None:
    def fails() -> None:
        raise StoreError("no such folder")

    with pytest.raises(StoreError, match=r"^no such folder$"):
        patiently(ShmStore(str(tmp_path), wait=60), fails)


def test_waiting_for_a_store_has_a_deadline(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def fails() -> None:
        raise Busy("full")

    with pytest.raises(Busy, match=r"^full, for 2 s \(payloads.wait\)$"):
        patiently(ShmStore(str(tmp_path), wait=2), fails)
    assert 2 <= now[0] < 3


@pytest.mark.parametrize("tensors", [np.zeros(2), [], {"x": None}])
def test_the_engine_and_response_of_what_are_no_tensors_are_named(
    tmp_path: pathlib.Path, activity: ActivityLog, monkeypatch: pytest.MonkeyPatch, tensors: Any
) -> None:
    monkeypatch.setattr(Engine, "tensors", tensors)
    with pytest.raises(RoleError, match=r"^Engine, response 5: tensors: .*expected"):
        generated(activity, str(tmp_path))


def test_an_engine_on_another_host_cannot_have_tensors(activity: ActivityLog) -> None:
    with pytest.raises(RoleError, match="orchestrator's host"):
        generated(activity, "")
