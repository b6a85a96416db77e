"""Which values an integer scalar takes, exactly, over all programs and loop iterations.

A value is an array with one axis for every program id or induction variable that it depends on, so
that values correlated through one tile number stay correlated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tracer.ktir.dialect.arith_ops import CmpiOp, SelectOp
from tracer.ktir.dialect.ktdp import GetComputeTileIdOp
from tracer.lower.tt_ops import GetNumProgramsOp, GetProgramIdOp

_MAX_POINTS = 1 << 22
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}


@dataclass(frozen=True)
class Values:
    """`data` has one axis per entry of `axes` (program ids and induction variables)."""

    axes: tuple[SSAValue, ...]
    data: np.ndarray[Any, Any]


def truncating_div(a: Any, b: Any) -> Any:
    """MLIR's `divsi`: rounds toward zero; 0 where the divisor is 0."""
    safe = np.where(b == 0, 1, b)
    quotient = np.abs(a) // np.abs(safe)
    return np.where(b == 0, 0, np.where((a < 0) != (safe < 0), -quotient, quotient))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": truncating_div,
    "arith.divui": truncating_div,
    "arith.remsi": lambda a, b: a - truncating_div(a, b) * b,
    "arith.remui": lambda a, b: a - truncating_div(a, b) * b,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
}
_PASS_THROUGH = ("arith.extsi", "arith.index_cast", "arith.trunci")


def constant_of(value: SSAValue) -> int | None:
    """The integer of an `arith.constant` scalar, else None."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


@dataclass
class Scalars:
    """Evaluates scalars of one function under a launch grid of `grid` programs."""

    grid: int
    _known: dict[SSAValue, Values | None] = field(default_factory=dict)

    def evaluate(self, value: SSAValue) -> Values | None:
        """All values over all iterations; None where it depends on data or there are too many."""
        if value not in self._known:
            self._known[value] = None
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def at(self, values: Sequence[SSAValue], op: Operation) -> list[np.ndarray[Any, Any]] | None:
        """Values of several scalars at `op`, point by point, where the `scf.if`s around it hold."""
        parts = [self.evaluate(v) for v in values]
        guards = [guard for guard in map(self.evaluate, _guards(op)) if guard is not None]
        known = [part for part in parts if part is not None]
        if len(known) != len(parts):
            return None
        if len(known) == 1 and not guards:
            return [known[0].data.ravel()]
        joined = join([*known, *guards])
        if joined is None:
            return None
        arrays = joined[1]
        shape = np.broadcast_shapes(*(a.shape for a in arrays)) if arrays else ()
        holds = np.ones(shape, dtype=bool)
        for guard in arrays[len(known) :]:
            holds = holds & (guard != 0)
        return [np.broadcast_to(a, shape)[holds] for a in arrays[: len(known)]]

    def bounds(self, value: SSAValue, op: Operation) -> tuple[int, int] | None:
        """Least and greatest value at `op`; None where unknown or never reached."""
        found = self.at([value], op)
        if found is None or found[0].size == 0:
            return None
        return int(found[0].min()), int(found[0].max())

    def _evaluate(self, value: SSAValue) -> Values | None:
        if not isinstance(value.type, IntegerType | IndexType):
            return None
        if isinstance(value, BlockArgument):
            return self._induction(value)
        assert isinstance(value, OpResult)
        op = value.op
        constant = constant_of(value)
        if constant is not None:
            return Values((), np.asarray(constant, dtype=np.int64))
        if isinstance(op, GetProgramIdOp | GetComputeTileIdOp):
            first = op.axis.data == "x" if isinstance(op, GetProgramIdOp) else True
            return Values((value,), np.arange(self.grid if first else 1))
        if isinstance(op, GetNumProgramsOp):
            return Values((), np.asarray(self.grid if op.axis.data == "x" else 1))
        if op.name in _PASS_THROUGH:
            return self.evaluate(op.operands[0])
        function = _BINARY.get(op.name)
        if isinstance(op, CmpiOp):
            function = _COMPARE.get(op.word)
        if isinstance(op, SelectOp):
            return self._combine(op, lambda c, a, b: np.where(c, a, b))
        return self._combine(op, function) if function else None

    def _combine(self, op: Operation, function: Callable[..., Any]) -> Values | None:
        parts = [self.evaluate(v) for v in op.operands]
        known = [part for part in parts if part is not None]
        joined = join(known) if len(known) == len(parts) else None
        if joined is None:
            return None
        axes, arrays = joined
        return Values(axes, np.asarray(function(*arrays)).astype(np.int64))

    def _induction(self, value: BlockArgument) -> Values | None:
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value.index != 0:
            return None
        bounds = [self.evaluate(v) for v in (loop.lb, loop.ub, loop.step)]
        known = [part for part in bounds if part is not None]
        joined = join(known) if len(known) == len(bounds) else None
        if joined is None:
            return None
        lower, upper, step = (a.ravel() for a in np.broadcast_arrays(*joined[1]))
        runs = np.unique(np.stack([lower, np.maximum(lower, upper), np.maximum(step, 1)]), axis=1)
        if int((-(-(runs[1] - runs[0]) // runs[2])).sum()) > _MAX_POINTS:
            return None
        pieces = [np.arange(*run) for run in runs.T.tolist()]
        return Values((value,), np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, dtype=np.int64))


def join(parts: Sequence[Values]) -> tuple[tuple[SSAValue, ...], list[np.ndarray[Any, Any]]] | None:
    """The arrays on common axes (extent 1 where one does not vary); None if there are too many points."""
    axes: list[SSAValue] = []
    extents: list[int] = []
    for part in parts:
        for axis, extent in zip(part.axes, part.data.shape, strict=True):
            if not any(axis is a for a in axes):
                axes.append(axis)
                extents.append(extent)
    if math.prod(extents) > _MAX_POINTS:
        return None
    arrays = []
    for part in parts:
        order = [next(i for i, a in enumerate(part.axes) if a is axis) for axis in axes if _has(part, axis)]
        data = part.data.transpose(order)
        arrays.append(data.reshape([e if _has(part, a) else 1 for a, e in zip(axes, extents, strict=True)]))
    return tuple(axes), arrays


def _has(part: Values, axis: SSAValue) -> bool:
    return any(axis is a for a in part.axes)


def _guards(op: Operation) -> list[SSAValue]:
    """Conditions of the `scf.if`s whose true region holds `op`."""
    found = []
    child: Operation = op
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, scf.IfOp) and child.parent_region() is parent.true_region:
            found.append(parent.cond)
        child, parent = parent, parent.parent_op()
    return found
