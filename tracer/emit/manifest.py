"""harvested/kernels.json: every op of every model, its status and its evidence.

The text is sorted and stable: one fact a line, names in natural order (`add.2` before `add.10`), lists of
plain values on one line. A model's entry is merged into the registry; the others stay as they are.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tracer.emit.errors import BrokenSum, MalformedManifest, UnwritableFolder

SCHEMA = 1
FILE = "kernels.json"
STATE = ".harvest"
"""Folder of an output directory for what is no product: staging, journal, lock. Git ignores it."""
Status = Literal["ok", "view", "extern", "refused", "failed"]
STATUSES: tuple[Status, ...] = ("ok", "view", "extern", "refused", "failed")


@dataclass(frozen=True)
class Entry:
    """One op of a model.

    `calls` is how often both phases together make it. `digest` is the folder's (see `digest.files_digest`),
    `files` those of its files, `stages` the kernels in launch order. `tiers` is written by validation and
    carried along. An op that is neither `ok` nor `view` says why in `code` (a refusal's code, an ATen op or
    a stage) and `reason`.
    """

    status: Status
    identity: str
    calls: int
    phases: tuple[str, ...]
    modules: tuple[str, ...]
    digest: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()
    code: str = ""
    reason: str = ""
    tiers: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready form without empty fields."""
        data: dict[str, Any] = {
            "status": self.status,
            "code": self.code,
            "reason": self.reason,
            "identity": self.identity,
            "calls": self.calls,
            "phases": list(self.phases),
            "modules": list(self.modules),
            "digest": self.digest,
            "files": dict(self.files),
            "stages": list(self.stages),
            "tiers": dict(self.tiers),
        }
        return {key: value for key, value in data.items() if value or key in ("status", "identity", "calls")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """The entry that `to_json` described."""
        return cls(
            status=data["status"],
            identity=data["identity"],
            calls=data["calls"],
            phases=tuple(data.get("phases", ())),
            modules=tuple(data.get("modules", ())),
            digest=data.get("digest", ""),
            files=data.get("files", {}),
            stages=tuple(data.get("stages", ())),
            code=data.get("code", ""),
            reason=data.get("reason", ""),
            tiers=data.get("tiers", {}),
        )


@dataclass(frozen=True)
class ModelEntry:
    """One model: digest of its configuration, the options of the harvest, and its ops by name.

    `failures` are phases that stopped before their end, each with `code` and `reason`. `reserved` gives the
    names of recorded ops to their identities: those that no harvest has made yet keep their numbers.
    `unreached` are modules of the model of which no phase uses a parameter, `adapted` says in what
    the model differs from the one that was asked for.
    """

    config: str
    options: Mapping[str, Any]
    ops: Mapping[str, Entry]
    failures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reserved: Mapping[str, str] = field(default_factory=dict)
    unreached: Sequence[str] = ()
    adapted: Sequence[str] = ()

    @property
    def names(self) -> dict[str, str]:
        """Identity to name, of every op that has a number."""
        made = {entry.identity: name for name, entry in self.ops.items()}
        return {**{identity: name for name, identity in self.reserved.items()}, **made}

    @property
    def calls(self) -> dict[str, int]:
        """Number of calls by status; `total` is their sum."""
        found: Counter[str] = Counter()
        for entry in self.ops.values():
            found[entry.status] += entry.calls
        return {**{status: found[status] for status in STATUSES if found[status]}, "total": found.total()}

    def check(self, model: str, recorded: int) -> None:
        """Raise BrokenSum unless exactly `recorded` calls are accounted for."""
        if (accounted := self.calls["total"]) != recorded:
            raise BrokenSum(model=model, recorded=recorded, accounted=accounted)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready form, ops in natural order."""
        names = sorted(self.ops, key=natural)
        failures = (
            {"failures": {phase: dict(why) for phase, why in self.failures.items()}} if self.failures else {}
        )
        pending = {
            name: self.reserved[name] for name in sorted(self.reserved, key=natural) if name not in self.ops
        }
        return {
            "config": self.config,
            "options": dict(self.options),
            **failures,
            **({"unreached": list(self.unreached)} if self.unreached else {}),
            **({"adapted": list(self.adapted)} if self.adapted else {}),
            "calls": self.calls,
            "ops": {name: self.ops[name].to_json() for name in names},
            **({"reserved": pending} if pending else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelEntry:
        """The entry that `to_json` described."""
        ops = {name: Entry.from_json(entry) for name, entry in data["ops"].items()}
        return cls(
            data["config"],
            data.get("options", {}),
            ops,
            data.get("failures", {}),
            data.get("reserved", {}),
            data.get("unreached", ()),
            data.get("adapted", ()),
        )


Registry = dict[str, ModelEntry]


def read(out: Path) -> Registry:
    """The registry of an output directory; empty where there is none yet.

    Raises:
        MalformedManifest: the file is no registry of this schema.
        UnwritableFolder: it cannot even be read.
    """
    path = out / FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise MalformedManifest(
                path=path, detail=f"schema {data['schema']}, and this tool writes {SCHEMA}"
            )
        return {model: ModelEntry.from_json(entry) for model, entry in data["models"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UnwritableFolder(folder=out, detail=error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedManifest(path=path, detail=f"{type(error).__name__}: {error}") from error


def write(out: Path, registry: Mapping[str, ModelEntry]) -> bool:
    """Write the registry at once or not at all; True if its text changed."""
    models = {model: registry[model].to_json() for model in sorted(registry, key=natural)}
    return write_text(out / FILE, dump({"schema": SCHEMA, "models": models}))


def write_text(path: Path, text: str) -> bool:
    """Replace a file atomically; True if its text changed.

    Raises:
        UnwritableFolder: the directory does not take it.
    """
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise UnwritableFolder(folder=path.parent, detail=error.strerror or str(error)) from error
    return True


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Exclusive right to read, change and write the registry: two commands may work in one directory.

    Raises:
        UnwritableFolder: there is no place for the lock.
    """
    path = state(out) / "lock"
    try:
        file = path.open("w")
    except OSError as error:
        raise UnwritableFolder(folder=out, detail=error.strerror or str(error)) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def state(out: Path) -> Path:
    """The state folder of an output directory, made where it is missing.

    Raises:
        UnwritableFolder: it cannot be made.
    """
    folder = out / STATE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise UnwritableFolder(folder=out, detail=error.strerror or str(error)) from error
    return folder


def natural(name: str) -> tuple[Any, ...]:
    """Sort key in which numbers inside names count as numbers."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))


def dump(value: Any) -> str:
    """JSON text with one fact a line."""
    return _dump(value, 0) + "\n"


def _dump(value: Any, depth: int) -> str:
    indent, close = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict) and value:
        items: Iterable[str] = (
            f"{indent}{json.dumps(str(key))}: {_dump(item, depth + 1)}" for key, item in value.items()
        )
        return "{\n" + ",\n".join(items) + f"\n{close}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(f"{indent}{_dump(item, depth + 1)}" for item in value) + f"\n{close}]"
    return json.dumps(value)
