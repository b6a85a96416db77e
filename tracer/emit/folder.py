"""Write a folder at once or not at all, and say what happened to every file.

A folder is made in the state folder, then swapped in by rename. A crash between the two renames of a swap
leaves no folder, never half a one, and the next run writes it again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tracer.emit.digest import digest, read_digests
from tracer.emit.errors import EditedFile, UnwritableFolder
from tracer.emit.manifest import STATE, state

Verb = Literal["create", "update", "identical", "remove"]


@dataclass(frozen=True)
class Change:
    """What happened to one file; `path` is relative to the output directory."""

    verb: Verb
    path: str


def plan(folder: Path, files: Mapping[str, str], known: Mapping[str, str], force: bool) -> dict[str, Verb]:
    """What writing `files` (name to text) into `folder` would do, by file name.

    `known` are the digests of what the tool last wrote there. Files of other origin stay, unless they have a
    generated file's name.

    Raises:
        EditedFile: a file is neither what the tool last wrote nor what it would write now; not with `force`.
    """
    present = read_digests(folder)
    verbs: dict[str, Verb] = {}
    edited: list[str] = []
    for name, text in files.items():
        found = present.get(name)
        verbs[name] = "create" if found is None else "identical" if found == digest(text) else "update"
        if verbs[name] == "update" and found != known.get(name):
            edited.append(name)
    for name in sorted(set(present) & set(known) - set(files)):
        verbs[name] = "remove"
        if present[name] != known[name]:
            edited.append(name)
    if edited and not force:
        raise EditedFile(files=", ".join(edited), folder=folder.name)
    return verbs


def write(
    out: Path,
    folder: Path,
    files: Mapping[str, str],
    known: Mapping[str, str],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> tuple[Change, ...]:
    """Make `folder`, which lies under `out`, hold exactly `files` and whatever other files it held.

    Raises:
        EditedFile: see `plan`.
        UnwritableFolder: the file system refuses.
    """
    try:
        verbs = plan(folder, files, known, force)
        if not dry_run and any(verb != "identical" for verb in verbs.values()):
            _swap(out, folder, files, removed={name for name, verb in verbs.items() if verb == "remove"})
    except OSError as error:
        raise UnwritableFolder(folder=folder, detail=error.strerror or str(error)) from error
    return tuple(Change(verb, str(folder.relative_to(out) / name)) for name, verb in sorted(verbs.items()))


def remove(
    out: Path, folder: Path, known: Mapping[str, str], *, force: bool = False, dry_run: bool = False
) -> tuple[Change, ...]:
    """Remove the generated files of a folder, and the folder if nothing else is in it.

    Raises:
        EditedFile: one of them was edited; not with `force`.
        UnwritableFolder: the file system refuses.
    """
    if not folder.is_dir():
        return ()
    try:
        verbs = plan(folder, {}, known, force)
        if not dry_run:
            for name in verbs:
                (folder / name).unlink()
            shutil.rmtree(folder / "__pycache__", ignore_errors=True)
            if not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise UnwritableFolder(folder=folder, detail=error.strerror or str(error)) from error
    return tuple(Change("remove", str(folder.relative_to(out) / name)) for name in verbs)


def clear_staging(out: Path) -> None:
    """Remove what killed runs left in staging; a run that is under way keeps its own."""
    for path in (out / STATE / "staging").glob("*-*"):
        process = path.name.partition("-")[0]
        if not process.isdecimal() or not _is_alive(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _swap(out: Path, folder: Path, files: Mapping[str, str], removed: set[str]) -> None:
    staging = state(out) / "staging"
    staging.mkdir(exist_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{os.getpid()}-", dir=staging, ignore_cleanup_errors=True
    ) as name:
        fresh = Path(name) / "new"
        fresh.mkdir()
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name not in files and path.name not in removed and path.name != "__pycache__":
                _copy(path, fresh / path.name)
        for file, text in files.items():
            (fresh / file).write_text(text, encoding="utf-8", newline="\n")
        if folder.is_dir():
            os.rename(folder, Path(name) / "old")
        os.rename(fresh, folder)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
