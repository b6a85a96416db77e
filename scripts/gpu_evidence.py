"""Evidence for tier T0 on a real GPU: the committed kernels, compiled by Triton, against the PyTorch oracle.

    python scripts/gpu_evidence.py plan harvested --out plan.json       # beside the tool; no GPU
    python scripts/gpu_evidence.py run harvested --plan plan.json --out evidence.json     # on the GPU
    python scripts/gpu_evidence.py record harvested evidence.json       # into kernels.json

`run` needs torch and triton of any recent version and nothing else that the tool depends on. A GPU's tensor
memory unit wants bases and strides that are multiples of 16 bytes, and silently writes nothing where they are
not; `plan` finds a problem size that satisfies this for ops whose traced size does not, with the same source.
Every output is poisoned before the launch and lies between guard elements. A tile that is made for a
scratchpad of 2 MiB may be too much for a GPU's: blocks of loops are then halved, and the evidence says so.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SMALLEST_BLOCK = 16
"""Below this a block of a loop is not halved: `tl.dot` takes no smaller one."""
GRANULE = 16
"""Bytes that a GPU's tensor memory unit stores at least: an innermost extent is clipped to a multiple of it, and
not to the element (measured on an H200 with triton 3.6, elements of 1, 2, 4 and 8 bytes; loads are exact). What
is written past the end of a buffer within these bytes is the unit's doing: noted, and undone before the check.
"""
ATTEMPTS = 60
"""Problem sizes that `plan` tries for one op."""


def folders(root: Path, pattern: str) -> list[Path]:
    """Every op's folder below `root` whose name holds `pattern`, sorted."""
    return sorted(path.parent for path in root.rglob("wrapper.py") if pattern in path.parent.name)


def key(folder: Path) -> str:
    """`Meta-Llama-3.1-8B-Instruct/torch.add.1_spyre`."""
    return f"{folder.parent.name}/{folder.name}"


def looped_blocks(source: str) -> set[str]:
    """Block sizes that a kernel steps by, `tl.range(0, r0_size, R0_BLOCK)` or `tl.cdiv(x0_size, X0_BLOCK)`.

    Only these may change without a change of what the kernel computes: any other block has to hold its axis.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            step = {"range": 2, "cdiv": 1}.get(node.func.attr)
            block = node.args[step] if step is not None and len(node.args) > step else None
            if isinstance(block, ast.Name):
                found.add(block.id)
    return found


def smaller(stage: Any, looped: set[str]) -> Any | None:
    """The stage with its largest halvable block halved; None where there is none."""
    from tracer.target import SPYRE

    halvable = {n: v for n, v in stage.constexpr.items() if n in looped and v > SMALLEST_BLOCK}
    if not halvable:
        return None
    name = max(halvable, key=lambda n: (halvable[n], n))
    constexpr = stage.constexpr | {name: halvable[name] // 2}
    cores = SPYRE.cores
    return dataclasses.replace(stage, constexpr=constexpr | {"CORES": cores}, grid=(cores,))


# plan


def plan(arguments: argparse.Namespace) -> int:
    """Write an aligned problem size for every folder that needs one."""
    from tracer.emit.digest import folder_digest
    from tracer.validate.folder import Folder, use_one_thread

    use_one_thread()
    entries: dict[str, Any] = {}
    for path in folders(arguments.root, arguments.only):
        folder = Folder(path)
        if reason := misaligned(folder.problem.stages, folder.problem.layouts):
            found = aligned(folder)
            entries[key(path)] = {"digest": folder_digest(path), "reason": reason, **found}
            print(f"{key(path)}: {found.get('sizes') or found['skip']}", file=sys.stderr)
        folder.forget()
    arguments.out.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    return 0


def misaligned(stages: Any, layouts: Mapping[str, Any]) -> str:
    """Why the stages cannot run on a GPU at this size; empty where they can."""
    import torch

    from tracer.validate.stage import unaligned

    tensors = {
        n: torch.empty_strided(*layout[:2], dtype=layout[2], device="meta") for n, layout in layouts.items()
    }
    reasons = (unaligned(stage, tensors) for stage in stages)
    return next((reason for reason in reasons if reason), "")


def aligned(folder: Any) -> dict[str, Any]:
    """The first scaling of the op that a GPU takes, as JSON; else `skip` with the reason."""
    from tracer.emit.index_ranges import index_ranges
    from tracer.emit.layout import definitions
    from tracer.models.replay import float64, render
    from tracer.validate import scaling
    from tracer.validate.call_text import parse_identity
    from tracer.validate.sizes import scalings

    problem = folder.problem
    call = parse_identity(folder.constant("CALL"))
    committed = definitions([problem.source.read_text(encoding="utf-8")])
    blocks = [scaling._blocks(stage) for stage in problem.stages]
    reason = "the op has no extent that could change"
    for attempt, (sizes, other) in enumerate(scalings(call, problem.stages)):
        if attempt == ATTEMPTS:
            break
        found = scaling._at(folder, sizes, other, blocks, committed)
        if isinstance(found, str):
            reason = found
            continue
        if why := misaligned(found.problem.stages, found.problem.layouts):
            reason = why
            continue
        from tracer.capture import capture

        captured = capture(other)
        names = [b.name for b in captured.buffers if b.role == "input"]
        ranges = index_ranges(captured)
        positive = not any(
            bool((t < 0).any()) for t in found.problem.inputs.values() if t.is_floating_point()
        )
        return {
            "sizes": str(found),
            "stages": [
                {"grid": s.grid, "args": s.args, "constexpr": s.constexpr} for s in found.problem.stages
            ],
            "buffers": {n: [list(s), list(t), str(d)] for n, (s, t, d) in found.problem.layouts.items()},
            "views": {
                n: [b, list(s), list(t), str(d), o] for n, (b, s, t, d, o) in found.problem.views.items()
            },
            "outputs": list(found.problem.outputs),
            "inputs": {
                name: {"positive": positive}
                | ({"high": ranges[name].high, "distinct": ranges[name].distinct} if name in ranges else {})
                for name in names
            },
            "oracle": render(float64(other), [f"x[{name!r}]" for name in names]),
        }
    return {"skip": reason}


def planned(folder: Any, entry: Mapping[str, Any]) -> Any:
    """The problem that an entry of a plan describes."""
    import torch

    from tracer.validate.inputs import random_tensor
    from tracer.validate.oracle import rounded, widened

    def dtype(text: str) -> torch.dtype:
        return getattr(torch, text.removeprefix("torch."))

    layouts = {n: (tuple(s), tuple(t), dtype(d)) for n, (s, t, d) in entry["buffers"].items()}
    views = {n: (b, tuple(s), tuple(t), dtype(d), o) for n, (b, s, t, d, o) in entry["views"].items()}
    stages = tuple(
        dataclasses.replace(
            stage, grid=tuple(other["grid"]), args=other["args"], constexpr=other["constexpr"]
        )
        for stage, other in zip(folder.problem.stages, entry["stages"], strict=True)
    )
    oracle = compile(entry["oracle"], "plan", "eval")

    def make_inputs() -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        return {
            n: random_tensor(*layouts[n], generator=generator, **how) for n, how in entry["inputs"].items()
        }

    def run(inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        x = widened(inputs)
        # The expression is what `plan` wrote from the op's own record.
        result = eval(oracle, {"torch": torch, "x": x})
        return rounded(result, x, layouts, entry["outputs"], views)

    return dataclasses.replace(
        folder.problem,
        stages=stages,
        layouts=layouts,
        outputs=tuple(entry["outputs"]),
        views=views,
        make_inputs=make_inputs,
        run=run,
    )


# run


def run(arguments: argparse.Namespace) -> int:
    """Take the evidence of every folder, each in a process of its own."""
    paths = folders(arguments.root, arguments.only)
    entries: dict[str, Any] = {}

    def one(path: Path) -> tuple[str, dict[str, Any]]:
        command = [sys.executable, __file__, "one", str(path)]
        command += ["--plan", str(arguments.plan)] if arguments.plan else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            return key(path), {"status": "fail", "reason": f"not finished within {arguments.timeout:g} s"}
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            tail = " ".join(done.stderr.split())[-400:]
            return key(path), {"status": "fail", "reason": f"exit status {done.returncode}: {tail}"}
        return key(path), json.loads(lines[-1])

    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, entry in pool.map(one, paths):
            entries[name] = entry
            print(f"{entry['status']:5} {name} {entry.get('size', '')} {entry.get('reason', '')}", flush=True)
            arguments.out.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    counts = {s: sum(e["status"] == s for e in entries.values()) for s in ("pass", "fail", "skip")}
    print(f"{counts['pass']} pass, {counts['fail']} fail, {counts['skip']} skip")
    return 1 if counts["fail"] else 0


def one(arguments: argparse.Namespace) -> int:
    """Print the evidence of one folder as a line of JSON."""
    import torch
    import triton

    from tracer.emit.digest import folder_digest
    from tracer.validate.folder import Folder

    folder = Folder(arguments.root.resolve())
    base = {
        "digest": folder_digest(folder.path),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    entries = json.loads(arguments.plan.read_text(encoding="utf-8")) if arguments.plan else {}
    entry = entries.get(key(folder.path))
    problem, size = folder.problem, "traced"
    if reason := misaligned(problem.stages, problem.layouts):
        if entry is None or "skip" in entry:
            why = f"; at another size: {entry['skip']}" if entry else ""
            print(json.dumps(base | {"status": "skip", "reason": reason + why}))
            return 0
        if entry["digest"] != base["digest"]:
            print(
                json.dumps(
                    base | {"status": "skip", "reason": "the plan is of another version of the folder"}
                )
            )
            return 0
        problem, size = planned(folder, entry), entry["sizes"]
    print(json.dumps(base | {"size": size} | evidence(folder, problem, traced=size == "traced")))
    return 0


def evidence(folder: Any, problem: Any, *, traced: bool) -> dict[str, Any]:
    """Launch between guards over poisoned outputs, compare; at the traced size call the launcher too."""
    from tracer.validate.buffers import Buffers, place
    from tracer.validate.errors import HarvestError

    looped = looped_blocks(problem.source.read_text(encoding="utf-8"))
    stages, changed = list(problem.stages), False
    detail: str | None = None
    while detail is None:
        try:
            detail, notes = _launched(problem, stages, Buffers, place)
        except HarvestError as error:
            return {"status": "fail", "reason": str(error)}
        except Exception as error:
            if type(error).__name__ != "OutOfResources":
                return {
                    "status": "fail",
                    "reason": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}",
                }
            shrunk = [smaller(stage, looped) or stage for stage in stages]
            if shrunk == stages:
                return {"status": "skip", "reason": f"a tile is too large for this GPU: {error}"}
            stages, changed = shrunk, True
    result: dict[str, Any] = {"blocks": [s.constexpr for s in stages]} if changed else {}
    result |= {"notes": notes} if notes else {}
    if not detail and traced and not changed:
        detail = _through_launcher(folder, problem)
    return result | ({"status": "fail", "reason": detail} if detail else {"status": "pass"})


def _launched(problem: Any, stages: Any, buffers_type: Any, place: Any) -> tuple[str, list[str]]:
    import torch

    from tracer.validate.stage import run_stages

    device = torch.device("cuda", torch.cuda.current_device())
    inputs = {name: _moved(tensor, device) for name, tensor in problem.inputs.items()}
    places, size = place(problem.layouts)
    memory = torch.empty(size, dtype=torch.uint8, device=device)
    buffers = buffers_type(memory, problem.layouts, places, inputs)
    intact = memory.clone()
    run_stages(stages, buffers.tensors, device)
    torch.cuda.synchronize()
    notes = [
        f"{name}: the GPU stores whole {GRANULE} bytes and wrote {past} past the end"
        for name, at in places.items()
        if (past := _restore_granule(memory, intact, at.start + at.length))
    ]
    detail = buffers.disturbed(problem.written)
    if not detail:
        detail = problem.compare([tensor.cpu() for tensor in problem.results(buffers.tensors)])
    return detail, notes


def _restore_granule(memory: Any, intact: Any, end: int) -> int:
    """Undo what was written between `end` and the next multiple of 16 bytes; how many bytes that were."""
    part = slice(end, -(-end // GRANULE) * GRANULE)
    changed = int((memory[part] != intact[part]).sum())
    memory[part] = intact[part]
    return changed


def _through_launcher(folder: Any, problem: Any) -> str:
    import torch

    device = torch.device("cuda", torch.cuda.current_device())
    inputs = {name: _moved(tensor, device) for name, tensor in problem.inputs.items()}
    # Memory that torch hands out again must not hold the right answer from before.
    for shape, stride, dtype in problem.layouts.values():
        torch.empty_strided(shape, stride, dtype=dtype, device=device).fill_(1)
    # The launcher is what a wrapper ends with.
    *_, launcher = (
        f
        for f in vars(folder.wrapper).values()
        if inspect.isfunction(f) and f.__module__ == folder.wrapper.__name__
    )
    found = launcher(**inputs)
    found = found if isinstance(found, tuple) else (found,)
    detail = problem.compare([tensor.cpu() for tensor in found])
    return f"by its launcher: {detail}" if detail else ""


def _moved(tensor: Any, device: Any) -> Any:
    """A copy on the device in 16-byte aligned memory, with the same strides."""
    from tracer.validate.oracle import flat_memory

    return flat_memory(tensor).to(device).as_strided(tensor.shape, tensor.stride())


# record


def record(arguments: argparse.Namespace) -> int:
    """Write the evidence into the registry, where it is of the folders that lie there now."""
    from tracer.emit import manifest

    registry = manifest.read(arguments.root)
    written = 0
    for name, entry in json.loads(arguments.evidence.read_text(encoding="utf-8")).items():
        model, _, folder = name.partition("/")
        ops = dict(registry[model].ops) if model in registry else {}
        op = ops.get(folder.removesuffix("_spyre"))
        if op is None or op.digest != entry.get("digest"):
            print(f"{name}: not of the folder in the registry", file=sys.stderr)
            continue
        first = {**op.tiers.get("T0", {}), "gpu": entry}
        ops[folder.removesuffix("_spyre")] = dataclasses.replace(op, tiers={**op.tiers, "T0": first})
        registry[model] = dataclasses.replace(registry[model], ops=ops)
        written += 1
    manifest.write(arguments.root, registry)
    print(f"{written} entries written")
    return 0


def _parsers() -> Iterator[tuple[str, Any, list[tuple[str, dict[str, Any]]]]]:
    only = ("--only", {"default": "", "help": "only folders whose name holds this"})
    planned_sizes = ("--plan", {"type": Path, "default": None})
    out = ("--out", {"type": Path, "required": True})
    yield "plan", plan, [only, out]
    limits: list[tuple[str, dict[str, Any]]] = [
        ("--jobs", {"type": int, "default": 4}),
        ("--timeout", {"type": float, "default": 180.0, "help": "seconds for one folder"}),
    ]
    yield "run", run, [only, planned_sizes, out, *limits]
    yield "one", one, [planned_sizes]
    yield "record", record, [("evidence", {"type": Path})]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, function, options in _parsers():
        command = commands.add_parser(name, help=(function.__doc__ or "").splitlines()[0])
        command.add_argument("root", type=Path, help="a tree of generated folders")
        for option, settings in options:
            command.add_argument(option, **settings)
        command.set_defaults(function=function)
    arguments = parser.parse_args()
    return int(arguments.function(arguments))


if __name__ == "__main__":
    sys.exit(main())
