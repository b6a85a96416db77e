"""Float operations on tiles, each in the declared type.

Exact, that is rounded once: + - * /, remainder, square root, fused multiply-add, the four ways to a whole
number, minimum and maximum (IEEE 754-2019: -0 is less than +0), sign, comparison. Everything else of `math`
is within one unit of the last place of the declared type; f16 and bf16 are computed in f32, fp8 in f32.
torch's own functions are used where they hold that (measured on 2.13: at most 1.0), a wider type where they
do not: f64 for the narrower types, `long double` for f64 (on a machine whose `long double` is no wider than
a double, the bound of those in f64 is that of its C library).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.simulator.dtypes import Element
from tracer.ktir.simulator.rounding import narrowed, to_odd

TileFunction = Callable[..., Tensor]

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _word(value: Tensor) -> Tensor:
    return value.view(_WORDS[value.element_size()])


def _lowest(value: Tensor) -> int:
    return -1 << (8 * value.element_size() - 1)


def _negate(a: Tensor) -> Tensor:
    # torch does not flip the sign of a bf16 NaN.
    return (
        torch.neg(a) if a.dtype in (torch.float16, torch.float32) else (_word(a) ^ _lowest(a)).view(a.dtype)
    )


def _copysign(a: Tensor, b: Tensor) -> Tensor:
    sign = _lowest(a)
    return ((_word(a) & ~sign) | (_word(b) & sign)).view(a.dtype)


def _absolute(a: Tensor) -> Tensor:
    return (_word(a) & ~_lowest(a)).view(a.dtype)


def has_zero(value: Tensor) -> bool:
    """Whether an element of a float tile is zero, of either sign."""
    if value.dtype in (torch.float32, torch.float64):
        return bool((value.numpy() == 0).any())
    words = _word(value).numpy()
    return bool((words + words == 0).any())


def _has_nan(value: Tensor) -> bool:
    if value.dtype in (torch.float32, torch.float64):
        return bool(np.isnan(value.numpy()).any())
    infinity = 0x7C00 if value.dtype == torch.float16 else 0x7F80
    return bool(((_word(value).numpy() & 0x7FFF) > infinity).any())


def _maximum(a: Tensor, b: Tensor) -> Tensor:
    out = torch.maximum(a, b)
    if not has_zero(out):
        return out
    # Equal numbers differ in their sign bit at most.
    return torch.where(a == b, (_word(a) & _word(b)).view(a.dtype), out)


def _minimum(a: Tensor, b: Tensor) -> Tensor:
    out = torch.minimum(a, b)
    if not has_zero(out):
        return out
    return torch.where(a == b, (_word(a) | _word(b)).view(a.dtype), out)


def _numbers(pick: TileFunction) -> TileFunction:
    """`pick`, but the other operand where one is NaN."""

    def apply(a: Tensor, b: Tensor) -> Tensor:
        out = pick(a, b)
        if not _has_nan(out):
            return out
        return torch.where(torch.isnan(a), b, torch.where(torch.isnan(b), a, out))

    return apply


def _array(out: Any) -> Tensor:
    return torch.from_numpy(np.asarray(out))


def _remainder(a: Tensor, b: Tensor) -> Tensor:
    # torch.fmod is NaN where the quotient overflows; NumPy's is exact. Every narrower float is a float64.
    with np.errstate(invalid="ignore"):
        out = np.fmod(a.to(torch.float64).numpy(), b.to(torch.float64).numpy())
    return _array(out).to(a.dtype)


def _sqrt(a: Tensor) -> Tensor:
    # torch's is a vector library's, 0.75 units off in f32 and 0.53 in f64.
    with np.errstate(invalid="ignore"):
        return _array(np.sqrt(a.numpy()))


def _round_half_away(a: Tensor) -> Tensor:
    # Adding a half would round 0.49999997 up; split into whole and fraction instead.
    whole = torch.trunc(a)
    step = torch.copysign(((a - whole).abs() >= 0.5).to(a.dtype), a)
    return torch.where(torch.isfinite(a), whole + step, a)


def _wide(function: Callable[..., Any]) -> TileFunction:
    """A NumPy function computed in a wider float and rounded."""

    def apply(a: Tensor, *rest: Tensor) -> Tensor:
        # A 64-bit integer is exact in a long double.
        whole = any(v.dtype == torch.int64 for v in rest)
        wide = np.longdouble if a.dtype == torch.float64 or whole else np.float64
        with np.errstate(all="ignore"):
            arrays = [(v.to(torch.float64) if v.is_floating_point() else v).numpy() for v in (a, *rest)]
            out = function(*(array.astype(wide) for array in arrays))
            return narrowed(_array(np.asarray(out).astype(np.float64)), a.dtype)

    return apply


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # NumPy takes the square root for an exponent of one half, which differs at -0 and -inf.
    return np.where((b == 0.5) & ((a == 0) | np.isneginf(a)), np.abs(a), np.power(a, b))


def _rsqrt_single(a: Tensor) -> Tensor:
    return torch.rsqrt(a.to(torch.float64)).to(torch.float32)


def fused(a: float, b: float, c: float) -> float:
    """`a * b + c` of float64 numbers, rounded once."""
    total = a * b + c
    try:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
    except (ValueError, OverflowError):  # NaN, infinity
        return total
    if not exact:
        return total  # with the sign that the sum of two zeros, or of opposites, has
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def _two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def _split(a: Tensor) -> tuple[Tensor, Tensor]:
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _fma_double(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Boldo and Melquiond's algorithm; element by element where it would over- or underflow."""
    a, b, c = torch.broadcast_tensors(a, b, c)
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    low, low_rest = _two_sum(c, rest)
    high, high_rest = _two_sum(product, low)
    odd = to_odd(*_two_sum(low_rest, high_rest))
    large, small = 2.0**990, 2.0**-900
    size = product.abs()
    safe = (a.abs() < large) & (b.abs() < large) & (c.abs() < large) & (size < large) & (size > small)
    plain = (a == 0) | (b == 0) | ~(torch.isfinite(a) & torch.isfinite(b) & torch.isfinite(c))
    out = torch.where(safe, high + odd, product + c)
    for index in torch.nonzero(~(safe | plain)).tolist():
        at = tuple(index)
        out[at] = fused(a[at].item(), b[at].item(), c[at].item())
    return out


def _fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    if a.dtype == torch.float64:
        return _fma_double(a, b, c)
    # The product of narrower numbers is exact in f64.
    return narrowed(
        to_odd(*_two_sum(a.to(torch.float64) * b.to(torch.float64), c.to(torch.float64))), a.dtype
    )


def _half(function: TileFunction) -> TileFunction:
    """A function of f16 or bf16 in f32. torch's own erf is zero for subnormals, and its rsqrt rounds the root
    of the elements that do not fill a vector.
    """
    return lambda a: function(a.to(torch.float32)).to(a.dtype)


_BITWISE: dict[str, TileFunction] = {"negf": _negate, "absf": _absolute, "copysign": _copysign}
_ROUNDS_ITSELF: dict[str, TileFunction] = {
    "fma": _fma,
    "remf": _remainder,
    "powf": _wide(_power),
    "fpowi": _wide(np.power),
    "atan2": _wide(np.arctan2),
    **{n: _wide(getattr(np, n)) for n in ("sinh", "cosh", "cbrt")},
    **{f"a{n}": _wide(getattr(np, f"arc{n}")) for n in ("sinh", "cosh", "tanh")},
}
_PLAIN: dict[str, TileFunction] = {
    "addf": torch.add,
    "subf": torch.sub,
    "mulf": torch.mul,
    "divf": torch.div,
    "maximumf": _maximum,
    "minimumf": _minimum,
    "maxnumf": _numbers(_maximum),
    "minnumf": _numbers(_minimum),
    "clampf": lambda a, low, high: _maximum(_minimum(a, high), low),
    "roundeven": torch.round,
    "round": _round_half_away,
    **{
        name: getattr(torch, name)
        for name in (
            "ceil", "floor", "trunc", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
            "rsqrt", "tanh", "sin", "cos", "tan", "erf", "erfc", "asin", "acos", "atan",
        )
    },
}  # fmt: skip
_BY_TYPE: dict[tuple[str, str], TileFunction] = {
    ("sqrt", "f32"): _sqrt,
    ("sqrt", "f64"): _sqrt,
    ("rsqrt", "f32"): _rsqrt_single,
    ("rsqrt", "f64"): _wide(lambda a: 1 / np.sqrt(a)),
    **{(name, half): _half(getattr(torch, name)) for name in ("erf", "erfc") for half in ("f16", "bf16")},
    **{("rsqrt", half): _half(torch.rsqrt) for half in ("f16", "bf16")},
}


def float_function(name: str, el: Element) -> TileFunction | None:
    """A float operation of arith or math on tiles of that element type, by its name without the dialect."""
    if name in _BITWISE:
        return _BITWISE[name]
    if name in _ROUNDS_ITSELF:
        return _ROUNDS_ITSELF[name]
    function = _BY_TYPE.get((name, el.name)) or _PLAIN.get(name)
    return in_single(function, el) if function is not None and el.narrow else function


def sine_and_cosine(el: Element) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """`math.sincos` on tiles of that element type: what `math.sin` and `math.cos` give."""
    sine, cosine = float_function("sin", el), float_function("cos", el)
    assert sine is not None
    assert cosine is not None
    return lambda a: (sine(a), cosine(a))


def float_test(name: str, el: Element) -> TileFunction | None:
    """`math.isnan` and its like on tiles of that element type; None for another name."""
    tests: dict[str, TileFunction] = {
        "isfinite": torch.isfinite,
        "isinf": torch.isinf,
        "isnan": torch.isnan,
        "isnormal": lambda a: torch.isfinite(a) & (a.abs() >= torch.finfo(el.dtype).tiny),
    }
    function = tests.get(name)
    return in_single(function, el) if function is not None and el.narrow else function


def in_single(function: TileFunction, el: Element) -> TileFunction:
    """A function of f32 tiles for one of the narrow types, rounded to `el`."""

    def apply(*values: Tensor) -> Tensor:
        out = function(*(v.to(torch.float32) if v.is_floating_point() else v for v in values))
        return narrowed(out, el.dtype) if out.is_floating_point() else out

    return apply
