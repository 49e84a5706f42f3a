"""Makes a wheel of torch that was built for CUDA usable on a machine without CUDA's libraries.

    python -m pip install --no-deps torch==2.13.0
    python python/tools/torch_without_cuda.py        # the torch of this interpreter

PyPI has no wheel of torch for CPUs only: the one there is asks for several GB of CUDA libraries when it is
loaded, also where nothing will ever call them. This program puts an empty library in the place of each one that
is missing, in the folder of torch's own libraries. Every function in it returns cudaErrorNoDevice (100), so that
`torch.cuda.is_available()` is False. It also takes these packages off torch's list of requirements, so that
pip does not fetch them with the next package that needs torch. Where all libraries are there, nothing changes.

Needs a C compiler (cc) and readelf. Exit code 1, with the reason on stderr: it could not be done.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from pathlib import Path

#: Functions whose result is a text.
TEXTS = re.compile(r"(Get|get)\w*(String|Name)$|strerror$")

#: Requirements of torch that only CUDA needs.
UNNEEDED = re.compile(r"Requires-Dist: (nvidia-|cuda-|triton)", re.IGNORECASE)


def readelf(what: str, library: Path) -> list[str]:
    """Lines of `readelf -W what library`."""
    done = subprocess.run(
        ["readelf", "-W", what, str(library)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


class Library:
    """What one shared library needs and has."""

    def __init__(self, path: Path):
        dynamic = "\n".join(readelf("-d", path))
        self.needs = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        #: version of a symbol -> library that must have it
        self.version_of: dict[str, str] = {}
        file = ""
        for line in readelf("-V", path):
            if found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif (found := re.search(r"Name: (\S+) +Flags", line)) and file:
                self.version_of[found[1]] = file
        #: (name, version or "") that others must define
        self.wants: set[tuple[str, str]] = set()
        self.has: set[str] = set()
        for line in readelf("--dyn-syms", path):
            words = line.split()
            if len(words) < 8 or not words[0].endswith(":"):
                continue
            name, _, version = words[7].replace("@@", "@").partition("@")
            if words[6] != "UND":
                self.has.add(name)
            elif words[4] == "GLOBAL":
                self.wants.add((name, version))


def machine_of(binary: Path) -> bytes:
    """Word size, byte order and instruction set that the head of an ELF file names."""
    with open(binary, "rb") as file:
        head = file.read(20)
    return head[4:6] + head[18:20]


def system_libraries() -> dict[str, Path]:
    """name -> file, of what the loader finds without help. A system may have some for another machine too (those
    of 32 bits): their C++ names differ."""
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    ours = machine_of(Path(sys.executable).resolve())
    found = [
        (name, Path(path))
        for name, path in re.findall(r"^\s*(\S+) \(.*=> (\S+)$", known, re.MULTILINE)
    ]
    return {name: path for name, path in found if path.exists() and machine_of(path) == ours}


def symbols_of(
    missing: list[str], libraries: list[Library], others: list[Library]
) -> dict[str, dict[str, set[str]]]:
    """library -> version -> names that it must define. A name without version that nothing defines is given to
    the first missing library of the one that wants it."""
    result: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in missing}
    defined = set().union(*(library.has for library in libraries + others))
    for library in libraries:
        asks = [name for name in library.needs if name in result]
        for version, file in library.version_of.items():
            if file in result:
                result[file][version] = result[file][version]
        for name, version in library.wants:
            file = library.version_of.get(version, "")
            if version and file in result:
                result[file][version].add(name)
            elif (
                not version
                and asks
                and name not in defined
                and not name.lstrip("_").startswith("Py")
            ):
                result[asks[0]][""].add(name)
    return result


def compile_stub(library: Path, versions: dict[str, set[str]]) -> None:
    source = ['static const char text[] = "this torch has no CUDA libraries";']
    for name in sorted(set().union(*versions.values()) if versions else set()):
        source.append(
            f"const char* {name}(void) {{ return text; }}"
            if TEXTS.search(name)
            else f"int {name}(void) {{ return 100; }}"
        )
    script = [
        f"{version} {{ {' '.join(f'{name};' for name in sorted(names))} }};".replace(
            "{ ", "{ global: "
        )
        if names
        else f"{version} {{ }};"
        for version, names in versions.items()
        if version
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stub.c").write_text("\n".join(source) + "\n")
        (Path(folder) / "stub.map").write_text("\n".join(script) + "\n")
        subprocess.run(
            [
                "cc",
                "-shared",
                "-fPIC",
                "-O1",
                "-fno-builtin",
                "-w",
                "-nostdlib",
                f"-Wl,-soname,{library.name}",
                *(["-Wl,--version-script,stub.map"] if script else []),
                "-o",
                str(library),
                "stub.c",
            ],
            check=True,
            cwd=folder,
        )


def drop_requirements(packages: Path) -> None:
    for metadata in packages.glob("torch-*.dist-info/METADATA"):
        head, _, body = metadata.read_text().partition("\n\n")
        kept = [line for line in head.splitlines() if not UNNEEDED.match(line)]
        metadata.write_text("\n".join(kept) + "\n\n" + body)


def main() -> int:
    packages = Path(sysconfig.get_paths()["purelib"])
    folder = packages / "torch" / "lib"
    if not folder.is_dir():
        print(
            f"torch_without_cuda: no torch in {packages}: install it with --no-deps first",
            file=sys.stderr,
        )
        return 1
    own = {path.name for path in folder.glob("*.so*")}
    libraries = [Library(path) for path in sorted(folder.glob("*.so*"))]
    system = system_libraries()
    needed = sorted({name for library in libraries for name in library.needs} - own)
    missing = [name for name in needed if name not in system]
    others = [Library(system[name]) for name in needed if name in system]
    try:
        for name, versions in symbols_of(missing, libraries, others).items():
            compile_stub(folder / name, versions)
    except (OSError, subprocess.CalledProcessError) as error:
        print(
            f"torch_without_cuda: an empty library could not be compiled: {error}", file=sys.stderr
        )
        return 1
    drop_requirements(packages)
    print(
        f"torch_without_cuda: {len(missing)} libraries of CUDA are missing, empty ones stand for them"
        if missing
        else "torch_without_cuda: every library is there"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
