"""Which integer inputs a kernel indexes with, and how far.

Inductor guards every data-dependent index with `tl.device_assert((0 <= tmp5) & (tmp5 < 2048), ...)`.
Following the asserted value back to the loads it comes from tells which pointer holds indices and what bounds
them: the assertion, less what the kernel adds to the index (the offset of a plane). An integer that is only
compared with every place of a dim (a class with all classes) is a place, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tracer.capture.kernel import CapturedKernel, CapturedOp
from tracer.emit.intervals import Intervals


@dataclass(frozen=True)
class IndexRange:
    """Values of an index buffer: below `high`; all different along the last dim where they are `distinct`.

    They must be distinct where the kernel stores at them: two stores to one element have no defined result.
    """

    high: int
    distinct: bool


def index_ranges(op: CapturedOp) -> dict[str, IndexRange]:
    """The range of every input buffer that some kernel of the op indexes with."""
    inputs = {buffer.name for buffer in op.buffers if buffer.role == "input"}
    found: dict[str, IndexRange] = {}
    for kernel in op.kernels:
        arguments = dict(kernel.arguments)
        for pointer, new in _kernel_ranges(kernel).items():
            buffer = str(arguments[pointer])
            if buffer in inputs:
                old = found.get(buffer, new)
                found[buffer] = IndexRange(min(old.high, new.high), old.distinct or new.distinct)
    return found


def _kernel_ranges(kernel: CapturedKernel) -> dict[str, IndexRange]:
    integers = {name for name, kind in kernel.signature if kind in ("*i64", "*i32")}
    if not integers or ("device_assert" not in kernel.source and "==" not in kernel.source):
        return {}
    tree = ast.parse(kernel.source)
    intervals = Intervals(tree, dict(kernel.arguments), frozenset(integers))
    sources = _sources(tree)
    stored = {name for call in _calls(tree, "store") for name in _names(call.args[0])}
    found: dict[str, IndexRange] = {}
    for call in _calls(tree, "device_assert"):
        for value, bound in _upper_bounds(call.args[0]):
            reached = _closure(value, sources)
            pointers = sorted(reached & integers)
            for pointer in pointers:
                # Where several index loads are added up, each gets its share of the range.
                high = max(1, (bound - intervals.greatest(value)) // len(pointers))
                distinct = value in stored
                if pointer in found:
                    high, distinct = min(high, found[pointer].high), distinct or found[pointer].distinct
                found[pointer] = IndexRange(high, distinct)
    for pointer, extent in intervals.compared():
        found.setdefault(pointer, IndexRange(extent, distinct=False))
    return found


def _sources(tree: ast.Module) -> dict[str, set[str]]:
    """Names that the value of each assigned name is computed from."""
    return {
        target.id: _names(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _closure(name: str, sources: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending += sources.get(current, ())
    return seen


def _calls(tree: ast.Module, function: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == function:
            yield node


def _upper_bounds(condition: ast.expr) -> Iterator[tuple[str, int]]:
    """Pairs of `name < number` inside an asserted condition."""
    for node in ast.walk(condition):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[-1], ast.Lt):
            continue
        left = node.comparators[-2] if len(node.comparators) > 1 else node.left
        right = node.comparators[-1]
        if isinstance(left, ast.Name) and isinstance(right, ast.Constant) and isinstance(right.value, int):
            yield left.id, right.value


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
