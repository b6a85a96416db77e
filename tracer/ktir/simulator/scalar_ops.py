"""Scalar arithmetic on Python numbers: signed integers of a width, floats rounded to their type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from xdsl.ir import Operation

from tracer.ktir.simulator.dtypes import Element, element, rounder, unsigned, wrap
from tracer.ktir.simulator.faults import Fault

ScalarFunction = Callable[..., Any]

CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une",
    "uno", "true",
)  # fmt: skip


def predicate_of(op: Operation) -> int:
    """Number of a comparison's predicate, in the order of `CMPI` or `CMPF`."""
    return int(op.properties["predicate"].value.data)  # type: ignore[attr-defined]


def _divide_signed(a: int, b: int) -> int:
    if b == 0:
        raise Fault("KT214", "division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _checked(b: int) -> int:
    if b == 0:
        raise Fault("KT214", "division by zero")
    return b


def _shift(count: int, bits: int) -> int:
    if not 0 <= count < bits:
        raise Fault("KT215", f"shift of {bits}-bit value by {count}")
    return count


_SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": _divide_signed,
    "remsi": lambda a, b: a - b * _divide_signed(a, b),
    "floordivsi": lambda a, b: a // _checked(b),
    "ceildivsi": lambda a, b: -(-a // _checked(b)),
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": min,
    "maxsi": max,
}
_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": lambda a, b: a // _checked(b),
    "remui": lambda a, b: a % _checked(b),
    "ceildivui": lambda a, b: -(-a // _checked(b)),
    "minui": min,
    "maxui": max,
}


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        if a == 0.0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _maximum(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b == 0.0:
        return a if math.copysign(1.0, a) > 0 else b
    return max(a, b)


def _minimum(a: float, b: float) -> float:
    return -_maximum(-a, -b)


def _maxnum(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else _maximum(a, b)


def _minnum(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else _minimum(a, b)


def _fmod(a: float, b: float) -> float:
    return math.nan if b == 0.0 or math.isinf(a) else math.fmod(a, b)


_FLOAT: dict[str, Callable[[float, float], float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": _divide,
    "remf": _fmod,
    "maximumf": _maximum,
    "minimumf": _minimum,
    "maxnumf": _maxnum,
    "minnumf": _minnum,
}


def compare_floats(predicate: str, a: float, b: float) -> bool:
    """`arith.cmpf` on two floats."""
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("false", "true"):
        return predicate == "true"
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    if unordered:
        return predicate[0] == "u"
    return {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": a != b}[predicate[1:]]


def _compare_ints(op: Operation) -> ScalarFunction:
    predicate = CMPI[predicate_of(op)]
    bits = element(op.operands[0].type).bits
    table: dict[str, Callable[[int, int], bool]] = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }
    if predicate in ("eq", "ne"):
        return table[predicate]
    compare = table[predicate[1:]]
    if predicate[0] == "u":
        return lambda a, b: compare(unsigned(a, bits), unsigned(b, bits))
    if bits == 1:
        return lambda a, b: compare(-a, -b)
    return compare


def _to_int(value: float, el: Element, signed: bool) -> int:
    if not math.isfinite(value):
        raise Fault("KT215", f"conversion of {value} to an integer")
    whole = int(value)
    low, high = (-(1 << (el.bits - 1)), (1 << (el.bits - 1)) - 1) if signed else (0, (1 << el.bits) - 1)
    if not low <= whole <= high:
        raise Fault("KT215", f"{value} does not fit {'i' if signed else 'u'}{el.bits}")
    return wrap(whole, el.bits)


def bitcast(value: Any, source: Element, target: Element) -> Any:
    """The same bits under another type of the same width."""
    held = torch.tensor([value], dtype=source.dtype).view(target.dtype)
    return held.item()


def _arith(name: str, op: Operation) -> ScalarFunction | None:
    source = element(op.operands[0].type) if op.operands else None
    target = element(op.results[0].type) if op.results else None
    assert target is not None
    bits = target.bits
    if name in _SIGNED:
        signed = _SIGNED[name]
        if (
            bits == 64
            and target.name == "index"
            and name in ("minsi", "maxsi", "divsi", "remsi", "andi", "ori")
        ):
            return signed
        if bits == 1 and name in ("minsi", "maxsi"):
            return lambda a, b: -signed(-a, -b)
        if target.name == "index":
            return signed
        return lambda a, b: wrap(signed(a, b), bits)
    if name in _UNSIGNED:
        plain = _UNSIGNED[name]
        return lambda a, b: wrap(plain(unsigned(a, bits), unsigned(b, bits)), bits)
    if name in _FLOAT:
        function, rounded = _FLOAT[name], rounder(target)
        return lambda a, b: rounded(function(a, b))
    assert source is not None
    match name:
        case "shli":
            return lambda a, b: wrap(a << _shift(b, bits), bits)
        case "shrsi":
            return lambda a, b: a >> _shift(b, bits)
        case "shrui":
            return lambda a, b: wrap(unsigned(a, bits) >> _shift(b, bits), bits)
        case "negf":
            return lambda a: -a
        case "cmpi":
            return _compare_ints(op)
        case "cmpf":
            predicate = CMPF[predicate_of(op)]
            return lambda a, b: compare_floats(predicate, a, b)
        case "select":
            return lambda c, a, b: a if c else b
        case "extf" | "truncf":
            return rounder(target)
        case "extsi":
            return (lambda a: wrap(-int(a), bits)) if source.bits == 1 else (lambda a: a)
        case "extui" | "index_castui":
            return lambda a: wrap(unsigned(int(a), source.bits), bits)
        case "trunci":
            return lambda a: wrap(a, bits)
        case "index_cast":
            return (lambda a: -int(a)) if source.bits == 1 else (lambda a: wrap(a, bits))
        case "sitofp":
            rounded = rounder(target)
            return (
                (lambda a: rounded(float(-int(a)))) if source.bits == 1 else (lambda a: rounded(_int_to(a)))
            )
        case "uitofp":
            rounded = rounder(target)
            return lambda a: rounded(_int_to(unsigned(int(a), source.bits)))
        case "fptosi":
            return lambda a: _to_int(a, target, True)
        case "fptoui":
            return lambda a: _to_int(a, target, False)
        case "bitcast":
            return lambda a: bitcast(a, source, target)
    return None


def _int_to(value: int) -> float:
    return float(value)


def _double(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def _torch_unary(name: str) -> Callable[[float], float]:
    function = getattr(torch, name)
    return lambda a: float(function(torch.tensor(a, dtype=torch.float64)))


_MATH_FLOAT: dict[str, Any] = {
    "absf": abs,
    "ceil": lambda a: float(math.ceil(a)) if math.isfinite(a) else a,
    "floor": lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    "trunc": lambda a: float(math.trunc(a)) if math.isfinite(a) else a,
    "roundeven": lambda a: float(round(a)) if math.isfinite(a) else a,
    "round": lambda a: math.copysign(math.floor(abs(a) + 0.5), a) if math.isfinite(a) else a,
    "copysign": math.copysign,
    "fma": lambda a, b, c: float(np.longdouble(a) * np.longdouble(b) + np.longdouble(c)),
    "powf": lambda a, b: float(torch.pow(_double(a), _double(b))),
    "atan2": math.atan2,
    "cbrt": lambda a: math.copysign(abs(a) ** (1.0 / 3.0), a),
    "fpowi": lambda a, b: float(torch.pow(torch.tensor(a, dtype=torch.float64), b)),
} | {
    name: _torch_unary(name)
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "sin", "cos",
        "tan", "erf",
        "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
    )
}  # fmt: skip


def _leading_zeros(value: int, bits: int) -> int:
    return bits - unsigned(value, bits).bit_length()


def _trailing_zeros(value: int, bits: int) -> int:
    plain = unsigned(value, bits)
    return bits if plain == 0 else (plain & -plain).bit_length() - 1


def _math(name: str, op: Operation) -> ScalarFunction | None:
    target = element(op.results[0].type)
    if name in _MATH_FLOAT:
        function, rounded = _MATH_FLOAT[name], rounder(target)
        return lambda *a: rounded(function(*a))
    bits = target.bits
    match name:
        case "absi":
            return lambda a: wrap(abs(a), bits)
        case "ctlz":
            return lambda a: _leading_zeros(a, bits)
        case "cttz":
            return lambda a: _trailing_zeros(a, bits)
        case "ctpop":
            return lambda a: unsigned(a, bits).bit_count()
        case "ipowi":
            return lambda a, b: wrap(a**b, bits) if b >= 0 else (a if a in (1, -1) else 0)
    return None


def scalar_function(op: Operation) -> ScalarFunction | None:
    """The function of an arith or math op on Python numbers, or None for any other op."""
    dialect, _, name = op.name.partition(".")
    if dialect == "arith":
        return _arith(name, op)
    return _math(name, op) if dialect == "math" else None
