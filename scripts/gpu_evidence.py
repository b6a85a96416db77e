"""Take T0 evidence for generated folders on a real GPU.

    python scripts/gpu_evidence.py prepare harvested --out problems.json    # pinned environment, no GPU
    python scripts/gpu_evidence.py take harvested --problems problems.json --out evidence.json   # on the GPU
    python scripts/gpu_evidence.py merge harvested --evidence evidence.json # back home: into kernels.json

`prepare` finds aligned problem sizes for folders whose traced size a GPU's descriptors cannot address.
`take` runs each folder's Triton source at the traced size where that is aligned, at the prepared size
otherwise, with poisoned outputs, and says which. It needs torch, Triton, NumPy and this package on the path,
nothing else of the tool's environment. `merge` enters the evidence beside the digest that it was taken on.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tracer.emit.digest import folder_digest
from tracer.validate import gpu
from tracer.validate.folder import Folder


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["prepare", "take", "merge"])
    parser.add_argument("harvested", type=Path)
    parser.add_argument("--only", default="", help="folders whose name contains this")
    parser.add_argument("--problems", type=Path)
    parser.add_argument("--evidence", type=Path)
    parser.add_argument("--out", type=Path, default=Path("gpu_evidence.json"))
    parser.add_argument("--resume", action="store_true", help="keep what --out holds already")
    options = parser.parse_args(argv)
    if options.action == "merge":
        merge(options.harvested, json.loads(options.evidence.read_text()))
        return 0
    problems = json.loads(options.problems.read_text()) if options.problems else {}
    found: dict[str, Any] = json.loads(options.out.read_text()) if options.resume else {}
    for folder in folders(options.harvested, options.only):
        key = str(folder.path.relative_to(options.harvested.resolve()))
        if key in found:
            continue
        entry = prepare(folder) if options.action == "prepare" else take(folder, problems.get(key, {}))
        folder.forget()
        if entry is None:
            continue
        found[key] = entry
        print(key, entry.get("status", ""), entry.get("reason", ""), flush=True)
        options.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        if "CUDA error" in entry.get("reason", ""):
            # A fault of one kernel leaves the whole context unusable: go on in a new process.
            again = argv if options.resume else [*argv, "--resume"]
            os.execv(sys.executable, [sys.executable, __file__, *again])
    return int(any(entry.get("status") == "fail" for entry in found.values()))


def folders(root: Path, only: str) -> Iterator[Folder]:
    for wrapper in sorted(root.resolve().rglob("wrapper.py")):
        if only in wrapper.parent.name:
            yield Folder(wrapper.parent)


def prepare(folder: Folder) -> dict[str, Any] | None:
    if not gpu.reason_unaligned(folder.problem):
        return None
    return gpu.prepare(folder)


def take(folder: Folder, prepared: dict[str, Any]) -> dict[str, Any]:
    import torch
    import triton

    entry: dict[str, Any] = {"digest": folder_digest(folder.path), "triton": triton.__version__}
    if not torch.cuda.is_available():
        return {**entry, "status": "skip", "reason": "no GPU"}
    entry["device"] = torch.cuda.get_device_name()
    try:
        problem, entry["size"] = folder.problem, "traced"
        if reason := gpu.reason_unaligned(problem):
            if "identity" not in prepared:
                return {**entry, "status": "skip", "reason": prepared.get("reason", reason)}
            problem, entry["size"] = gpu.prepared(folder, prepared), prepared["identity"]
        entry |= gpu.check_device(problem, torch.device("cuda"))
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return {
            **entry,
            "status": "fail",
            "reason": f"{type(error).__name__}: {lines[-1] if lines else ''}"[:400],
        }
    return {**entry, "status": "pass"}


def merge(root: Path, evidence: dict[str, Any]) -> None:
    from tracer.emit import manifest

    registry = manifest.read(root)
    for key, entry in evidence.items():
        model, _, folder = key.rpartition("/")
        name = folder.removesuffix("_spyre")
        if model not in registry or name not in registry[model].ops:
            print(key, "is not in the registry", file=sys.stderr)
            continue
        op = registry[model].ops[name]
        tiers = {**op.tiers, "T0": {**op.tiers.get("T0", {}), "gpu": entry}}
        ops = {**registry[model].ops, name: dataclasses.replace(op, tiers=tiers)}
        registry[model] = dataclasses.replace(registry[model], ops=ops)
    manifest.write(root, registry)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
