"""Rules of KTIR that no single operation's verifier can see."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tracer.ktir.affine import set_box, set_points
from tracer.ktir.diagnostics import Diagnostic, at
from tracer.ktir.dialect.ktdp import (
    DIALECTS,
    ConstructAccessTileOp,
    ConstructIndirectAccessTileOp,
    LoadOp,
    RuntimeArgType,
    StoreOp,
)
from tracer.ktir.rules.reshapes import reshaped
from tracer.ktir.rules.usage import usage
from tracer.target import SPYRE

_FOREIGN_TYPE = re.compile(r"!(?!ktdp\.)([A-Za-z_]\w*)[.<]")


def verify(module: ModuleOp) -> list[Diagnostic]:
    """Every rule broken in `module`, in order of place; empty where it is right. Warnings included."""
    found: list[Diagnostic] = []
    names: dict[str, int] = {}
    for op in module.walk():
        if isinstance(op, func.FuncOp):
            names[op.sym_name.data] = names.get(op.sym_name.data, 0) + 1
            if names[op.sym_name.data] == 2:
                found.append(at(op, "KT116", f"function {op.sym_name.data} is defined twice"))
            called = _called(op, module)
            found += [*_grid(op, called), *_arguments(op, called)]
        found += _foreign(op)
        if isinstance(op, ConstructAccessTileOp):
            found += _tile(op, op.access_tile_set.data, op.access_tile_order.data.results)
        elif isinstance(op, ConstructIndirectAccessTileOp):
            found += _tile(op, op.variables_space_set.data, op.variables_space_order.data.results)
        elif isinstance(op, LoadOp):
            found += _element(op, op.tile, op.result.type)
        elif isinstance(op, StoreOp):
            found += _element(op, op.tile, op.data.type)
        elif isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
            found += reshaped(op)
    return found + usage(module)


def _called(op: func.FuncOp, module: ModuleOp) -> bool:
    return any(
        isinstance(o, func.CallOp) and o.callee.string_value() == op.sym_name.data for o in module.walk()
    )


def _arguments(op: func.FuncOp, called: bool) -> Iterable[Diagnostic]:
    """Arguments that nobody who starts a function can pass."""
    if called or not op.body.blocks:
        return
    for argument in op.body.blocks[0].args:
        if not isinstance(argument.type, IndexType | IntegerType | AnyFloat | RuntimeArgType):
            name = f"%{argument.name_hint or argument.index}"
            text = (
                f"argument {name} is {argument.type}: take index, and build views with construct_memory_view"
            )
            yield at(op, "KT216", text)


def _grid(op: func.FuncOp, called: bool) -> Iterable[Diagnostic]:
    value = op.attributes.get("grid")
    if value is None:
        if op.body.blocks and not called:
            # The public simulator takes one core; say so rather than guess in silence.
            yield at(op, "KT110", "the function has no grid; it runs on one core", "warning")
        return
    dims = [v.value.data for v in value if isinstance(v, IntegerAttr)] if isinstance(value, ArrayAttr) else []
    if not isinstance(value, ArrayAttr) or len(dims) != len(value) or not 1 <= len(dims) <= 3:
        yield at(op, "KT111", f"grid must be a list of one to three integers, not {value}")
        return
    cores = 1
    for extent in dims:
        cores *= extent
    if min(dims) < 1:
        yield at(op, "KT111", f"grid {dims} has an axis without cores")
    elif cores > SPYRE.cores:
        yield at(op, "KT111", f"grid {dims} has {cores} cores, the accelerator {SPYRE.cores}")


def _foreign(op: Operation) -> Iterable[Diagnostic]:
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    if name.partition(".")[0] not in DIALECTS:
        yield at(op, "KT112", f"{name} does not belong to KTIR")
        return
    types: list[Attribute] = [*(r.type for r in op.results)]
    types += [a.type for region in op.regions for block in region.blocks for a in block.args]
    for type_ in types:
        if match := _FOREIGN_TYPE.search(str(type_)):
            yield at(op, "KT112", f"type {type_} of dialect {match.group(1)} does not belong to KTIR")
            return


def _tile(op: ConstructAccessTileOp | ConstructIndirectAccessTileOp, points, order) -> Iterable[Diagnostic]:  # type: ignore[no-untyped-def]
    shape = op.tile.type.get_shape()
    used = {d for e in order for d in e.used_dims()}
    lost = [
        f"d{d}"
        for d in range(points.num_dims)
        if d not in used and (d >= len(shape) or shape != (1,) * len(shape))
    ]
    if lost:
        yield at(op, "KT113", f"the order does not say where {', '.join(lost)} comes")
        return
    if points.num_symbols or DYNAMIC_INDEX in shape:
        return
    box = set_box(points)
    if box is None:
        try:
            count = len(set_points(points))
        except ValueError as error:
            yield at(op, "KT113", str(error))
            return
        size = 1
        for extent in shape:
            size *= extent
        if count != size:
            yield at(op, "KT113", f"the set holds {count} points, the tile {size} elements")
        return
    extents = _ordered(box.shape, order)
    if extents is not None and extents != shape:
        # Where the order moves nothing, the set alone differs.
        turned = f" in its order ({', '.join(map(str, order))})" if extents != tuple(box.shape) else ""
        yield at(op, "KT113", f"the set spans {list(extents)}{turned}, the tile {list(shape)}")


def _ordered(extents: tuple[int, ...], order) -> tuple[int, ...] | None:  # type: ignore[no-untyped-def]
    positions = [getattr(e, "position", None) for e in order]
    if sorted(p for p in positions if p is not None) != list(range(len(extents))):
        return None
    return tuple(extents[p] for p in positions if p is not None)


def _element(op: Operation, tile: SSAValue, value: Attribute) -> Iterable[Diagnostic]:
    owner = tile.owner
    if not isinstance(owner, ConstructAccessTileOp | ConstructIndirectAccessTileOp):
        return
    base = getattr(owner.base.type, "element_type", None)
    held = getattr(value, "element_type", None)
    if base != held:
        yield at(op, "KT114", f"the view holds {base}, the tensor {held}")


_PUBLIC_UNKNOWN = {
    "scf.while", "scf.forall", "scf.parallel", "scf.execute_region", "scf.index_switch", "tensor.concat",
    "math.exp2",
}  # fmt: skip


def public_parser_findings(module: ModuleOp) -> list[Diagnostic]:
    """Forms that the public text parser misreads (KT401), as warnings: nested dense lists, calls, `else`,
    results of `if`.
    """
    found = []
    for op in module.walk():
        text = None
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            if len(op.value) and not op.value.is_splat() and len(op.value.get_shape()) > 1:
                text = "nested dense lists are read as zeros; use a rank-1 constant and tensor.expand_shape"
        elif op.name == "func.call":
            text = "calls are unknown"
        elif op.name == "scf.if" and op.results:
            text = "scf.if with results fails"
        elif op.name == "scf.if" and op.regions[1].blocks:
            text = "else is folded into a broken region"
        elif op.name in _PUBLIC_UNKNOWN:
            text = f"{op.name} is unknown"
        if text is not None:
            found.append(at(op, "KT401", text, "warning"))
    return found
