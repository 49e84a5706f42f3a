"""Starts of roles that are slow, that hang, and that cannot succeed."""

from __future__ import annotations

import json
import pathlib
import subprocess
import threading
import time

import pytest
from test_run import TEMPER, WELL, Run, python

from temper.errors import NotFinite, RoleError, is_permanent
from temper.process import ProgressMeter
from temper.runtime import failure_of

PERMANENT = [
    ImportError("libcuda.so.1"),
    ModuleNotFoundError("No module named 'torch'"),
    SyntaxError("invalid syntax"),
    IndentationError("unexpected indent"),
    AttributeError("no attribute 'from_pretrained'"),
    NameError("name 'np' is not defined"),
    UnboundLocalError("before assignment"),
    TypeError("unexpected keyword argument"),
    RoleError("expected a subclass of temper.Engine"),
]
PASSING = [
    OSError("Connection refused"),
    FileNotFoundError("shared/weights"),
    TimeoutError("the server"),
    MemoryError(),
    RuntimeError("CUDA error: device busy"),
    ValueError("Expecting value: line 1"),
    KeyError("model"),
    ConnectionResetError(),
    BlockingIOError(),
    AssertionError(),
]


@pytest.mark.parametrize("error", PERMANENT, ids=lambda e: type(e).__name__)
def test_a_mistake_in_a_role_would_be_met_again(error: Exception) -> None:
    assert is_permanent(error)


@pytest.mark.parametrize("error", PASSING, ids=lambda e: type(e).__name__)
def test_an_error_of_the_surroundings_may_pass(error: Exception) -> None:
    assert not is_permanent(error)


@pytest.mark.parametrize(
    ("error", "not_finite"),
    [
        (NotFinite("step 3: the new weights are not finite"), True),
        (RoleError("the loss is nan"), False),
        (ValueError("loss is not finite"), False),
        (FloatingPointError("inf"), False),
    ],
)
def test_a_failure_reports_not_finite_by_its_type_only(error: Exception, not_finite: bool) -> None:
    assert failure_of(error, built=True).not_finite == not_finite
    assert not failure_of(error, built=True).permanent
    assert failure_of(error, built=False).permanent == isinstance(error, RoleError)


def test_work_of_another_thread_is_progress_and_that_of_its_own_is_not() -> None:
    meter = ProgressMeter()
    meter.has_progressed()

    def work(seconds: float) -> None:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    work(0.01)
    own = meter.has_progressed()
    thread = threading.Thread(target=work, args=(0.05,))
    thread.start()
    thread.join()
    assert meter.has_progressed()
    assert not own


# --- In a run

needs_temper = pytest.mark.skipif(not TEMPER, reason="TEMPER names no program to run")

#: Found before the run starts: what to use, and the module role_x.
UNUSABLE = {
    "no_module": ("nowhere:Engine", ""),
    "no_class": ("role_x:Nothing", ""),
    "no_colon": ("role_x", ""),
    "not_an_engine": ("role_x:Engine", "class Engine: pass\n"),
    "syntax": ("role_x:Engine", "class Engine(:\n"),
    "indentation": ("role_x:Engine", "class Engine:\npass\n"),
    "import": ("role_x:Engine", "import nowhere_at_all\n"),
    "import_name": ("role_x:Engine", "from os import nothing_of_it\n"),
    "attribute": ("role_x:Engine", "import os\nos.nothing_of_it\n"),
    "name": ("role_x:Engine", "nothing_of_it\n"),
}
#: Found by the start: how a class fails when an object of it is made.
FAILING = {
    "arguments": "def __init__(self, needed): pass",
    "role_error": "def __init__(self): raise temper.RoleError('no weights here')",
    "import": "def __init__(self): import nowhere_at_all",
    "attribute": "def __init__(self): self.nothing_of_it()",
    "name": "def __init__(self): nothing_of_it()",
}


def events(run: Run) -> list[dict[str, object]]:
    said = subprocess.run(
        [TEMPER, "events", str(run.run_dir)], capture_output=True, text=True, check=True
    )
    return [json.loads(line)["event"] for line in said.stdout.splitlines()]


def count(run: Run, name: str) -> int:
    return sum(1 for event in events(run) if name in event)


@needs_temper
@pytest.mark.parametrize("name", UNUSABLE)
def test_a_role_that_cannot_be_used_starts_no_run(tmp_path: pathlib.Path, name: str) -> None:
    use, code = UNUSABLE[name]
    (tmp_path / "role_x.py").write_text(code)
    run = Run(tmp_path, **{**WELL, "rollout": python(use)})
    status, output = run.wait()
    assert status == 2, output
    assert "rollout.engine.use" in output
    assert not run.run_dir.exists()


@needs_temper
@pytest.mark.parametrize("role", ["rollout", "trainer"])
def test_roles_that_need_another_package_for_their_store_start_no_run(
    tmp_path: pathlib.Path, role: str
) -> None:
    (tmp_path / "redis.py").write_text("raise ImportError\n")
    sets = ["payloads.store=redis", "payloads.redis=127.0.0.1:1"]
    run = Run(tmp_path, sets, **{role: WELL[role]})
    status, output = run.wait()
    assert status == 2, output
    assert "payloads.store" in output and "pip install" in output
    assert not run.run_dir.exists()


@needs_temper
@pytest.mark.parametrize("name", FAILING)
def test_a_start_that_cannot_succeed_is_not_repeated(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "role_x.py").write_text(
        f"import temper\nclass Engine(temper.Engine):\n    {FAILING[name]}\n"
        "    def generate(self, requests): yield from ()\n"
    )
    run = Run(tmp_path, restarts=3, **{**WELL, "rollout": python("role_x:Engine")})
    status, output = run.wait()
    assert status == 1, output
    assert "rollout-0" in output
    assert count(run, "actor_down") == 1, output


@needs_temper
def test_a_start_that_may_succeed_later_is_repeated(tmp_path: pathlib.Path) -> None:
    (tmp_path / "role_x.py").write_text(
        "import os, well\n"
        "class Engine(well.Engine):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        if not os.path.exists('there'):\n"
        "            open('there', 'w').close()\n"
        "            raise OSError('not yet')\n"
    )
    run = Run(tmp_path, **{**WELL, "rollout": python("role_x:Engine")})
    status, output = run.wait()
    assert status == 0, output
    assert count(run, "actor_down") == 1


LOADS = """
import time, well
class Engine(well.Engine):
    def __init__(self):
        super().__init__()
        until = time.monotonic() + 3
        while time.monotonic() < until: pass
"""
HANGS = """
import threading, well
class Engine(well.Engine):
    def __init__(self):
        super().__init__()
        threading.Event().wait()
"""


@needs_temper
def test_one_that_loads_for_long_is_waited_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "role_x.py").write_text(LOADS)
    engines = {**WELL, "rollout": python("role_x:Engine")}
    run = Run(tmp_path, sets=["deadlines.start=2s"], restarts=0, **engines)
    status, output = run.wait()
    assert status == 0, output
    assert count(run, "actor_down") == 0
    assert count(run, "actor_loading") > 0


@needs_temper
def test_one_that_hangs_while_it_loads_is_ended_at_its_deadline(tmp_path: pathlib.Path) -> None:
    (tmp_path / "role_x.py").write_text(HANGS)
    engines = {**WELL, "rollout": python("role_x:Engine")}
    run = Run(tmp_path, sets=["deadlines.start=2s"], restarts=0, **engines)
    status, output = run.wait()
    assert status == 1, output
    assert "deadlines.start" in output
