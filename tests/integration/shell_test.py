"""Completion in real shells, the manual page in `man`, and the help of every command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

#: Loads the script as a user's start file would, asks the shell for what may follow the words, and prints a line each.
BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
complete -p temper >/dev/null || exit 1
_temper
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
autoload -Uz compinit; compinit -D -u
source "$1"; shift
[[ $_comps[temper] == _temper ]] || exit 1
compadd() { [[ $1 == -- ]] && shift; print -l -- ${(M)@:#${words[CURRENT]}*} }
_files() { print -l -- *(N) }
words=("$@"); CURRENT=$#
_temper
"""
FISH = """
source $argv[1]
complete -C (string join -- ' ' $argv[2..])
"""


@pytest.fixture(scope="module")
def scripts(temper: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        made = subprocess.run([temper, "completion", shell], capture_output=True, text=True, check=True, timeout=60)
        (folder / shell).write_text(made.stdout)
    (folder / "a-file").touch()
    return folder


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_their_flags(shell: str, temper: str, scripts: Path) -> None:
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"no {shell}")

    def offered(*words: str) -> set[str]:
        start = [program, "--norc", "-c", BASH, "bash"] if shell == "bash" else (
            [program, "-f", "-c", ZSH, "zsh"] if shell == "zsh" else [program, "--no-config", "-c", FISH])
        path = f"{Path(temper).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            [*start, str(scripts / shell), *words], capture_output=True, text=True, timeout=60, cwd=scripts,
            env={**os.environ, "PATH": path, "HOME": str(scripts), "TERM": "dumb"})
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    assert offered("temper", "ru") == {"run", "runs"}
    assert {"whatif", "tune", "completion", "man"} <= offered("temper", "")
    assert offered("temper", "run", "--dash") == {"--dashboard"}
    assert offered("temper", "whatif", "--k") == {"--keep"}
    assert "a-file" in offered("temper", "report", "a-f")


def commands(temper: str) -> list[str]:
    script = subprocess.run([temper, "completion", "bash"], capture_output=True, text=True, check=True, timeout=60).stdout
    return re.findall(r'compgen -W "([a-z ]+)"', script)[0].split()


def test_the_help_has_every_command_once_under_a_heading_and_says_codes_and_variables(temper: str) -> None:
    text = subprocess.run([temper, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    lists, end = text.split("\nSet up:\n")[1].split("\nHelp for one command:")
    listed = re.findall(r"^  ([a-z]+)(?:, [a-z]+)? ", lists, re.M)
    assert sorted(listed) == sorted(commands(temper))
    assert re.search(r"^  130 +stopped on request$", end, re.M)
    for variable in ("TEMPER_CONFIGS", "TEMPER_CACHE", "TEMPER_PYTHON", "NO_COLOR"):
        assert variable in end


def test_the_help_of_every_command_has_an_example_of_it(temper: str) -> None:
    assert len(commands(temper)) > 25
    for command in commands(temper):
        text = subprocess.run([temper, command, "--help"], capture_output=True, text=True, timeout=60).stdout
        assert f"\n  temper {command} " in text or text.endswith(f"\n  temper {command}\n"), command
        # An example has no flag that the command does not know.
        examples = text.split("Examples:")[1]
        known = set(re.findall(r"--[a-z][a-z-]*", text.split("Examples:")[0]))
        assert set(re.findall(r" (--[a-z][a-z-]*)", examples)) <= known, (command, examples)


def test_help_fits_80_columns(temper: str) -> None:
    for words in ([], *([command] for command in commands(temper))):
        text = subprocess.run([temper, *words, "--help"], capture_output=True, text=True, timeout=60).stdout
        assert [line for line in text.splitlines() if len(line) > 80] == [], words


def test_the_version_is_said(temper: str) -> None:
    said = subprocess.run([temper, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert re.match(r"temper \d+\.\d+", said)


def test_man_shows_every_command_without_a_complaint(temper: str, tmp_path: Path) -> None:
    page = tmp_path / "temper.1"
    page.write_bytes(subprocess.run([temper, "man"], capture_output=True, check=True, timeout=60).stdout)
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("no man, or no groff")
    shown = subprocess.run(
        ["man", "--warnings", "-l", str(page)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "MANWIDTH": "100", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    assert shown.returncode == 0
    assert shown.stderr == ""
    for command in commands(temper):
        assert re.search(rf"^   {command}$", shown.stdout, re.M), command
    assert "--dashboard" in shown.stdout
