"""Scalar arithmetic on Python numbers: signed integers of a width, floats rounded to their type.

Functions of `math` on floats are those of tiles, so that a scalar and an element of a tile agree to the last
bit (but for exp2, where torch's vector path and its rest differ by one unit now and then). A NaN is only a
NaN here: of its bits, a scalar keeps the sign at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from xdsl.ir import Operation

from tracer.ktir.simulator.dtypes import Element, element, rounder, unsigned, wrap
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.float_ops import float_function, float_test, sine_and_cosine

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
_DIVISIONS = ("divsi", "floordivsi", "ceildivsi")


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


def _division(name: str, el: Element) -> ScalarFunction:
    divide, bits = _SIGNED[name], el.bits
    lowest = -1 if bits == 1 else -(1 << (bits - 1))

    def apply(a: int, b: int) -> int:
        if bits == 1:
            a, b = -a, -b
        quotient = divide(a, b)
        if quotient == -lowest:
            raise Fault("KT215", f"{a} / {b} does not fit i{bits}")
        return wrap(quotient, bits)

    return apply


def _extended(name: str, el: Element) -> ScalarFunction:
    """The operations of two results: low and high half of a product, sum and carry."""
    bits = el.bits

    def add(a: int, b: int) -> tuple[int, int]:
        total = unsigned(a, bits) + unsigned(b, bits)
        return wrap(total, bits), total >> bits

    def read(value: int) -> int:
        if name == "mului_extended":
            return unsigned(value, bits)
        return -value if bits == 1 else value

    def multiply(a: int, b: int) -> tuple[int, int]:
        product = read(a) * read(b)
        return wrap(product, bits), wrap(product >> bits, bits)

    return add if name == "addui_extended" else multiply


def _arith(name: str, op: Operation) -> ScalarFunction | None:
    source = element(op.operands[0].type) if op.operands else None
    target = element(op.results[0].type) if op.results else None
    assert target is not None
    bits = target.bits
    if name in _SIGNED:
        signed = _SIGNED[name]
        if name in _DIVISIONS:
            return _division(name, target)
        if bits == 1 and name in ("minsi", "maxsi"):
            return lambda a, b: -signed(-a, -b)
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
        case "addui_extended" | "mulsi_extended" | "mului_extended":
            return _extended(name, target)
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
            sign = -1 if source.bits == 1 else 1
            return lambda a: rounded(_odd_float(sign * int(a), target))
        case "uitofp":
            rounded = rounder(target)
            return lambda a: rounded(_odd_float(unsigned(int(a), source.bits), target))
        case "fptosi":
            return lambda a: _to_int(a, target, True)
        case "fptoui":
            return lambda a: _to_int(a, target, False)
        case "bitcast":
            return lambda a: bitcast(a, source, target)
    return None


def _odd_float(value: int, target: Element) -> float:
    """A float64 that rounds to `target` as the integer does: rounded to odd unless f64 is the target."""
    shift = abs(value).bit_length() - 53
    if target.bits == 64 or shift <= 0:
        return float(value)
    return float((value >> shift | (value & ((1 << shift) - 1) != 0)) << shift)


def _leading_zeros(value: int, bits: int) -> int:
    return bits - unsigned(value, bits).bit_length()


def _trailing_zeros(value: int, bits: int) -> int:
    plain = unsigned(value, bits)
    return bits if plain == 0 else (plain & -plain).bit_length() - 1


def _math(name: str, op: Operation) -> ScalarFunction | None:
    target = element(op.results[0].type)
    if target.is_float and (tile := float_function(name, target)) is not None:
        dtypes = [element(v.type).dtype for v in op.operands]
        return lambda *a: tile(*(torch.tensor(v, dtype=d) for v, d in zip(a, dtypes, strict=True))).item()
    source = element(op.operands[0].type)
    if name == "sincos":
        both = sine_and_cosine(target)
        return lambda a: tuple(v.item() for v in both(torch.tensor(a, dtype=target.dtype)))
    if (test := float_test(name, source)) is not None:
        return lambda a: bool(test(torch.tensor(a, dtype=source.dtype)))
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
            return lambda a, b: _power(a, b, bits)
    return None


def _power(base: int, exponent: int, bits: int) -> int:
    if bits == 1:
        base, exponent = -base, -exponent
    if exponent >= 0:
        return wrap(pow(base, exponent, 1 << bits), bits)
    if base == 0:
        raise Fault("KT214", f"0 to the power {exponent}")
    return wrap((1 if exponent % 2 == 0 else base) if base in (1, -1) else 0, bits)


def scalar_function(op: Operation) -> ScalarFunction | None:
    """The function of an arith or math op on Python numbers, or None for any other op."""
    dialect, _, name = op.name.partition(".")
    if dialect == "arith":
        return _arith(name, op)
    return _math(name, op) if dialect == "math" else None
