"""The package has no import cycle: neither at the top of a module, nor inside a function, nor for types."""

from __future__ import annotations

import ast
import graphlib
import pathlib

import temper

ROOT = pathlib.Path(temper.__file__).parent


def module_of(file: pathlib.Path) -> str:
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(file: pathlib.Path, known: set[str]) -> set[str]:
    """Modules of the package that a file imports. Importing a name of a package counts as its `__init__`."""
    package = module_of(file) if file.name == "__init__.py" else module_of(file).rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                found.add(name if name in known else base)
    return found & known


def test_the_package_has_no_import_cycle() -> None:
    files = sorted(ROOT.rglob("*.py"))
    known = {module_of(file) for file in files}
    assert {"temper.loop", "temper.roles", "temper.switching", "temper.training"} <= known
    graph = {module_of(file): imports_of(file, known) for file in files}
    assert "temper.training" in graph["temper.loop"]  # the graph is not empty
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError and names the modules


def test_shared_types_are_exported_by_roles() -> None:
    from temper import role_types, roles

    for name in ("Arrays", "Batch", "Memory", "Role", "Row"):
        assert getattr(roles, name) is getattr(role_types, name)
        assert getattr(temper, name) is getattr(role_types, name)
