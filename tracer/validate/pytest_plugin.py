"""The pytest side of generated folders: `--slow`, its marker, and one process per test file under xdist.

Registered through the entry point `pytest11`, so that `pytest harvested/` works from any directory. Imports
neither torch nor Triton.
"""

from __future__ import annotations

from pathlib import Path

import pytest

REGISTRY = "kernels.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow`."""
    group = parser.getgroup("spyre-kernels")
    group.addoption("--slow", action="store_true", default=False, help="run huge ops at their full size too")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and keep the checks of one folder in one process."""
    config.addinivalue_line("markers", "slow: full-size runs of huge ops; selected with --slow")
    config.addinivalue_line("markers", "ktir_cpu: needs the public ktir_cpu simulator")
    # Checks of one folder share inputs and oracle. Other projects' runs are left alone.
    here = config.rootpath
    ours = (here / "harvested" / REGISTRY).exists() or (here / REGISTRY).exists()
    if ours and getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"
    # Two models may have an op of one name, so that test files of one name are no mistake here.
    given = [(Path(config.invocation_params.dir) / arg.split("::")[0]).resolve() for arg in config.args]
    if config.option.importmode == "prepend" and any(_is_harvested(path) for path in given):
        config.option.importmode = "importlib"


def _is_harvested(path: Path) -> bool:
    """Whether a path is a tree of folders, or lies in one."""
    return any((parent / REGISTRY).exists() for parent in (path, *path.parents[:3]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is marked slow unless `--slow`."""
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="runs a huge op at its full size; select it with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
