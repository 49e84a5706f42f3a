"""The published package: a wheel and a source distribution, each in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
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


def build(folder: Path, *words: str, **variables: str) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder), *words], cwd=ROOT / "python", check=True,
                   capture_output=True, timeout=120, env={**os.environ, **variables})


def installed(environment: Path, package: Path) -> Path:
    """The Python of an environment of its own that has the package."""
    venv.create(environment, with_pip=True)
    python = environment / "bin/python"
    done = subprocess.run([python, "-I", "-m", "pip", "install", "-q", str(package)], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return python


def pasted(folder: Path) -> str:
    """The configuration of the package's page, whose example is then a module in the folder."""
    page = (ROOT / "python/README.md").read_text()
    (code,) = re.findall(r"```python\n(# my_roles\.py.*?)```", page, re.DOTALL)
    (section,) = re.findall(r"```yaml\n(rollout:.*?)```", page, re.DOTALL)
    (folder / "my_roles.py").write_text(code)
    return CONFIG + section


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("built")
    build(folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": source}


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_in_an_empty_environment_the_example_of_its_page_runs_as_pasted(kind, built, temper, tmp_path):
    python = installed(tmp_path / "environment", built[kind])
    with Run(temper, tmp_path, pasted(tmp_path), tree=False, TEMPER_PYTHON=str(python)) as run:
        run.finish()
        assert run.updates() == 3
        run.assert_audit_is_clean()
    where = subprocess.run([python, "-I", "-c", "import temper; print(temper.__file__)"], capture_output=True, text=True,
                           timeout=60, cwd=tmp_path)
    assert str(tmp_path) in where.stdout


def test_a_wheel_with_programs_brings_them_their_configurations_and_the_python_beside_them(temper, tmp_path):
    prefix = tmp_path / "prefix"
    subprocess.run(["cmake", "--install", str(Path(temper).parents[1]), "--prefix", str(prefix), "--component", "Unspecified"],
                   check=True, capture_output=True, timeout=120)
    build(tmp_path, "-t", "wheel", TEMPER_PREFIX=str(prefix))
    shutil.rmtree(prefix)
    (wheel,) = tmp_path.glob("*-py3-none-linux_*.whl")
    programs = installed(tmp_path / "environment", wheel).parent
    with Run(str(programs / "temper"), tmp_path, pasted(tmp_path), tree=False, TEMPER_PYTHON="") as run:
        run.finish()
        assert run.updates() == 3
        run.assert_audit_is_clean()
    check = subprocess.run([programs / "temper", "check", "quickstart"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert check.returncode == 0, check.stderr
