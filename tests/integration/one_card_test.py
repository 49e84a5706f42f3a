"""bench/gpu/one_card.py, which is for a machine with a GPU, on a processor with a tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from environment import ROOT

pytestmark = [pytest.mark.needs("torch", "transformers", "safetensors"), pytest.mark.timeout(600)]


def test_roles_on_one_card_give_their_memory_back_and_take_it_again(temper, tmp_path):
    words = ["--shape", "tiny", "--device", "cpu", "--updates", "3", "--groups", "2", "--group", "4", "--prompt", "8",
             "--response", "16", "--json"]
    done = subprocess.run([sys.executable, str(ROOT / "bench/gpu/one_card.py"), *words], capture_output=True, text=True,
                          timeout=500, cwd=tmp_path, env={**os.environ, "TEMPER": temper})
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["colocated", "fused"]
    for mode, roles in (("colocated", ["rollout", "trainer"]), ("fused", ["reference", "rollout", "trainer"])):
        got = found[mode]
        assert sorted(got["given_back"]) == roles
        for role, (held, left, again) in got["given_back"].items():
            assert left == 0 and 0 < again <= held, (mode, role)
        assert got["seconds"] > 0 and got["states"]["decode"] > 0 and got["states"]["train"] > 0
        assert 0 < got["forecast"]["rollout"] < got["forecast"]["time"]
    assert found["fused"]["states"]["reference"] > 0
    assert found["colocated"]["states"]["reference"] == 0
