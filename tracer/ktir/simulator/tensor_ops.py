"""Elementwise arithmetic on tiles: torch in the declared dtype, rounded after every operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.simulator.dtypes import Element, element
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.scalar_ops import CMPF, CMPI, predicate_of, scalar_function

TileFunction = Callable[..., Tensor]


def _unsigned_view(value: Tensor) -> np.ndarray:
    array = value.contiguous().numpy()
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _through_unsigned(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> TileFunction:
    """`function` on the unsigned reading of integer tiles."""

    def apply(a: Tensor, b: Tensor) -> Tensor:
        if a.dtype == torch.bool:
            out = function(a.numpy().astype(np.uint8), b.numpy().astype(np.uint8))
            return torch.from_numpy(np.asarray(out).astype(bool))
        a, b = torch.broadcast_tensors(a, b)
        out = np.asarray(function(_unsigned_view(a), _unsigned_view(b)))
        if out.dtype == bool:
            return torch.from_numpy(out)
        return torch.from_numpy(out.view(np.dtype(f"i{out.dtype.itemsize}")))

    return apply


def _nonzero(b: Tensor) -> Tensor:
    if not bool(b.all()):
        raise Fault("KT214", "division by zero", _first(b == 0))
    return b


def _first(mask: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in torch.nonzero(mask)[0])


def _shift_ok(b: Tensor, bits: int) -> Tensor:
    bad = (b < 0) | (b >= bits)
    if bool(bad.any()):
        raise Fault("KT215", f"shift of a {bits}-bit element out of range", _first(bad))
    return b


def _ceil_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient = a // b
    return quotient + (a - quotient * b != 0).astype(quotient.dtype)


def _ceil_div_signed(a: Tensor, b: Tensor) -> Tensor:
    # Without the negative of `a`, which the lowest integer does not have.
    quotient = torch.div(a, _nonzero(b), rounding_mode="trunc")
    rest = torch.fmod(a, b)
    return quotient + ((rest != 0) & ((rest < 0) == (b < 0))).to(a.dtype)


def _remainder(a: Tensor, b: Tensor) -> Tensor:
    # torch.fmod is NaN where the quotient overflows; NumPy's is exact. Every narrower float is a float64.
    with np.errstate(invalid="ignore"):
        out = np.fmod(a.to(torch.float64).numpy(), b.to(torch.float64).numpy())
    return torch.from_numpy(np.asarray(out)).to(a.dtype)


def _unsigned_div(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> TileFunction:
    apply = _through_unsigned(function)
    return lambda a, b: apply(a, _nonzero(b))


INTEGER: dict[str, TileFunction] = {
    "addi": torch.add,
    "subi": torch.sub,
    "muli": torch.mul,
    "divsi": lambda a, b: torch.div(a, _nonzero(b), rounding_mode="trunc"),
    "remsi": lambda a, b: torch.fmod(a, _nonzero(b)),
    "floordivsi": lambda a, b: torch.div(a, _nonzero(b), rounding_mode="floor"),
    "ceildivsi": _ceil_div_signed,
    "andi": torch.bitwise_and,
    "ori": torch.bitwise_or,
    "xori": torch.bitwise_xor,
    "minsi": torch.minimum,
    "maxsi": torch.maximum,
    "divui": _unsigned_div(np.floor_divide),
    "remui": _unsigned_div(np.remainder),
    "ceildivui": _unsigned_div(_ceil_div),
    "minui": _through_unsigned(np.minimum),
    "maxui": _through_unsigned(np.maximum),
}
_BOOLEAN: dict[str, TileFunction] = {
    "addi": torch.logical_xor,
    "subi": torch.logical_xor,
    "muli": torch.logical_and,
    "andi": torch.logical_and,
    "ori": torch.logical_or,
    "xori": torch.logical_xor,
    "minsi": torch.logical_or,
    "maxsi": torch.logical_and,
    "minui": torch.logical_and,
    "maxui": torch.logical_or,
}
_FLOAT: dict[str, TileFunction] = {
    "addf": torch.add,
    "subf": torch.sub,
    "mulf": torch.mul,
    "divf": torch.div,
    "remf": _remainder,
    "maximumf": torch.maximum,
    "minimumf": torch.minimum,
    "maxnumf": torch.fmax,
    "minnumf": torch.fmin,
    "negf": torch.neg,
}


def _round_half_away(a: Tensor) -> Tensor:
    # Adding a half would round 0.49999997 up; split into whole and fraction instead.
    whole = torch.trunc(a)
    return whole + torch.sign(a) * ((a - whole).abs() >= 0.5)


def _fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return (a.to(torch.float64) * b.to(torch.float64) + c.to(torch.float64)).to(a.dtype)


_MATH: dict[str, TileFunction] = {
    "absf": torch.abs,
    "absi": torch.abs,
    "ceil": torch.ceil,
    "floor": torch.floor,
    "trunc": torch.trunc,
    "roundeven": torch.round,
    "round": _round_half_away,
    "copysign": torch.copysign,
    "powf": torch.pow,
    "fpowi": lambda a, b: torch.pow(a, b.to(a.dtype)),
    "fma": _fma,
    "atan2": torch.atan2,
    "cbrt": lambda a: torch.copysign(torch.pow(a.abs().to(torch.float64), 1.0 / 3.0), a).to(a.dtype),
    **{
        name: getattr(torch, name)
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "sin",
            "cos", "tan",
            "erf", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
        )
    },
}  # fmt: skip


def _compare_floats(predicate: str) -> TileFunction:
    plain: dict[str, TileFunction] = {
        "eq": torch.eq, "gt": torch.gt, "ge": torch.ge, "lt": torch.lt, "le": torch.le, "ne": torch.ne,
    }  # fmt: skip
    if predicate in ("true", "false"):
        return lambda a, b: torch.full_like(a, predicate == "true", dtype=torch.bool)
    if predicate == "uno":
        return lambda a, b: torch.isnan(a) | torch.isnan(b)
    if predicate == "ord":
        return lambda a, b: ~(torch.isnan(a) | torch.isnan(b))
    compare = plain[predicate[1:]]
    # torch.ne is true on NaN and every other comparison false.
    if predicate == "one":
        return lambda a, b: compare(a, b) & ~(torch.isnan(a) | torch.isnan(b))
    if predicate[0] == "o" or predicate == "une":
        return compare
    return lambda a, b: compare(a, b) | torch.isnan(a) | torch.isnan(b)


def _compare_ints(predicate: str, boolean: bool) -> TileFunction:
    plain: dict[str, TileFunction] = {
        "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    }  # fmt: skip
    if predicate in plain:
        return plain[predicate]
    if predicate[0] == "s":
        if boolean:  # i1 true is -1
            return lambda a, b: plain[predicate[1:]](b, a)
        return plain[predicate[1:]]
    arrays = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
    return _through_unsigned(arrays[predicate[1:]])


def _to_integer(value: Tensor, target: Element, signed: bool) -> Tensor:
    low, high = (-(2.0 ** (target.bits - 1)), 2.0 ** (target.bits - 1)) if signed else (0.0, 2.0**target.bits)
    wide = torch.trunc(value.to(torch.float64))
    bad = ~((wide >= low) & (wide < high))
    if bool(bad.any()):
        raise Fault("KT215", f"element does not fit {'i' if signed else 'u'}{target.bits}", _first(bad))
    if signed:
        return wide.to(target.dtype)
    array = wide.numpy().astype(np.dtype(f"u{target.bytes}"))
    return torch.from_numpy(array.view(np.dtype(f"i{target.bytes}"))) if target.bits > 1 else wide.bool()


def _unsigned_to(value: Tensor, source: Element, target: Element) -> Tensor:
    if source.bits == 1:
        return value.to(target.dtype)
    return torch.from_numpy(_unsigned_view(value).astype(np.float64 if target.is_float else np.int64)).to(
        target.dtype
    )


def _cast(name: str, source: Element, target: Element) -> TileFunction | None:
    dtype = target.dtype
    match name:
        case "extf" | "truncf":
            if source.bits == 64 and target.bits < 32:
                return lambda a: _round_once(a, dtype)
            return lambda a: a.to(dtype)
        case "trunci":
            return (lambda a: (a & 1).bool()) if target.bits == 1 else (lambda a: a.to(dtype))
        case "extsi" | "index_cast":
            if source.bits == 1:
                return lambda a: -(a.to(dtype))
            return (lambda a: (a & 1).bool()) if target.bits == 1 else (lambda a: a.to(dtype))
        case "sitofp":
            return (lambda a: -(a.to(dtype))) if source.bits == 1 else (lambda a: a.to(dtype))
        case "index_castui" if target.bits == 1:
            return lambda a: (a & 1).bool()
        case "extui" | "index_castui" | "uitofp":
            return lambda a: _unsigned_to(a, source, target)
        case "fptosi" | "fptoui":
            return lambda a: _to_integer(a, target, name == "fptosi")
        case "bitcast":
            return lambda a: a.contiguous().view(dtype)
    return None


def _round_once(value: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to a 16-bit type without rounding through float32: nudge values that f32 would round onto a
    tie.
    """
    single = value.to(torch.float32)
    error = value - single.to(torch.float64)
    bits = single.view(torch.int32)
    odd = torch.where((error != 0) & ((bits & 1) == 0), torch.ones_like(bits), torch.zeros_like(bits))
    toward = torch.where((error > 0) == (single > 0), odd, -odd)
    adjusted = torch.where(
        torch.isfinite(single) & (single != 0), (bits + toward).view(torch.float32), single
    )
    return adjusted.to(dtype)


def _narrow(function: TileFunction, target: Element) -> TileFunction:
    def apply(*values: Tensor) -> Tensor:
        wide = [v.to(torch.float32) if v.is_floating_point() else v for v in values]
        out = function(*wide)
        return out.to(target.dtype) if out.is_floating_point() else out

    return apply


def tile_function(op: Operation) -> TileFunction | None:
    """The function of an elementwise arith or math op on tiles, or None for any other op."""
    dialect, _, name = op.name.partition(".")
    if dialect not in ("arith", "math") or not op.results or not op.operands:
        return None
    source, target = element(op.operands[0].type), element(op.results[0].type)
    function = _function(dialect, name, op, source, target)
    if (
        function is not None
        and (source.narrow or target.narrow)
        and name not in ("extf", "truncf", "bitcast")
    ):
        return _narrow(function, target)
    return function


def _function(
    dialect: str, name: str, op: Operation, source: Element, target: Element
) -> TileFunction | None:
    if dialect == "math":
        if name in ("ctlz", "cttz", "ctpop", "ipowi"):
            scalar: Any = scalar_function(op)
            return _elementwise_python(scalar)
        return _MATH.get(name)
    if name == "cmpi":
        return _compare_ints(CMPI[predicate_of(op)], source.bits == 1)
    if name == "cmpf":
        return _compare_floats(CMPF[predicate_of(op)])
    if name == "select":
        return torch.where
    if name in ("shli", "shrsi", "shrui"):
        return _shift(name, target)
    if target.bits == 1 and name in _BOOLEAN:
        return _BOOLEAN[name]
    return INTEGER.get(name) or _FLOAT.get(name) or _cast(name, source, target)


def _shift(name: str, target: Element) -> TileFunction:
    bits = target.bits
    if name == "shli":
        return lambda a, b: torch.bitwise_left_shift(a, _shift_ok(b, bits))
    if name == "shrsi":
        return lambda a, b: torch.bitwise_right_shift(a, _shift_ok(b, bits))
    apply = _through_unsigned(np.right_shift)
    return lambda a, b: apply(a, _shift_ok(b, bits))


def _elementwise_python(function: Callable[..., int]) -> TileFunction:
    def apply(*values: Tensor) -> Tensor:
        rows = zip(*(v.flatten().tolist() for v in values), strict=True)
        return torch.tensor([function(*row) for row in rows], dtype=values[0].dtype).reshape(values[0].shape)

    return apply
