"""What `harvest show` prints: the text of one stage of an op."""

from __future__ import annotations

from pathlib import Path

from tracer.emit import manifest
from tracer.emit.errors import NoFolder, UnknownOpFolder
from tracer.emit.manifest import natural
from tracer.emit.naming import folder_name
from tracer.report.errors import UnreadableFile

_PATTERNS = {
    "inductor": "inductor_kernel.py",
    "triton": "triton_kernel.py",
    "wrapper": "wrapper.py",
    "ktir": "*.ktir",
    "test": "test_ktir_*.py",
}


def find(out: Path, op: str, model: str | None) -> list[tuple[str, str]]:
    """(model, op) of every harvested op of that name, or whose name holds it, in natural order.

    Raises:
        UnknownOpFolder: there is none.
    """
    everything = [
        (owner, name)
        for owner, entry in manifest.read(out).items()
        for name in entry.ops
        if model in (None, owner)
    ]
    exact = [pair for pair in everything if pair[1] == op]
    found = exact or [pair for pair in everything if op in pair[1] and _exists(out, pair)]
    if not found:
        raise UnknownOpFolder(out=out, name=op)
    return sorted(found, key=lambda pair: (natural(pair[0]), natural(pair[1])))


def text(out: Path, found: tuple[str, str], part: str) -> str:
    """What a part of the op's folder says; for `entry` the registry's entry.

    Raises:
        UnknownOpFolder: the op has no folder.
    """
    model, op = found
    if part == "entry":
        return manifest.dump({op: manifest.read(out)[model].ops[op].to_json()})
    files = sorted((out / model / folder_name(op)).glob(_PATTERNS[part]))
    if not files:
        raise UnknownOpFolder(out=out, name=op)
    return "".join(file.read_text(encoding="utf-8") for file in files)


def kernel_folder(path: Path) -> Path:
    """The op's folder that `path` is, or is a file of.

    Raises:
        UnreadableFile: there is nothing at `path`.
        NoFolder: it lacks what the kernels are read from.
    """
    if not path.exists():
        raise UnreadableFile(file=path, detail="no such file or directory")
    folder = path if path.is_dir() else path.parent
    if lacking := [name for name in ("wrapper.py", "triton_kernel.py") if not (folder / name).is_file()]:
        raise NoFolder(folder=folder, detail=f"it has no {lacking[0]}")
    return folder


def _exists(out: Path, pair: tuple[str, str]) -> bool:
    return (out / pair[0] / folder_name(pair[1])).is_dir()
