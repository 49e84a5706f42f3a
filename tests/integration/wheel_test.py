"""The package as others get it: a wheel and a source distribution, each in an empty environment."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from environment import ROOT
from runs import Run

pytestmark = [pytest.mark.needs("build"), pytest.mark.timeout(600)]

CONFIG = """
name: pasted
policy: synthetic
steps: 3
task: {kind: addition, digits: 1}
algorithm: {groups_per_update: 2, responses_per_group: 2, minibatches: 1}
sampling: {max_new_tokens: 4}
placement: {mode: separate, cards: 2}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT / "python", check=True,
                   capture_output=True, timeout=120)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": source}


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_in_an_empty_environment_the_example_of_its_page_runs_as_pasted(kind, built, temper, tmp_path):
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment/bin/python"
    installed = subprocess.run([python, "-I", "-m", "pip", "install", "-q", str(built[kind])], capture_output=True, text=True,
                               timeout=300)
    assert installed.returncode == 0, installed.stderr
    page = (ROOT / "python/README.md").read_text()
    (code,) = re.findall(r"```python\n(# my_roles\.py.*?)```", page, re.DOTALL)
    (section,) = re.findall(r"```yaml\n(rollout:.*?)```", page, re.DOTALL)
    (tmp_path / "my_roles.py").write_text(code)
    with Run(temper, tmp_path, CONFIG + section, tree=False, TEMPER_PYTHON=str(python)) as run:
        run.finish()
        assert run.updates() == 3
        run.assert_audit_is_clean()
    where = subprocess.run([python, "-I", "-c", "import temper; print(temper.__file__)"], capture_output=True, text=True,
                           timeout=60, cwd=tmp_path)
    assert str(tmp_path) in where.stdout
