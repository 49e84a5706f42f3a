"""bench/tensors.py and bench/peers/stores.py: short runs, whose figures have to be possible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from environment import ROOT

sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/peers")]

from stores import STORES, stores_environment  # noqa: E402
from tensors import Case, per_response, run, socket_bytes, traced_bytes  # noqa: E402

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def program(temper, monkeypatch):
    monkeypatch.setenv("TEMPER", temper)


@pytest.mark.parametrize("case", [Case(steps=12), Case(steps=12, size=1 << 16, engines=2), Case(steps=12, python=False)],
                         ids=["no tensor", "two engines", "roles of temper"])
def test_a_run_has_a_rate_and_memory(case):
    found = run(case)
    assert found.rate > 0
    assert 1 < found.memory < 1000


def test_processor_time_is_that_of_the_steps_after_the_first_ones():
    samples = [(0, 1.0), (4, 2.0), (5, 3.0), (9, 7.0), (20, 9.0)]
    assert per_response(samples, Case(groups=1, responses=2, steps=20)) == 4.0 / (2 * 4)
    assert per_response(samples[:3], Case(steps=20)) != per_response(samples[:3], Case(steps=20))  # NaN


def test_bytes_are_summed_by_direction(tmp_path):
    (tmp_path / "trace.1").write_text('recvfrom(9, ""..., 8192, 0, NULL, NULL) = 100\n'
                                      "recvfrom(9, 0x55, 8192, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)\n"
                                      'sendto(9, ""..., 7, MSG_NOSIGNAL, NULL, 0) = 7\n')
    (tmp_path / "trace.2").write_text("sendmsg(5, {msg_name=NULL}, 0) = 20\n")
    assert traced_bytes(tmp_path) == (100, 27)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_tokens_pass_through_the_orchestrator_and_tensors_do_not():
    received, sent = socket_bytes(Case(steps=200, groups=2), 0)
    ids = 4 * 256  # received with log-probs; sent to the reward actor, and with log-probs to the trainer
    assert 2 * ids < 1.1 * received < 2.6 * ids
    assert 3 * ids < 1.1 * sent < 4 * ids
    with_tensor, _ = socket_bytes(Case(steps=200, groups=2, size=1 << 16), 0)
    assert abs(with_tensor - received) < 1000 < 1 << 16


@pytest.mark.skipif(not stores_environment().report.exists(), reason="`./x bench stores` makes the environment of Ray and TransferQueue")
def test_all_stores_are_compared(temper):
    words = ["--runs", "1", "--seconds", "0.1", "--only", "256,0,8", "16,1024,8"]
    done = subprocess.run([sys.executable, str(ROOT / "bench/peers/stores.py"), *words], capture_output=True, text=True,
                          timeout=550, env={**os.environ, "TEMPER": temper})
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| (256|16) \| (?:0|1,024) \| 8 \| ([^|]+) \| ([\d,]+) ", done.stdout, re.MULTILINE)
    assert [store for tokens, store, _ in rows if tokens == "256"] == list(STORES)
    assert [store for tokens, store, _ in rows if tokens == "16"] == [s for s in STORES if s != "temper, native"]
    assert all(int(rate.replace(",", "")) > 0 for *_, rate in rows)
