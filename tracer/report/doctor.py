"""Whether this installation can harvest: versions, private names, templates, optional parts."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

DISTRIBUTION = "spyre-kernels"
OPTIONAL = {"ktir-cpu": "T2 on the public simulator"}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. An optional part that is absent is `ok`, too."""

    name: str
    ok: bool
    detail: str


def examine() -> list[Check]:
    """Every check, in order of use."""
    with _without_collection():
        return _examine()


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    # The time goes into importing thousands of modules, whose objects all stay: looking for garbage among
    # them, then and at the end of the process, is a third of it.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _examine() -> list[Check]:
    checks = [_python(), *_requirements()]
    checks.append(_private_names())
    checks.append(_templates())
    checks += [
        Check(name, True, f"{_version(name) or 'absent'} (optional: {use})") for name, use in OPTIONAL.items()
    ]
    return checks


def _python() -> Check:
    found = sys.version_info
    return Check(
        "python", found >= (3, 11), f"{found.major}.{found.minor}.{found.micro}, needs 3.11 or later"
    )


def _requirements() -> Iterator[Check]:
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield Check(DISTRIBUTION, False, "not installed, so what it requires is unknown; run `pip install .`")
        return
    for requirement in requirements:
        if "extra ==" in requirement:
            continue
        name, wanted = re.split(
            r"(?<=[A-Za-z0-9_-])(?=[=<>! ]|$)", requirement.split(";")[0].strip(), maxsplit=1
        )
        found = _version(name)
        pinned = wanted.strip().removeprefix("==") if wanted.strip().startswith("==") else None
        # A local build tag such as 2.13.0+cpu is the same release.
        ok = found is not None and (pinned is None or found.split("+")[0] == pinned)
        yield Check(name, ok, f"{found or 'absent'}, needs {wanted.strip() or 'any'}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _private_names() -> Check:
    try:
        from tracer.capture import missing_names

        missing = missing_names()
    except ImportError as error:
        return Check("private names", False, f"capture cannot be imported: {error}")
    return Check(
        "private names",
        not missing,
        f"moved: {', '.join(missing)}" if missing else "all where capture expects them",
    )


def _templates() -> Check:
    from tracer.emit.templates import TEMPLATES

    count = len(list(TEMPLATES.glob("*.j2")))
    return Check("templates", count > 0, f"{count} found")
