"""What a tensor holds in lanes that exact tiles drop.

Descriptor loads read zero there. A narrowed reduction equals the original only if those lanes held the
combiner's identity, which this analysis proves or refutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect.arith_ops import CmpfOp, CmpiOp, SelectOp
from tracer.lower.analysis.combiners import compare, recognise
from tracer.lower.analysis.dims import Dim, DimClasses
from tracer.lower.analysis.lanes import Interval, LaneBounds
from tracer.lower.edit import Number, element_type, shape_of, splat_value
from tracer.lower.tt_ops import (
    BroadcastOp,
    DescriptorLoadOp,
    DotOp,
    ExpandDimsOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplatOp,
    TransOp,
)

_PASS_THROUGH = ("arith.extf", "arith.truncf", "arith.extsi", "tt.fp_to_fp", "arith.sitofp")
_UNSIGNED_SOURCE = ("arith.extui", "arith.uitofp")
_UNARY: dict[str, Callable[[float], Number]] = {
    "arith.negf": lambda a: -a,
    "arith.fptosi": lambda a: math.trunc(a) if math.isfinite(a) else math.nan,
    "math.absf": abs,
    "math.absi": abs,
    "math.exp": lambda a: math.exp(a) if a < 700 else math.inf,
    "math.exp2": lambda a: 2.0**a if a < 1000 else math.inf,
    "math.sin": lambda a: math.sin(a) if math.isfinite(a) else math.nan,
    "math.erf": math.erf,
    "math.tanh": math.tanh,
    "math.sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "tt.precise_sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.maxnumf": max,
    "arith.minnumf": min,
    "arith.maximumf": max,
    "arith.minimumf": min,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
}
_IDEMPOTENT = (
    "arith.maxnumf",
    "arith.maximumf",
    "arith.minnumf",
    "arith.minimumf",
    "arith.maxsi",
    "arith.minsi",
    "arith.ori",
    "arith.andi",
)
_ABSORBS_ZERO = ("arith.mulf", "arith.muli", "arith.andi")
_ZERO_NUMERATOR = ("arith.divf", "arith.divsi", "tt.precise_divf")


@dataclass
class Padding:
    """Values of the dropped lanes of one function, after `extents` were settled."""

    classes: DimClasses
    bounds: LaneBounds
    extent: Callable[[SSAValue, int], int]
    _known: dict[tuple[SSAValue, Dim], Number | None] = field(default_factory=dict)

    def value(self, value: SSAValue, root: Dim) -> Number | None:
        """The one value in all lanes of `value` that class `root` drops; None if it is not known."""
        key = (value, root)
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._evaluate(value, root)
        return self._known[key]

    def _dims(self, value: SSAValue, root: Dim) -> list[int]:
        return [i for i in range(len(shape_of(value))) if self.classes.find((value, i)) == root]

    def _evaluate(self, value: SSAValue, root: Dim) -> Number | None:
        constant = splat_value(value)
        if constant is not None:
            return constant
        op = value.owner
        if not isinstance(op, Operation) or not isinstance(value.type, TensorType):
            return None
        match op:
            case DescriptorLoadOp():
                return 0 if self._dims(value, root) else None
            case SplatOp():
                return splat_value(op.source)
            case ExpandDimsOp() | BroadcastOp() | TransOp():
                return self.value(op.source, root)
            case SelectOp():
                return self._select(op, root)
            case ReshapeOp():
                return self._reshape(op, root)
            case ReduceOp():
                return self._reduce(op, root)
            case DotOp():
                zero = any(self._dims(v, root) and self.value(v, root) == 0 for v in (op.a, op.b))
                return self.value(op.c, root) if zero else None
            case ScanOp():
                return None
        if op.name in (*_PASS_THROUGH, *_UNSIGNED_SOURCE, "arith.trunci"):
            found = self.value(op.operands[0], root)
            return found if found is None else _converted(op, found)
        truth = self._truth(value, root)
        if truth is not None:
            return int(truth)
        return self._arithmetic(op, root)

    def _arithmetic(self, op: Operation, root: Dim) -> Number | None:
        parts = [self.value(o, root) for o in op.operands]
        # A non-finite factor would have poisoned Triton's own result; zero times anything else is zero.
        if op.name in _ABSORBS_ZERO and 0 in parts:
            return 0
        if op.name in _ZERO_NUMERATOR and parts[0] == 0 and parts[1] != 0:
            return 0
        known = [p for p in parts if p is not None]
        if len(known) != len(parts) or not known:
            return None
        if isinstance(op, CmpfOp | CmpiOp):
            return compare(op, *known)
        if op.name in _UNARY and len(known) == 1:
            return _UNARY[op.name](float(known[0]))
        if op.name in _BINARY and len(known) == 2:
            found: Number = _BINARY[op.name](*known)
            return found
        return None

    def _reshape(self, op: ReshapeOp, root: Dim) -> Number | None:
        if self._dims(op.source, root):
            return self.value(op.source, root)
        for group in self.classes.regroups:
            if group.op is op and self.classes.find(group.results[0]) == root:
                return self.value(op.source, self.classes.find(group.sources[0]))
        return None

    def _reduce(self, op: ReduceOp, root: Dim) -> Number | None:
        """A row of equal values combines to that value where the combiner leaves it alone."""
        combiner = recognise(op.combiner.block)
        found = self.value(op.sources[0], root)
        if combiner is None or found is None or len(op.sources) != 1:
            return None
        neutral = identity(combiner.name, element_type(op.sources[0].type))
        return found if combiner.name in _IDEMPOTENT or found == neutral else None

    def _select(self, op: SelectOp, root: Dim) -> Number | None:
        truth = self._truth(op.cond, root)
        if truth is not None:
            return self.value(op.lhs if truth else op.rhs, root)
        a, b = self.value(op.lhs, root), self.value(op.rhs, root)
        return a if a == b else None

    def _truth(self, value: SSAValue, root: Dim) -> bool | None:
        """Whether a condition is the same in all dropped lanes."""
        if element_type(value.type) != IntegerType(1):
            return None
        interval = self.bounds.of(value)
        if interval is None:
            return None
        low, high = self.region(value, root, interval)
        if low.size and (low == 1).all():
            return True
        return False if high.size and (high == 0).all() else None

    def region(self, value: SSAValue, root: Dim, interval: Interval) -> Interval:
        """The part of an interval in the dropped lanes of `root` and the kept lanes of other classes."""
        own = set(self._dims(value, root))
        return _cut(
            interval,
            shape_of(value),
            lambda i: (self.extent(value, i), None) if i in own else (0, self.extent(value, i)),
        )

    def kept(self, value: SSAValue, interval: Interval) -> Interval:
        """The part of an interval in the lanes that stay."""
        return _cut(interval, shape_of(value), lambda i: (0, self.extent(value, i)))


def _converted(op: Operation, number: Number) -> Number:
    """A number after a conversion; integers are signed, as constants are, but for truth values."""
    source, target = (element_type(v.type) for v in (op.operands[0], op.results[0]))
    if op.name in _UNSIGNED_SOURCE and isinstance(source, IntegerType):
        return int(number) % (1 << source.width.data)
    if op.name == "arith.trunci" and isinstance(target, IntegerType):
        half = 1 << (target.width.data - 1)
        return int(number) % 2 if half == 1 else (int(number) + half) % (2 * half) - half
    return -number if op.name in ("arith.extsi", "arith.sitofp") and source == IntegerType(1) else number


def _cut(
    interval: Interval, shape: tuple[int, ...], part: Callable[[int], tuple[int, int | None]]
) -> Interval:
    slices = []
    for index in range(len(shape)):
        uniform = all(a.shape[index] == 1 for a in interval)
        slices.append(slice(None) if uniform else slice(*part(index)))
    return Interval(
        *(a[tuple(s if a.shape[i] != 1 else slice(None) for i, s in enumerate(slices))] for a in interval)
    )


def identity(combiner: str, kind: Any) -> Number | None:
    """The identity of a reduction's combining operation, by its name, for an element type."""
    bits = kind.width.data if isinstance(kind, IntegerType) else 0
    match combiner:
        case "arith.addf" | "arith.addi" | "arith.ori" | "arith.xori" | "arith.maxui":
            return 0
        case "arith.mulf" | "arith.muli":
            return 1
        case "arith.maxnumf" | "arith.maximumf":
            return -math.inf
        case "arith.minnumf" | "arith.minimumf":
            return math.inf
        case "arith.maxsi":
            return -(1 << (bits - 1))
        case "arith.minsi":
            return (1 << (bits - 1)) - 1
        case "arith.andi":
            return 1 if bits == 1 else -1
        case "arith.minui":
            return -1
    return None
