"""Readable text: equal values once, dead ones gone, constants and views at the top."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation

from tracer.ktir.dialect.ktdp import ConstructMemoryViewOp, GetComputeTileIdOp
from tracer.lower.edit import erase, operations
from tracer.lower.manager import Job

_PURE = ("arith", "math", "tensor", "linalg")
_HOISTED = (arith.ConstantOp, ConstructMemoryViewOp, GetComputeTileIdOp)


@dataclass(frozen=True)
class Tidy:
    """Common subexpressions, dead code, invariants.

    Access tiles are never shared: a device tool fails when a load and a store use one. Output tensors
    (`tensor.empty`) are not shared either, since simulators write them in place.
    """

    name: ClassVar[str] = "tidy"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for function in [op for op in operations(module) if isinstance(op, func.FuncOp)]:
            _hoist(function)
            _merge(function.body.block, {})
            _sweep(function)


def is_pure(op: Operation) -> bool:
    """Whether an op has no effect but its results, and may be merged with an equal one."""
    dialect = op.name.split(".")[0]
    if isinstance(op, GetComputeTileIdOp | ConstructMemoryViewOp):
        return True
    return bool(op.results) and dialect in _PURE


def _hoist(function: func.FuncOp) -> None:
    """Constants first (integers in order), then the tile id and the views, in order of appearance."""
    block = function.body.block
    found = [op for op in operations(function) if isinstance(op, _HOISTED)]
    constants = [op for op in found if isinstance(op, arith.ConstantOp)]
    integers = sorted((op for op in constants if isinstance(op.value, IntegerAttr)), key=_order)
    for op in integers:
        _rename(op)
    tensors = [op for op in constants if op not in integers]
    others = [op for op in found if op not in constants]
    ids = [op for op in others if isinstance(op, GetComputeTileIdOp)]
    views = [op for op in others if op not in ids]
    ordered: list[Operation] = [*integers, *tensors, *ids, *views]
    for moved in ordered:
        moved.detach()
    first = block.first_op
    assert first is not None
    for moved in ordered:
        block.insert_op_before(moved, first)


def _order(op: arith.ConstantOp) -> tuple[str, int]:
    assert isinstance(op.value, IntegerAttr)
    return _type_name(op), op.value.value.data


def _type_name(op: arith.ConstantOp) -> str:
    kind = op.result.type
    return f"i{kind.width.data}" if isinstance(kind, IntegerType) else "index"


def _rename(op: arith.ConstantOp) -> None:
    kind, value = _order(op)
    suffix = "" if kind == "index" else f"_{kind}"
    op.result.name_hint = f"c{value}{suffix}" if value >= 0 else f"cm{-value}{suffix}"


def _key(op: Operation) -> Any:
    return (
        op.name,
        tuple(id(o) for o in op.operands),
        tuple(op.result_types),
        tuple(sorted(op.properties.items(), key=lambda item: item[0])),
        tuple(str(region) for region in op.regions),
    )


def _merge(block: Block, outer: dict[Any, Operation]) -> None:
    """Replace an op by an equal one that dominates it."""
    seen = dict(outer)
    for op in list(block.ops):
        if is_pure(op) and op.name != "tensor.empty":
            key = _key(op)
            if key in seen:
                for old, new in zip(op.results, seen[key].results, strict=True):
                    old.replace_all_uses_with(new)
                erase(op)
                continue
            seen[key] = op
            continue
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, seen)


def _sweep(function: func.FuncOp) -> None:
    for op in reversed(list(_movable(function))):
        if not any(result.first_use for result in op.results):
            erase(op)


def _movable(function: func.FuncOp) -> Iterable[Operation]:
    """Operations that may vanish when unused: pure ones and reads."""
    for op in operations(function):
        parent = op.parent_op()
        if parent is not None and parent is not function and is_pure(parent):
            continue
        if is_pure(op) or op.name in ("ktdp.construct_access_tile", "ktdp.load"):
            yield op
