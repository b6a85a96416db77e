"""The package is a house with one direction of flow: no circle of imports, hidden ones included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules(folder: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the package that a file imports anywhere: at its top, in a function, for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from package import module` is an import of the module, `from module import name` of its home.
            found |= {
                name if (name := f"{node.module}.{alias.name}") in known else node.module
                for alias in node.names
            }
    return found & known.keys()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            part = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(part) > 1:
                found.append(sorted(part))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return found


def graph_of(folder: Path) -> dict[str, set[str]]:
    known = modules(folder)
    return {name: imports(path, known) - {name} for name, path in known.items()}


KNOWN = [["tracer.validate.folder", "tracer.validate.scaling"]]
"""Circles that are still to be opened."""


def test_no_circles() -> None:
    assert [c for c in circles(graph_of(ROOT / "tracer")) if c not in KNOWN] == []


@pytest.mark.parametrize(
    "text",
    [
        "from package.a import x",
        "def f():\n    from package import a\n    return a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import package.a",
    ],
)
def test_a_circle_is_found(tmp_path: Path, text: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from package.b import f\n")
    (package / "c.py").write_text("from package.a import f\n")
    (package / "b.py").write_text(text)
    assert circles(graph_of(package)) == [["package.a", "package.b"]]
