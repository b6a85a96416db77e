"""Take the evidence of harvested folders and enter it in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer.emit import manifest
from tracer.emit.manifest import Entry, natural
from tracer.emit.naming import folder_name
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
    """Validate every `ok` op whose `MODEL/OP` holds `pattern`, and enter the evidence, also when interrupted.

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

    found: list[Evidence] = []
    try:
        for model, op, entry in chosen:
            taken = validate_folder(out / model / folder_name(op), full_size=full_size).to_json()
            evidence = Evidence(model, op, merge(entry.tiers, taken))
            found.append(evidence)
            on_evidence(evidence, len(found), len(chosen))
    finally:
        if found:
            _enter(out, found)
    return found


def _lacking(out: Path, registry: manifest.Registry, pattern: str) -> str:
    if not out.exists():
        return f"{out} does not exist"
    if not (out / manifest.FILE).exists():
        return f"{out} has no {manifest.FILE}"
    if any(entry.status == "ok" for model in registry.values() for entry in model.ops.values()):
        return f"no op of {', '.join(registry)} that has a kernel holds `{pattern}` in its MODEL/OP"
    return f"no op in {out / manifest.FILE} has a kernel"


def _enter(out: Path, found: list[Evidence]) -> None:
    with manifest.locked(out):
        registry = manifest.read(out)
        for evidence in found:
            model = registry[evidence.model]
            entry: Entry = replace(model.ops[evidence.op], tiers=evidence.tiers)
            registry[evidence.model] = replace(model, ops={**model.ops, evidence.op: entry})
        manifest.write(out, registry)
