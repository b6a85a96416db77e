"""The elementwise operations of Triton that `arith` and `math` spell differently."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tracer.ktir.dialect.arith_ops import CASTS, CmpfOp, SelectOp
from tracer.ktir.dialect.extra_ops import RemfOp
from tracer.lower.build import cast
from tracer.lower.edit import Emitter, element_type, operations, shape_of, splat_constant, with_shape
from tracer.lower.manager import Job
from tracer.lower.tt_ops import (
    BitcastOp,
    ClampFOp,
    ExternElementwiseOp,
    FpToFpOp,
    MulhiUIOp,
    PreciseDivFOp,
    PreciseSqrtOp,
)

_LIBRARY: dict[str, Any] = {
    "acos": math.AcosOp,
    "acosh": math.AcoshOp,
    "asin": math.AsinOp,
    "asinh": math.AsinhOp,
    "atan": math.AtanOp,
    "atan2": math.Atan2Op,
    "atanh": math.AtanhOp,
    "ceil": math.CeilOp,
    "copysign": math.CopySignOp,
    "cos": math.CosOp,
    "cosh": math.CoshOp,
    "erf": math.ErfOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "fabs": math.AbsFOp,
    "floor": math.FloorOp,
    "fmod": RemfOp,
    "log": math.LogOp,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "log2": math.Log2Op,
    "nearbyint": math.RoundEvenOp,
    "pow": math.PowFOp,
    "rint": math.RoundEvenOp,
    "round": math.RoundOp,
    "rsqrt": math.RsqrtOp,
    "sin": math.SinOp,
    "sinh": math.SinhOp,
    "sqrt": math.SqrtOp,
    "tan": math.TanOp,
    "tanh": math.TanhOp,
    "trunc": math.TruncOp,
}


@dataclass(frozen=True)
class LowerElementwise:
    """`plain_exp2` writes exp(x ln 2) instead, for simulators without `math.exp2`."""

    plain_exp2: bool = False
    name: ClassVar[str] = "lower-elementwise"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in operations(module):
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(op, Emitter(op))
            elif self.plain_exp2 and isinstance(op, math.Exp2Op):
                _exp2(op, Emitter(op))


def _like(value: SSAValue, kind: Attribute) -> Attribute:
    return with_shape(kind, shape_of(value)) if isinstance(value.type, TensorType) else kind


def _constant(emitter: Emitter, number: float, like: SSAValue) -> SSAValue:
    kind = like.type
    if isinstance(kind, TensorType):
        return emitter.emit(splat_constant(number, kind), "cst")
    assert isinstance(kind, AnyFloat | IntegerType)
    value = FloatAttr(number, kind) if isinstance(kind, AnyFloat) else IntegerAttr(int(number), kind)
    return emitter.emit(arith.ConstantOp(value), "cst")


def _exp2(op: math.Exp2Op, emitter: Emitter) -> None:
    factor = _constant(emitter, python_math.log(2.0), op.operand)
    emitter.replace([emitter.emit(math.ExpOp(emitter.emit(arith.MulfOp(op.operand, factor))))])


def _clamp(op: ClampFOp, emitter: Emitter) -> None:
    value, low, high = op.sources
    all_nan = op.attributes.get("propagateNan") == StringAttr("all")
    lower: Any = arith.MaximumfOp if all_nan else arith.MaxnumfOp
    upper: Any = arith.MinimumfOp if all_nan else arith.MinnumfOp
    raised = emitter.emit(lower(value, low))
    emitter.replace([emitter.emit(upper(raised, high))])


def _precise_div(op: PreciseDivFOp, emitter: Emitter) -> None:
    emitter.replace([emitter.emit(arith.DivfOp(op.sources[0], op.sources[1]))])


def _precise_sqrt(op: PreciseSqrtOp, emitter: Emitter) -> None:
    emitter.replace([emitter.emit(math.SqrtOp(op.sources[0]))])


def _fp_to_fp(op: FpToFpOp, emitter: Emitter) -> None:
    source, target = element_type(op.source.type), element_type(op.result.type)
    assert isinstance(source, AnyFloat)
    assert isinstance(target, AnyFloat)
    if op.attributes.get("rounding", StringAttr("rtne")) != StringAttr("rtne"):
        return
    name = "extf" if target.bitwidth > source.bitwidth else "truncf"
    emitter.replace([cast(emitter, name, op.source, target)])


def _bitcast(op: BitcastOp, emitter: Emitter) -> None:
    source, target = element_type(op.source.type), element_type(op.result.type)
    if not all(isinstance(kind, AnyFloat | IntegerType) for kind in (source, target)):
        return
    emitter.replace([emitter.emit(CASTS["arith.bitcast"](op.source, op.result.type))])


def _mulhi(op: MulhiUIOp, emitter: Emitter) -> None:
    a, b = op.sources
    kind = element_type(a.type)
    assert isinstance(kind, IntegerType)
    width = kind.width.data
    wide = IntegerType(2 * width)
    left, right = (cast(emitter, "extui", v, wide) for v in (a, b))
    product = emitter.emit(arith.MuliOp(left, right, result_type=_like(a, wide)))
    shift = _constant(emitter, width, product)
    emitter.replace(
        [cast(emitter, "trunci", emitter.emit(arith.ShRUIOp(product, shift, product.type)), kind)]
    )


def _hypot(emitter: Emitter, x: SSAValue, y: SSAValue) -> SSAValue:
    """big sqrt(1 + (small / big)^2), whose square neither overflows nor vanishes; infinite if either is."""
    a, b = (emitter.emit(math.AbsFOp(v)) for v in (x, y))
    big, small = emitter.emit(arith.MaxnumfOp(a, b)), emitter.emit(arith.MinimumfOp(a, b))
    zero, one, infinite = (_constant(emitter, c, x) for c in (0.0, 1.0, python_math.inf))
    divisor = emitter.emit(SelectOp(emitter.emit(CmpfOp(big, zero, "oeq")), one, big))
    ratio = emitter.emit(arith.DivfOp(small, divisor))
    square = emitter.emit(arith.MulfOp(ratio, ratio))
    root = emitter.emit(math.SqrtOp(emitter.emit(arith.AddfOp(one, square))))
    length = emitter.emit(arith.MulfOp(big, root))
    return emitter.emit(SelectOp(emitter.emit(CmpfOp(big, infinite, "oeq")), big, length))


# Functions of the library that are several operations here.
_COMPOSED: dict[str, Callable[..., SSAValue]] = {"hypot": _hypot}


def _extern(op: ExternElementwiseOp, emitter: Emitter) -> None:
    symbol = op.attributes["symbol"]
    assert isinstance(symbol, StringAttr)
    name = symbol.data.removeprefix("__nv_")
    # CUDA's library names the f32 variant of `tanh` `tanhf`.
    for spelling in (name, name.removesuffix("f")):
        if spelling in _LIBRARY:
            emitter.replace([emitter.emit(_LIBRARY[spelling](*op.sources))])
            return
        if spelling in _COMPOSED:
            emitter.replace([_COMPOSED[spelling](emitter, *op.sources)])
            return


_RULES: dict[type[Operation], Callable[[Any, Emitter], None]] = {
    ClampFOp: _clamp,
    PreciseDivFOp: _precise_div,
    PreciseSqrtOp: _precise_sqrt,
    FpToFpOp: _fp_to_fp,
    BitcastOp: _bitcast,
    MulhiUIOp: _mulhi,
    ExternElementwiseOp: _extern,
}
