"""What `harvest show` prints: the text of one stage of an op."""

from __future__ import annotations

from pathlib import Path

from tracer.emit import manifest
from tracer.emit.errors import NoFolder, NoPart, UnknownModelFolder, UnknownOpFolder
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

_READ = ("wrapper.py", "triton_kernel.py")
"""Files that a folder's kernels are read from."""


def find(out: Path, op: str, model: str | None) -> list[tuple[str, str]]:
    """(model, op) of every harvested op of that name, or whose name holds it, in natural order.

    Raises:
        UnknownModelFolder: `model` was not harvested into `out`.
        UnknownOpFolder: there is no such op.
    """
    registry = manifest.read(out)
    if model is not None and model not in registry:
        known = f"; there is {', '.join(registry)}" if registry else "; there is none"
        raise UnknownModelFolder(out=out, model=model, known=known)
    everything = [
        (owner, name) for owner, entry in registry.items() for name in entry.ops if model in (None, owner)
    ]
    exact = [pair for pair in everything if pair[1] == op]
    found = exact or [pair for pair in everything if op in pair[1] and _exists(out, pair)]
    if not found:
        raise UnknownOpFolder(out=out, name=op, model=f" of {model}" if model else "")
    return sorted(found, key=lambda pair: (natural(pair[0]), natural(pair[1])))


def text(out: Path, found: tuple[str, str], part: str) -> str:
    """What a part of the op's folder says; for `entry` the registry's entry.

    Raises:
        NoPart: the op has no kernel, or the file is gone.
    """
    model, op = found
    entry = manifest.read(out)[model].ops[op]
    if part == "entry":
        return manifest.dump({op: entry.to_json()})
    folder = out / model / folder_name(op)
    files = sorted(folder.glob(_PATTERNS[part]))
    if not files and entry.status != "ok":
        detail = f"its status is {entry.status}"
        raise NoPart(name=op, model=model, part=part, detail=detail, try_="--stage entry says more.")
    if not files:
        detail = f"{folder / _PATTERNS[part]} is gone"
        raise NoPart(name=op, model=model, part=part, detail=detail, try_="harvest the op again.")
    return "".join(file.read_text(encoding="utf-8") for file in files)


def kernel_folder(path: Path) -> Path:
    """The op's folder that `path` is, or whose triton_kernel.py it is.

    Raises:
        UnreadableFile: there is nothing at `path`.
        NoFolder: it lacks what the kernels are read from.
    """
    if not path.exists():
        raise UnreadableFile(file=path, detail="no such file or directory")
    if not path.is_dir() and path.name not in _READ:
        raise NoFolder(folder=path, detail="it is a file")
    folder = path if path.is_dir() else path.parent
    if lacking := [name for name in _READ if not (folder / name).is_file()]:
        beside = "it has" if path.is_dir() else "beside it is"
        raise NoFolder(folder=path, detail=f"{beside} no {lacking[0]}")
    return folder


def _exists(out: Path, pair: tuple[str, str]) -> bool:
    return (out / pair[0] / folder_name(pair[1])).is_dir()
