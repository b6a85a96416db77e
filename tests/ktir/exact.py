"""Exact arithmetic for tests: Python integers and fractions rounded once, and a bench that runs operations.

Nothing of the simulator's own arithmetic is used, nor torch's where it rounds.
"""
# ruff: noqa: E501

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import torch

from tracer.ktir.simulator import Module

Text = Callable[..., str]
Reference = Callable[..., Any]
Columns = list[list[Any]]


@dataclass(frozen=True)
class Format:
    """Significant bits, least exponent of a normal number, largest number, and what lies beyond it."""

    digits: int
    least: int
    largest: float
    dtype: torch.dtype
    bits: int
    over: float = math.inf


FLOATS = {
    "f16": Format(11, -14, 65504.0, torch.float16, 16),
    "bf16": Format(8, -126, (2 - 2.0**-7) * 2.0**127, torch.bfloat16, 16),
    "f32": Format(24, -126, (2 - 2.0**-23) * 2.0**127, torch.float32, 32),
    "f64": Format(53, -1022, (2 - 2.0**-52) * 2.0**1023, torch.float64, 64),
    # APFloat: no infinity, overflow is NaN.
    "f8E4M3FN": Format(4, -6, 448.0, torch.float8_e4m3fn, 8, math.nan),
    "f8E5M2": Format(3, -14, 57344.0, torch.float8_e5m2, 8),
}
INTS = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
# An index has no place in memory: it comes from and goes back to i64.
DTYPES = {**{k: f.dtype for k, f in FLOATS.items()}, **INTS, "index": torch.int64}
WORDS = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


@dataclass(frozen=True)
class Case:
    """An operation: `{0}` stands for its first operand, `{T0}` for that one's type, `{R0}` for a result's type."""

    text: str
    results: tuple[str, ...]
    wants: tuple[list[Any], ...]
    check: Callable[[Any, Any, str], bool]


# --- exact references


def nearest(value: Fraction, kind: str) -> float:
    """A fraction rounded once to a float type, to nearest even."""
    form = FLOATS[kind]
    if value == 0:
        return 0.0
    sign, size = (-1 if value < 0 else 1), abs(value)
    unit = Fraction(2) ** (max(_exponent(size), form.least) - form.digits + 1)
    whole = round(size / unit) * unit  # of a Fraction, to nearest even
    return math.copysign(form.over if whole > Fraction(form.largest) else float(whole), sign)


def _exponent(size: Fraction) -> int:
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if Fraction(2) ** guess <= size else guess - 1


def special(value: float, kind: str) -> float:
    """A zero, infinity or NaN as the type holds it."""
    return math.copysign(FLOATS[kind].over, value) if math.isinf(value) else float(value)


def exactly(kind: str, function: Reference, ieee: Reference) -> Reference:
    """`function` of fractions, rounded; `ieee` of float64 where an operand or the result is special."""

    def apply(*values: float) -> float:
        if all(math.isfinite(v) and v != 0 for v in values):
            return nearest(function(*map(Fraction, values)), kind)
        with np.errstate(all="ignore"):
            return nearest_float(float(ieee(*map(np.float64, values))), kind)

    return apply


def nearest_float(value: float, kind: str) -> float:
    if value == 0 or not math.isfinite(value):
        return special(value, kind)
    return nearest(Fraction(value), kind)


def remainder(kind: str) -> Reference:
    def apply(a: float, b: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b) and a and b):
            with np.errstate(all="ignore"):
                return float(np.fmod(np.float64(a), np.float64(b)))
        x, y = Fraction(a), Fraction(b)
        return math.copysign(nearest(x - y * int(x / y), kind), a)

    return apply


def square_root(kind: str) -> Reference:
    def apply(a: float) -> float:
        if math.isnan(a) or a < 0:
            return math.nan
        if a == 0 or math.isinf(a):
            return a
        # Two hundred bits and one that says that there are more.
        scaled = Fraction(a) * Fraction(4) ** 1400
        root = math.isqrt(scaled.numerator // scaled.denominator)
        exact = root * root == scaled
        return nearest(Fraction(2 * root + (not exact), 2) / Fraction(2) ** 1400, kind)

    return apply


def pick(a: float, b: float, larger: bool) -> float:
    """The larger (or smaller) of two numbers, -0 below 0, NaN where either is NaN."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    key = [(v, math.copysign(1.0, v)) for v in (a, b)]
    return (a, b)[key.index(max(key) if larger else min(key))]


def number(a: float, b: float, larger: bool) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else pick(a, b, larger)


def away(value: float) -> float:
    if not math.isfinite(value):
        return value
    size = Fraction(abs(value))
    return math.copysign(float(math.floor(size + Fraction(1, 2))), value)


def whole(function: Callable[[float], int]) -> Reference:
    return lambda v: math.copysign(float(function(v)), v) if math.isfinite(v) else v


# --- comparison


def bitwise(got: Any, want: Any, kind: str) -> bool:
    """Equal, the sign of zero included; NaN is NaN."""
    if kind not in FLOATS:
        return bool(got == want)
    if math.isnan(want):
        return math.isnan(got)
    return got == want and math.copysign(1.0, got) == math.copysign(1.0, want)


def any_zero(got: float, want: float, kind: str) -> bool:
    return got == want or bitwise(got, want, kind)


def within_one(got: float, want: Any, kind: str) -> bool:
    """Not more than one unit of the last place from an mpmath number; a special value is met exactly."""
    if not isinstance(want, mpmath.mpf):
        return bitwise(got, want, kind)
    form = FLOATS[kind]
    size, beyond = abs(want), 2.0 * 2.0 ** (math.frexp(form.largest)[1] - 1)
    exponent = max(int(mpmath.frexp(size)[1]) - 1 if size else form.least, form.least)
    unit = mpmath.ldexp(1, exponent - form.digits + 1)
    if bitwise(abs(got), abs(form.over), kind):
        # As far as infinity is concerned, a number of the next exponent.
        return bool(size >= form.largest or abs(beyond - size) <= unit) and (
            math.isnan(got) or (got > 0) == (want > 0)
        )
    return math.isfinite(got) and bool(abs(mpmath.mpf(got) - want) <= unit)


# --- running


def held(values: list[Any], kind: str) -> torch.Tensor:
    """Numbers that the type has."""
    if kind not in FLOATS:
        return torch.tensor(values, dtype=torch.int64).to(DTYPES[kind])
    words = torch.tensor([encoded(v, kind) for v in values], dtype=torch.int64)
    return words.to(WORDS[FLOATS[kind].bits]).view(DTYPES[kind])


def encoded(value: float, kind: str) -> int:
    """The bits of a float, as a signed integer."""
    return _encoded(abs(value), math.copysign(1.0, value) < 0, kind)


@cache
def _encoded(value: float, negative: bool, kind: str) -> int:
    form = FLOATS[kind]
    fraction = form.digits - 1
    bias = 1 - form.least
    if math.isnan(value) or math.isinf(value):
        top = ((1 << (form.bits - 1 - fraction)) - 1) << fraction
        last = (
            (1 << fraction) - 1 if math.isnan(form.over) else 1 << (fraction - 1) if math.isnan(value) else 0
        )
        word = top | last
    else:
        exponent = max(math.frexp(abs(value))[1] - 1, form.least)
        scaled = Fraction(abs(value)) / Fraction(2) ** (exponent - fraction)
        assert scaled.denominator == 1, f"{value} is no {kind}"
        word = (
            int(scaled)
            if scaled < 1 << fraction
            else ((exponent + bias) << fraction) + int(scaled) - (1 << fraction)
        )
    return word - (1 << (form.bits - 1)) if negative else word


@dataclass(frozen=True)
class Bench:
    """Runs cases on columns of operands, as tiles or element by element."""

    function: Text
    view: Text
    tile: Text
    scalar: bool

    def text(self, kinds: Sequence[str], n: int, cases: Sequence[Case]) -> str:
        body = ["%c0 = arith.constant 0 : index"]
        for i, kind in enumerate(kinds):
            stored = "i64" if kind == "index" else kind
            body += [
                self.view(f"v{i}", f"a{i}", str(n), stored),
                self.tile(f"t{i}", f"v{i}", "%c0", str(n), f"{n}x{stored}"),
            ]
            loaded = f"x{i}" if kind == stored else f"l{i}"
            body.append(f"%{loaded} = ktdp.load %t{i} : <{n}xindex> -> tensor<{n}x{stored}>")
            if kind != stored:
                body.append(f"%x{i} = arith.index_cast %l{i} : tensor<{n}xi64> to tensor<{n}xindex>")
        results = [(f"r{j}_{k}", kind) for j, case in enumerate(cases) for k, kind in enumerate(case.results)]

        def spelled(j: int, case: Case, names: list[str]) -> str:
            types = {f"T{i}": k if self.scalar else f"tensor<{n}x{k}>" for i, k in enumerate(kinds)}
            types |= {f"R{i}": k if self.scalar else f"tensor<{n}x{k}>" for i, k in enumerate(case.results)}
            targets = ", ".join(f"%{'s' if self.scalar else ''}r{j}_{k}" for k in range(len(case.results)))
            return f"{targets} = {case.text.format(*names, **types)}"

        if self.scalar:
            wholes = [f"tensor<{n}x{kind}>" for _, kind in results]
            body.append(f"%c1 = arith.constant 1 : index\n%cn = arith.constant {n} : index")
            body += [
                f"%e_{name} = tensor.empty() : {t}" for (name, _), t in zip(results, wholes, strict=True)
            ]
            carried = ", ".join(f"%i_{name} = %e_{name}" for name, _ in results)
            body.append(
                f"{', '.join('%' + name for name, _ in results)} = scf.for %i = %c0 to %cn step %c1 iter_args({carried}) -> ({', '.join(wholes)}) {{"
            )
            body += [f"%s{j} = tensor.extract %x{j}[%i] : tensor<{n}x{k}>" for j, k in enumerate(kinds)]
            body += [spelled(j, case, [f"%s{i}" for i in range(len(kinds))]) for j, case in enumerate(cases)]
            body += [
                f"%n_{name} = tensor.insert %s{name} into %i_{name}[%i] : {t}"
                for (name, _), t in zip(results, wholes, strict=True)
            ]
            body.append(
                f"scf.yield {', '.join('%n_' + name for name, _ in results)} : {', '.join(wholes)}\n}}"
            )
        else:
            body += [spelled(j, case, [f"%x{i}" for i in range(len(kinds))]) for j, case in enumerate(cases)]
        for name, kind in results:
            stored, value = ("i64", f"z_{name}") if kind == "index" else (kind, name)
            if kind == "index":
                body.append(f"%{value} = arith.index_cast %{name} : tensor<{n}xindex> to tensor<{n}xi64>")
            body += [
                self.view(f"w_{name}", f"o_{name}", str(n), stored),
                self.tile(f"u_{name}", f"w_{name}", "%c0", str(n), f"{n}x{stored}"),
            ]
            body.append(f"ktdp.store %{value}, %u_{name} : tensor<{n}x{stored}>, <{n}xindex>")
        arguments = [f"%a{i}: index" for i in range(len(kinds))] + [
            f"%o_{name}: index" for name, _ in results
        ]
        return self.function("\n".join(body), ", ".join(arguments))

    def run(self, kinds: Sequence[str], columns: Columns, cases: Sequence[Case]) -> list[torch.Tensor]:
        n = len(columns[0])
        outs = [torch.zeros(n, dtype=DTYPES[kind]) for case in cases for kind in case.results]
        arguments = [held(c, k) for c, k in zip(columns, kinds, strict=True)]
        found = Module.parse(self.text(kinds, n, cases)).function().run([*arguments, *outs], check=False)
        assert len(found.outputs) == len(outs)
        return list(found.outputs)

    def check(self, kinds: Sequence[str], columns: Columns, cases: Sequence[Case]) -> None:
        """Run the cases and name every wrong element, by operation."""
        outs, wrong = iter(self.run(kinds, columns, cases)), {}
        for case in cases:
            for kind, want in zip(case.results, case.wants, strict=True):
                got = next(outs)
                numbers = (got.to(torch.float64) if got.is_floating_point() else got.to(torch.int64)).tolist()
                rows = zip(*columns, numbers, want, strict=True)
                bad = [row for row in rows if not case.check(row[-2], row[-1], kind)]
                if bad:
                    wrong[f"{case.text} -> {kind}"] = (len(bad), bad[:3])
        assert not wrong, "\n".join(f"{op}: {found}" for op, found in wrong.items())


def case(text: str, columns: Columns, result: str, reference: Reference, check: Any = bitwise) -> Case:
    return Case(text, (result,), ([reference(*row) for row in zip(*columns, strict=True)],), check)


def binary(name: str) -> str:
    return f"{name} {{0}}, {{1}} : {{T0}}"


def cast(name: str) -> str:
    return f"{name} {{0}} : {{T0}} to {{R0}}"


# --- operands


def wrapped(value: int, kind: str) -> int:
    bits = BITS[kind]
    return value & 1 if bits == 1 else (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def plain(value: int, kind: str) -> int:
    return value & ((1 << BITS[kind]) - 1)


def signed(value: int, kind: str) -> int:
    return -value if kind == "i1" else value


def samples(kind: str) -> list[Any]:
    if kind in BITS:
        bits = BITS[kind]
        if bits == 1:
            return [0, 1]
        top = 1 << (bits - 1)
        return [0, 1, -1, 2, -3, 7, -7, 100, top - 1, -top, 1 - top, top // 3, -(top // 3), bits - 1]
    form = FLOATS[kind]
    tiny = 2.0 ** (form.least - form.digits + 1)
    numbers = [1.0, 1 / 3, 0.5, 1.5, 2.5, 7.3, 100.7, 2.0**form.digits + 2, tiny, 3 * tiny, 2.0**form.least]
    numbers += [form.largest, form.largest * 0.6, 0.49999997, 1 - 2.0**-form.digits]
    found = {nearest(Fraction(s * v), kind) for v in numbers for s in (1, -1)}
    return [
        0.0,
        -0.0,
        *sorted(found - {0.0}),
        math.nan,
        *([] if math.isnan(form.over) else [math.inf, -math.inf]),
    ]


def product_of(kinds: Sequence[str], keep: Callable[..., bool] = lambda *_: True) -> Columns:
    rows = [row for row in itertools.product(*map(samples, kinds)) if keep(*row)]
    return [list(column) for column in zip(*rows, strict=True)]
