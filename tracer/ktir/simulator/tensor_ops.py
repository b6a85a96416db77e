"""Elementwise arithmetic on tiles: torch in the declared dtype, rounded after every operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.simulator.dtypes import Element, element
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.float_ops import float_function, float_test, in_single, sine_and_cosine
from tracer.ktir.simulator.rounding import from_integers, narrowed
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


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """Signed operands of a division that is defined. The lowest integer over -1 would end the process."""
    if bool((_nonzero(b) == -1).any()):
        lowest = torch.iinfo(a.dtype).min
        bad = (a == lowest) & (b == -1)
        if bool(bad.any()):
            raise Fault("KT215", f"{lowest} / -1 does not fit i{torch.iinfo(a.dtype).bits}", _first(bad))
    return b


def _ceil_div_signed(a: Tensor, b: Tensor) -> Tensor:
    # Without the negative of `a`, which the lowest integer does not have.
    quotient = torch.div(a, _quotient(a, b), rounding_mode="trunc")
    rest = torch.fmod(a, b)
    return quotient + ((rest != 0) & ((rest < 0) == (b < 0))).to(a.dtype)


def _boolean_quotient(a: Tensor, b: Tensor) -> Tensor:
    # The signed i1 are 0 and -1, and 1 is no i1.
    bad = torch.logical_and(a, _nonzero(b))
    if bool(bad.any()):
        raise Fault("KT215", "-1 / -1 does not fit i1", _first(bad))
    return bad


def _unsigned_div(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> TileFunction:
    apply = _through_unsigned(function)
    return lambda a, b: apply(a, _nonzero(b))


INTEGER: dict[str, TileFunction] = {
    "addi": torch.add,
    "subi": torch.sub,
    "muli": torch.mul,
    "divsi": lambda a, b: torch.div(a, _quotient(a, b), rounding_mode="trunc"),
    "remsi": lambda a, b: torch.fmod(a, _nonzero(b)),
    "floordivsi": lambda a, b: torch.div(a, _quotient(a, b), rounding_mode="floor"),
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
    "absi": torch.abs,
}
_PYTHON = ("ctlz", "cttz", "ctpop", "ipowi", "addui_extended", "mulsi_extended", "mului_extended")
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
    "divsi": _boolean_quotient,
    "floordivsi": _boolean_quotient,
    "ceildivsi": _boolean_quotient,
    "remsi": lambda a, b: torch.logical_and(a, ~_nonzero(b)),
    "absi": lambda a: a,
}


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
    return torch.from_numpy(_unsigned_view(value).astype(np.int64)).to(target.dtype)


def _cast(name: str, source: Element, target: Element) -> TileFunction | None:
    dtype = target.dtype
    match name:
        case "extf" | "truncf":
            return lambda a: narrowed(a, dtype)
        case "trunci":
            return (lambda a: (a & 1).bool()) if target.bits == 1 else (lambda a: a.to(dtype))
        case "extsi" | "index_cast":
            if source.bits == 1:
                return lambda a: -(a.to(dtype))
            return (lambda a: (a & 1).bool()) if target.bits == 1 else (lambda a: a.to(dtype))
        case "sitofp" | "uitofp":
            return lambda a: from_integers(a, dtype, signed=name == "sitofp")
        case "index_castui" if target.bits == 1:
            return lambda a: (a & 1).bool()
        case "extui" | "index_castui":
            return lambda a: _unsigned_to(a, source, target)
        case "fptosi" | "fptoui":
            return lambda a: _to_integer(a, target, name == "fptosi")
        case "bitcast":
            return lambda a: a.contiguous().view(dtype)
    return None


def tile_function(op: Operation) -> Callable[..., Any] | None:
    """The function of an elementwise arith or math op on tiles, or None for any other op."""
    dialect, _, name = op.name.partition(".")
    if dialect not in ("arith", "math") or not op.results or not op.operands:
        return None
    source, target = element(op.operands[0].type), element(op.results[0].type)
    if name in ("mulsi_extended", "mului_extended") and 1 < target.bits < 64:
        return _extended_product(target, name == "mulsi_extended")
    if name in _PYTHON:
        return _elementwise_python(scalar_function(op), [element(r.type).dtype for r in op.results])
    if name == "cmpi":
        return _compare_ints(CMPI[predicate_of(op)], source.bits == 1)
    if name == "cmpf":
        compare = _compare_floats(CMPF[predicate_of(op)])
        return in_single(compare, source) if source.narrow else compare
    if name == "select":
        return torch.where
    if (test := float_test(name, source)) is not None:
        return test
    if name == "sincos":
        return sine_and_cosine(target)
    if name in ("shli", "shrsi", "shrui"):
        return _shift(name, target)
    return element_function(name, target) or _cast(name, source, target)


def element_function(name: str, el: Element) -> TileFunction | None:
    """The function of an operation whose operands and result have one element type, by its name without the
    dialect.
    """
    if el.is_float:
        return float_function(name, el)
    return (_BOOLEAN.get(name) if el.bits == 1 else None) or INTEGER.get(name)


def _shift(name: str, target: Element) -> TileFunction:
    bits = target.bits
    if bits == 1:
        return lambda a, b: torch.logical_and(a, ~_shift_ok(b, bits))
    if name == "shli":
        return lambda a, b: torch.bitwise_left_shift(a, _shift_ok(b, bits))
    if name == "shrsi":
        return lambda a, b: torch.bitwise_right_shift(a, _shift_ok(b, bits))
    apply = _through_unsigned(np.right_shift)
    return lambda a, b: apply(a, _shift_ok(b, bits))


def _extended_product(el: Element, signed: bool) -> Any:
    mask = (1 << el.bits) - 1

    def apply(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        left, right = a.to(torch.int64), b.to(torch.int64)
        product = left * right if signed else (left & mask) * (right & mask)
        return product.to(el.dtype), (product >> el.bits).to(el.dtype)

    return apply


def _elementwise_python(function: Callable[..., Any] | None, dtypes: Sequence[torch.dtype]) -> Any:
    assert function is not None

    def apply(*values: Tensor) -> Any:
        tiles = torch.broadcast_tensors(*values)
        rows = [function(*row) for row in zip(*(t.flatten().tolist() for t in tiles), strict=True)]
        columns = zip(*rows, strict=True) if len(dtypes) > 1 else [rows]
        # A tile without elements has no row that would tell how many results there are.
        found = [list(column) for column in columns] or [[] for _ in dtypes]
        out = [torch.tensor(c, dtype=d).reshape(tiles[0].shape) for c, d in zip(found, dtypes, strict=True)]
        return tuple(out) if len(out) > 1 else out[0]

    return apply
