"""An empty Debian 12 in a folder, in which the package is installed as by a user."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from environment import last_line

MIRROR = "http://deb.debian.org/debian"
FETCH = 1200
#: Mounts of a command are its own, so that nothing is left of them, however it ends.
ENTER = ('mount -t proc proc "$0/proc" && mkdir -p "$0/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm" && '
         'exec chroot --userspec="$1" "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb HOME="$2" '
         'sh -c "cd $2 || exit; $3"')
USER, HOME = "someone", "/home/someone"


class Unable(RuntimeError):
    """It cannot be made here, for a reason that is none of Temper's."""


class Root:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, line: str, user: str = USER) -> list[str]:
        home = HOME if user == USER else "/root"
        return ["unshare", "--mount", "sh", "-c", ENTER, str(self.folder), f"{user}:{user}", home, line.replace('"', '\\"')]

    def run(self, line: str, user: str = USER, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(line, user), capture_output=True, text=True, timeout=timeout)

    def must(self, line: str, status: int = 0, timeout: float = 300) -> str:
        """What it printed, of both kinds."""
        done = self.run(line, timeout=timeout)
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{line}: status {done.returncode}\n{said[-4000:]}"
        return said

    def write(self, name: str, text: str) -> None:
        path = self.folder / HOME[1:] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)


def make(folder: Path) -> Root:
    """As small as debootstrap makes it, with a user."""
    for program in ("debootstrap", "unshare", "chroot"):
        if not shutil.which(program):
            raise Unable(f"no {program}")
    if os.geteuid() != 0:
        raise Unable("only root may make one")
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(folder), MIRROR], capture_output=True,
                          text=True, timeout=FETCH)
    if done.returncode != 0:
        raise Unable(f"debootstrap: {last_line(done.stdout + done.stderr)}")
    folder.chmod(0o755)  # a folder of pytest's is root's alone, and this one is everybody's /
    root = Root(folder)
    made = root.run(f"useradd --create-home {USER}", user="root")
    if made.returncode != 0:
        raise Unable(f"no mounts or no chroot here: {last_line(made.stderr)}")
    return root


def package(build: Path, folder: Path) -> Path:
    """The .deb of a build. That it cannot be made is a failure."""
    subprocess.run(["cpack", "--config", str(build / "CPackConfig.cmake"), "-B", str(folder)], check=True,
                   capture_output=True, timeout=300)
    (deb,) = folder.glob("temper_*.deb")
    return deb


def install(root: Root, deb: Path) -> str:
    """With what the package names as needed and, as apt does by itself, recommended."""
    shutil.copy(deb, root.folder / "tmp" / deb.name)
    for line in ("apt-get update -q", f"DEBIAN_FRONTEND=noninteractive apt-get install -q -y /tmp/{deb.name}"):
        done = root.run(line, user="root", timeout=FETCH)
        if done.returncode != 0 and "Unable to fetch" in done.stderr:
            raise Unable(last_line(done.stderr))
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
