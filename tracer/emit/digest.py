"""Digests of texts, of folders, and of the tool itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

DIGITS = 32
"""Hexadecimal digits kept of a SHA-256: 128 bits, no accidental collision."""

GENERATED = (".py", ".ktir")
"""Suffixes of the files that count as a folder's content."""


def digest(text: str) -> str:
    """Digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def files_digest(files: Mapping[str, str]) -> str:
    """Digest of a folder from the digests of its files, by name."""
    return digest("".join(f"{name} {files[name]}\n" for name in sorted(files)))


def read_digests(folder: Path) -> dict[str, str]:
    """Digest of every generated file that lies in a folder, by name; empty where there is no folder."""
    if not folder.is_dir():
        return {}
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
        for path in sorted(folder.iterdir())
        if path.suffix in GENERATED and path.is_file()
    }


def folder_digest(folder: Path) -> str:
    """Digest that evidence names: of the Python and KTIR files that lie in the folder now."""
    return files_digest(read_digests(folder))


@cache
def tool_digest() -> str:
    """Digest of the tool's own sources and templates: what a resumed run must agree in."""
    package = Path(__file__).resolve().parent.parent
    sources = [p for suffix in ("*.py", "*.json", "*.j2") for p in package.rglob(suffix)]
    from tracer.emit.templates import TEMPLATES

    sources += TEMPLATES.rglob("*.j2")
    parts = {
        f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in sources
    }
    return files_digest(parts)
