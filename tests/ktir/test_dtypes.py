"""Every arith and math operation on every element type it takes, as tiles and as scalars, beside exact arithmetic.

The references are Python integers and fractions rounded once, mpmath for functions that no fraction gives, and
the special values of the C library. Operations of one operand type are run together, in one function.
"""
# ruff: noqa: E501

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from exact import (
    BITS,
    FLOATS,
    INTS,
    Bench,
    Case,
    Columns,
    Reference,
    Text,
    any_zero,
    away,
    binary,
    bitwise,
    case,
    exactly,
    nearest,
    number,
    pick,
    plain,
    product_of,
    remainder,
    samples,
    signed,
    special,
    square_root,
    whole,
    within_one,
    wrapped,
)  # fmt: skip

# --- integers


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# how the operands are read (signed or unsigned), and the operation on Python integers
ANYWHERE: dict[str, tuple[str, Reference]] = {
    "addi": ("s", lambda a, b: a + b), "subi": ("s", lambda a, b: a - b), "muli": ("s", lambda a, b: a * b),
    "andi": ("s", lambda a, b: a & b), "ori": ("s", lambda a, b: a | b), "xori": ("s", lambda a, b: a ^ b),
    "minsi": ("s", min), "maxsi": ("s", max), "minui": ("u", min), "maxui": ("u", max),
}  # fmt: skip
DIVISIONS: dict[str, tuple[str, Reference]] = {
    "divsi": ("s", truncated), "remsi": ("s", lambda a, b: a - b * truncated(a, b)),
    "floordivsi": ("s", lambda a, b: a // b), "ceildivsi": ("s", lambda a, b: -(-a // b)),
    "divui": ("u", lambda a, b: a // b), "remui": ("u", lambda a, b: a % b), "ceildivui": ("u", lambda a, b: -(-a // b)),
}  # fmt: skip
SHIFTS: dict[str, tuple[str, Reference]] = {
    "shli": ("u", lambda a, b: a << b), "shrui": ("u", lambda a, b: a >> b), "shrsi": ("s", lambda a, b: a >> b),
}  # fmt: skip


def integer_cases(
    table: dict[str, tuple[str, Reference]], kind: str, columns: Columns, *, shifts: bool = False
) -> list[Case]:
    out = []
    for name, (reading, function) in table.items():
        read = plain if reading == "u" else signed

        def want(a: int, b: int, read: Any = read, function: Any = function) -> int:
            return wrapped(function(read(a, kind), b if shifts else read(b, kind)), kind)

        out.append(case(binary(f"arith.{name}"), columns, kind, want))
    return out


@pytest.mark.parametrize("kind", BITS)
def test_integers(bench: Bench, kind: str) -> None:
    columns = product_of([kind, kind])
    bench.check([kind, kind], columns, integer_cases(ANYWHERE, kind, columns))
    lowest = -1 if kind == "i1" else -(1 << (BITS[kind] - 1))
    columns = product_of(
        [kind, kind], lambda a, b: b != 0 and (signed(a, kind), signed(b, kind)) != (lowest, -1)
    )
    bench.check([kind, kind], columns, integer_cases(DIVISIONS, kind, columns))
    columns = product_of([kind, kind], lambda a, b: b != 0)
    remainders = {n: DIVISIONS[n] for n in ("remsi", "divui", "remui")}
    bench.check([kind, kind], columns, integer_cases(remainders, kind, columns))
    columns = product_of([kind, kind], lambda a, b: 0 <= b < BITS[kind])
    bench.check([kind, kind], columns, integer_cases(SHIFTS, kind, columns, shifts=True))


@pytest.mark.parametrize("kind", INTS)
def test_operations_of_two_results(bench: Bench, kind: str) -> None:
    columns, bits = product_of([kind, kind]), BITS[kind]
    rows = list(zip(*columns, strict=True))

    def halves(read: Callable[[int, str], int]) -> tuple[list[int], list[int]]:
        products = [read(a, kind) * read(b, kind) for a, b in rows]
        return [wrapped(p, kind) for p in products], [wrapped(p >> bits, kind) for p in products]

    sums = [plain(a, kind) + plain(b, kind) for a, b in rows]
    added = ([wrapped(s, kind) for s in sums], [s >> bits for s in sums])
    cases = [
        Case("arith.addui_extended {0}, {1} : {T0}, {R1}", (kind, "i1"), added, bitwise),
        Case("arith.mulsi_extended {0}, {1} : {T0}", (kind, kind), halves(signed), bitwise),
        Case("arith.mului_extended {0}, {1} : {T0}", (kind, kind), halves(plain), bitwise),
    ]
    bench.check([kind, kind], columns, cases)


@pytest.mark.parametrize("kind", ["i1", "i8", "i16", "i32", "i64"])
def test_integer_functions(bench: Bench, kind: str) -> None:
    columns, bits = [samples(kind)], BITS[kind]
    spelled: dict[str, Reference] = {
        "absi": lambda a: abs(signed(a, kind)),
        "ctlz": lambda a: bits - plain(a, kind).bit_length(),
        "cttz": lambda a: next((i for i in range(bits) if a >> i & 1), bits),
        "ctpop": lambda a: bin(plain(a, kind)).count("1"),
    }
    cases = [
        case(f"math.{n} {{0}} : {{T0}}", columns, kind, lambda a, f=f: wrapped(f(a), kind))
        for n, f in spelled.items()
    ]
    bench.check([kind], columns, cases)

    def power(a: int, b: int) -> int:
        a, b = signed(a, kind), signed(b, kind)
        if b >= 0:
            return wrapped(pow(a, b, 1 << bits), kind)
        return wrapped(1 if a == 1 or (a == -1 and b % 2 == 0) else -1 if a == -1 else 0, kind)

    columns = product_of([kind, kind], lambda a, b: a != 0 or signed(b, kind) >= 0)
    bench.check([kind, kind], columns, [case(binary("math.ipowi"), columns, kind, power)])


ORDERS: dict[str, Reference] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("kind", BITS)
def test_integer_comparisons(bench: Bench, kind: str) -> None:
    columns = product_of([kind, kind])
    cases = []
    for name in ["eq", "ne", *(s + n for s in "su" for n in ("lt", "le", "gt", "ge"))]:
        read, order = plain if name[0] == "u" else signed, ORDERS[name if name in ORDERS else name[1:]]
        cases.append(
            case(
                f"arith.cmpi {name}, {{0}}, {{1}} : {{T0}}",
                columns,
                "i1",
                lambda a, b, r=read, o=order: int(o(r(a, kind), r(b, kind))),
            )
        )
    bench.check([kind, kind], columns, cases)


# --- floats


@pytest.mark.parametrize("kind", FLOATS)
def test_float_comparisons(bench: Bench, kind: str) -> None:
    columns = product_of([kind, kind])

    def want(name: str, a: float, b: float) -> int:
        unordered = math.isnan(a) or math.isnan(b)
        fixed = {"false": False, "true": True, "ord": not unordered, "uno": unordered}
        # a comparison that begins with o or u and is about order
        return int(
            fixed[name] if name in fixed else (name[0] == "u") if unordered else ORDERS[name[1:]](a, b)
        )

    names = ["false", "true", "ord", "uno", *(s + n for s in "ou" for n in ORDERS)]
    bench.check(
        [kind, kind],
        columns,
        [
            case(f"arith.cmpf {n}, {{0}}, {{1}} : {{T0}}", columns, "i1", lambda a, b, n=n: want(n, a, b))
            for n in names
        ],
    )


@pytest.mark.parametrize("kind", FLOATS)
def test_floats(bench: Bench, kind: str) -> None:
    columns = product_of([kind, kind])
    references: dict[str, Reference] = {
        "arith.addf": exactly(kind, lambda a, b: a + b, np.add),
        "arith.subf": exactly(kind, lambda a, b: a - b, np.subtract),
        "arith.mulf": exactly(kind, lambda a, b: a * b, np.multiply),
        "arith.divf": exactly(kind, lambda a, b: a / b, np.divide),
        "arith.remf": remainder(kind),
        "arith.maximumf": lambda a, b: pick(a, b, True),
        "arith.minimumf": lambda a, b: pick(a, b, False),
        "arith.maxnumf": lambda a, b: number(a, b, True),
        "arith.minnumf": lambda a, b: number(a, b, False),
        "math.copysign": lambda a, b: math.copysign(a, b),
    }
    # Of two zeros the result of maxnumf and minnumf is either.
    cases = [
        case(binary(n), columns, kind, f, any_zero if "num" in n else bitwise) for n, f in references.items()
    ]
    bench.check([kind, kind], columns, cases)


EXACT: dict[str, Reference] = {
    "arith.negf": lambda v: -v,
    "math.absf": abs,
    "math.ceil": whole(math.ceil),
    "math.floor": whole(math.floor),
    "math.trunc": whole(math.trunc),
    "math.roundeven": whole(round),
    "math.round": away,
}
# name: mpmath's function, and NumPy's for special operands and results
NEAR: dict[str, tuple[Reference, Reference]] = {
    **{f"math.{n}": (getattr(mpmath, n), getattr(np, n)) for n in ("exp", "expm1", "log", "log10", "log1p", "tanh", "sin", "cos", "tan", "sinh", "cosh")},
    **{f"math.a{n}": (getattr(mpmath, f"a{n}"), getattr(np, f"arc{n}")) for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "math.exp2": (lambda x: mpmath.power(2, x), np.exp2),
    "math.log2": (lambda x: mpmath.log(x, 2), np.log2),
    "math.cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), np.cbrt),
    "math.erf": (mpmath.erf, lambda x: np.float64(math.erf(x))),
    "math.erfc": (mpmath.erfc, lambda x: np.float64(math.erfc(x))),
    "math.rsqrt": (lambda x: 1 / mpmath.sqrt(x), lambda x: 1 / np.sqrt(x)),
}  # fmt: skip


def transcendental(kind: str, function: Reference, ieee: Reference) -> Reference:
    """mpmath's number where operands and result are ordinary, the special value where one is not."""

    def apply(*values: float) -> Any:
        with np.errstate(all="ignore"):
            usual = float(ieee(*map(np.float64, values)))
        # What overflows or vanishes in f64 does so in every type.
        if math.isnan(usual) or math.isinf(usual) or usual == 0:
            return special(usual, kind)
        if not all(map(math.isfinite, values)):
            return mpmath.mpf(usual)
        with mpmath.workprec(300):
            return function(*map(mpmath.mpf, values))

    return apply


@pytest.mark.parametrize("kind", FLOATS)
def test_unary_floats(bench: Bench, kind: str) -> None:
    columns = [samples(kind)]
    cases = [case(f"{n} {{0}} : {{T0}}", columns, kind, f) for n, f in EXACT.items()]
    cases.append(case("math.sqrt {0} : {T0}", columns, kind, square_root(kind)))
    cases += [
        case(f"{n} {{0}} : {{T0}}", columns, kind, transcendental(kind, *f), within_one)
        for n, f in NEAR.items()
    ]
    bench.check([kind], columns, cases)


def odd(value: float) -> bool:
    return math.isfinite(value) and value == math.floor(value) and int(value) % 2 == 1


def c_power(a: float, b: float) -> float:
    """`pow` of the C library; NumPy's takes a square root for an exponent of one half, Python's raises."""
    try:
        return math.pow(a, b)
    except (ValueError, OverflowError):
        if a < 0 and math.isfinite(b) and b != math.floor(b):
            return math.nan
        return -math.inf if math.copysign(1.0, a) < 0 and odd(b) else math.inf


def mp_power(a: Any, b: Any) -> Any:
    size = mpmath.power(abs(a), b)
    return -size if a < 0 and odd(float(b)) else size


def angle(a: float, b: float) -> Any:
    """mpmath has one zero and no sign of infinity's angle."""
    usual = math.atan2(a, b)
    if math.isnan(usual) or usual == 0:
        return usual
    if not (a and b and math.isfinite(a) and math.isfinite(b)):
        return mpmath.mpf(usual)
    with mpmath.workprec(300):
        return mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b))


@pytest.mark.parametrize("kind", FLOATS)
def test_powers_and_angles(bench: Bench, kind: str) -> None:
    columns = product_of([kind, kind])
    cases = [
        case(binary("math.powf"), columns, kind, transcendental(kind, mp_power, c_power), within_one),
        case(binary("math.atan2"), columns, kind, angle, within_one),
    ]
    bench.check([kind, kind], columns, cases)
    exponents = [0, 1, -1, 2, -2, 3, 5, -7, 100, 2**24 + 1, 2**31 - 1]
    columns = [list(c) for c in zip(*itertools.product(samples(kind), exponents), strict=True)]
    raised = transcendental(kind, lambda a, b: mpmath.power(a, int(b)), c_power)
    bench.check(
        [kind, "i32"], columns, [case("math.fpowi {0}, {1} : {T0}, {T1}", columns, kind, raised, within_one)]
    )


@pytest.mark.parametrize("kind", FLOATS)
def test_fused_multiply_add(bench: Bench, kind: str) -> None:
    form = FLOATS[kind]
    one, tiny = 2.0 ** (1 - form.digits), 2.0 ** (form.least - form.digits + 1)
    chosen = [0.0, -0.0, -1.0, 1 + one, 1 - one, tiny, form.largest, 1 + 2.0 ** -(form.digits // 2)]
    chosen += [math.nan if math.isnan(form.over) else -math.inf]
    columns = [list(c) for c in zip(*itertools.product(chosen, chosen, chosen), strict=True)]
    fma = exactly(kind, lambda a, b, c: a * b + c, lambda a, b, c: a * b + c)

    def want(a: float, b: float, c: float) -> float:
        if c == 0 and a and b and math.isfinite(a) and math.isfinite(b):
            return nearest(Fraction(a) * Fraction(b), kind)
        return fma(a, b, c)

    bench.check([kind] * 3, columns, [case("math.fma {0}, {1}, {2} : {T0}", columns, kind, want)])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_every_half(tiles_bench: Bench, kind: str) -> None:
    form = FLOATS[kind]
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(form.dtype).double()
    columns = [x[torch.isfinite(x)].tolist()]
    names = [n for n in NEAR if n not in ("math.erf", "math.erfc")]
    outs = tiles_bench.run(
        [kind], columns, [Case(f"{n} {{0}} : {{T0}}", (kind,), ([],), bitwise) for n in [*names, "math.sqrt"]]
    )
    for name, out in zip([*names, "math.sqrt"], outs, strict=True):
        with np.errstate(all="ignore"):
            want = (NEAR[name][1] if name in NEAR else np.sqrt)(np.array(columns[0], dtype=np.float64))
            unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 1, form.least) - form.digits + 1)
            got = out.double().numpy()
            over = np.abs(want) >= form.largest + unit / 2
            # In f32 and rounded: a little more than half a unit.
            near = np.abs(got - want) <= unit * (0.5 if name == "math.sqrt" else 0.505)
        right = np.where(
            over, np.isinf(got) & (np.sign(got) == np.sign(want)), near | (np.isnan(got) & np.isnan(want))
        )
        assert right.all(), (name, np.array(columns[0])[~right][:5])


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_tiles_and_scalars_agree(function: Text, view: Text, tile: Text, kind: str) -> None:
    # torch's vector path and the rest of a tile differ for exp2 alone.
    names = [*EXACT, "math.sqrt", *(n for n in NEAR if n != "math.exp2")]
    columns = [[nearest(Fraction(i * i * i % 1009 - 500, 37), kind) for i in range(45)]]
    cases = [Case(f"{n} {{0}} : {{T0}}", (kind,), ([],), bitwise) for n in names]
    found = [Bench(function, view, tile, scalar).run([kind], columns, cases) for scalar in (False, True)]
    for name, a, b in zip(names, *found, strict=True):
        assert torch.equal(a.nan_to_num(nan=7.0), b.nan_to_num(nan=7.0)), name
