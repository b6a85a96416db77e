"""Take the evidence of harvested folders and enter it in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer.emit import manifest
from tracer.emit.manifest import Entry, natural
from tracer.emit.naming import folder_name


@dataclass(frozen=True)
class Evidence:
    """What one folder has shown: its `tiers` entry of the registry."""

    model: str
    op: str
    tiers: Mapping[str, Any]

    @property
    def failed(self) -> list[str]:
        """`T0 interpreter: reason` for every piece of evidence that failed."""
        failures = [(name, entry) for name, entry in pieces(self.tiers) if entry["status"] == "fail"]
        return [f"{name}: {entry.get('reason', 'failed')}" for name, entry in failures]


def pieces(tiers: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """Every piece of evidence by name (`T0 interpreter`, `T1`, `controls`), whatever its depth."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, entry in tiers.items():
        if isinstance(entry, Mapping) and "status" in entry:
            found.append((f"{prefix}{name}", entry))
        elif isinstance(entry, Mapping):
            found += pieces(entry, f"{prefix}{name} ")
    return found


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
        MalformedManifest, UnwritableFolder: see `manifest.read` and `manifest.write`.
    """
    from tracer.validate import validate_folder

    registry = manifest.read(out)
    chosen = [
        (model, op, entry)
        for model, models in registry.items()
        for op, entry in sorted(models.ops.items(), key=lambda pair: natural(pair[0]))
        if entry.status == "ok" and pattern in f"{model}/{op}"
    ]
    found: list[Evidence] = []
    try:
        for model, op, entry in chosen:
            taken = validate_folder(out / model / folder_name(op), full_size=full_size).to_json()
            evidence = Evidence(model, op, merge(entry.tiers, taken))
            found.append(evidence)
            on_evidence(evidence, len(found), len(chosen))
    finally:
        _enter(out, found)
    return found


def _enter(out: Path, found: list[Evidence]) -> None:
    with manifest.locked(out):
        registry = manifest.read(out)
        for evidence in found:
            model = registry[evidence.model]
            entry: Entry = replace(model.ops[evidence.op], tiers=evidence.tiers)
            registry[evidence.model] = replace(model, ops={**model.ops, evidence.op: entry})
        manifest.write(out, registry)
