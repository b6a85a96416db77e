"""Take the evidence of harvested folders and enter it in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer import workers
from tracer.emit import manifest
from tracer.emit.digest import digest, folder_digest
from tracer.emit.manifest import natural
from tracer.emit.naming import folder_name
from tracer.pipeline import tool
from tracer.validate.errors import NothingToValidate


@dataclass(frozen=True)
class Evidence:
    """What one folder has shown: its `tiers` entry of the registry."""

    model: str
    op: str
    tiers: Mapping[str, Any]

    @property
    def failed(self) -> list[str]:
        """`T0 interpreter, T1: HV601 reason. Try: advice` for what failed, or was skipped and must pass."""
        from tracer.validate.evidence import wrong

        return _lines(wrong(self.tiers))

    @property
    def skipped(self) -> list[str]:
        """`T1: skipped: HV613 reason` for what stays open with a reason, as it may."""
        from tracer.validate.evidence import MAY_SKIP, pieces

        skips = [(n, entry) for n, entry in pieces(self.tiers) if n in MAY_SKIP and entry["status"] == "skip"]
        return _lines(skips, "skipped: ")


def _lines(found: Iterable[tuple[str, Mapping[str, Any]]], mark: str = "") -> list[str]:
    """A line for every reason, with the names of all pieces that have it."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, entry in found:
        said = str(entry.get("reason") or f"{entry['status']} without a reason").rstrip(".")
        names.setdefault((said, str(entry.get("advice", ""))), []).append(name)
    return [
        f"{', '.join(pieces)}: {mark}{said}.{f' Try: {advice}' if advice else ''}"
        for (said, advice), pieces in names.items()
    ]


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`new` over `old`; what was not taken this time (None) stays, such as a signature."""
    merged = dict(old)
    for name, entry in new.items():
        if isinstance(entry, Mapping) and "status" not in entry:
            merged[name] = merge(merged.get(name) or {}, entry)
        elif entry is not None:
            merged[name] = entry
    return merged


def validate_tree(
    out: Path,
    pattern: str = "",
    *,
    full_size: bool = False,
    on_evidence: Callable[[Evidence, int, int], None] = lambda evidence, done, total: None,
) -> list[Evidence]:
    """Validate every `ok` op whose `MODEL/OP` holds `pattern`, and enter the evidence of each as it is taken.

    What a run that was cut short has found to be well is not taken again; a run that came to its end is.

    Raises:
        NothingToValidate: there is none; nothing was written then.
        MalformedManifest, UnwritableFolder: see `manifest.read` and `manifest.write`.
    """
    registry = manifest.read(out)
    chosen = [
        (model, op, entry)
        for model, models in registry.items()
        for op, entry in sorted(models.ops.items(), key=lambda pair: natural(pair[0]))
        if entry.status == "ok" and pattern in f"{model}/{op}"
    ]
    if not chosen:
        raise NothingToValidate(out=out, detail=_lacking(out, registry, pattern))
    from tracer.validate import validate_folder

    begun = _Begun(out, full_size)
    found: list[Evidence] = []
    keys: set[str] = set()
    for model, op, entry in chosen:
        path = out / model / folder_name(op)
        keys.add(key := begun.key(path))
        evidence = Evidence(model, op, entry.tiers)
        if key not in begun.done or not entry.tiers or evidence.failed:
            taken = validate_folder(path, full_size=full_size).to_json()
            workers.check_interruption()
            with workers.uninterrupted():
                evidence = _enter(out, model, op, taken)
                begun.add(key)
        found.append(evidence)
        on_evidence(evidence, len(found), len(chosen))
    begun.end(keys)
    return found


class _Begun:
    """Which folders a run that has not come to its end has been through: a line each, as soon as it has."""

    def __init__(self, out: Path, full_size: bool) -> None:
        from tracer.validate.public_simulator import unavailable

        self._out = out
        self._path = manifest.state(out) / "validation"
        self._parts = (tool(), unavailable(), str(full_size))
        # Known now rather than after the work: whether evidence can be entered at all.
        with manifest.locked(out):
            self.done = self._read()

    def key(self, folder: Path) -> str:
        """Digest of everything that the evidence of a folder depends on."""
        return digest("\n".join((folder.parent.name, folder.name, folder_digest(folder), *self._parts)))

    def add(self, key: str) -> None:
        """Note a folder whose evidence is entered."""
        with manifest.locked(self._out):
            self._write(self._read() | {key})

    def end(self, keys: set[str]) -> None:
        """Forget the folders of a run that came to its end."""
        with manifest.locked(self._out):
            self._write(self._read() - keys)

    def _read(self) -> set[str]:
        with suppress(OSError, ValueError):
            return set(self._path.read_text(encoding="utf-8").split())
        return set()

    def _write(self, keys: set[str]) -> None:
        manifest.write_text(self._path, "".join(f"{key}\n" for key in sorted(keys)))


def _lacking(out: Path, registry: manifest.Registry, pattern: str) -> str:
    if not out.exists():
        return f"{out} does not exist"
    if not (out / manifest.FILE).exists():
        return f"{out} has no {manifest.FILE}"
    if any(entry.status == "ok" for model in registry.values() for entry in model.ops.values()):
        return f"no op of {', '.join(registry)} that has a kernel holds `{pattern}` in its MODEL/OP"
    return f"no op in {out / manifest.FILE} has a kernel"


def _enter(out: Path, model: str, op: str, taken: Mapping[str, Any]) -> Evidence:
    """Put what was taken over what the registry says by now, where it still has the op."""
    with manifest.locked(out):
        registry = manifest.read(out)
        entry = registry[model].ops.get(op) if model in registry else None
        if entry is None:
            return Evidence(model, op, taken)
        evidence = Evidence(model, op, merge(entry.tiers, taken))
        ops = {**registry[model].ops, op: replace(entry, tiers=evidence.tiers)}
        registry[model] = replace(registry[model], ops=ops)
        manifest.write(out, registry)
    return evidence
