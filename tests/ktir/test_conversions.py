"""Conversions between every two element types, as tiles and as scalars, beside exact arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from exact import (
    BITS,
    DTYPES,
    FLOATS,
    INTS,
    Bench,
    Case,
    binary,
    bitwise,
    case,
    cast,
    encoded,
    nearest,
    nearest_float,
    plain,
    product_of,
    samples,
    signed,
    wrapped,
)  # fmt: skip


def integer_edges(kind: str) -> list[int]:
    """Values next to ties of the narrower floats, where rounding twice goes wrong."""
    ties = [
        (1 << e) + (1 << (e - d)) + s
        for d in (11, 8, 24, 53, 4, 3)
        for e in (d + 1, d + 5, d + 20, 40, 62)
        for s in (0, 1, -1)
        if d < e < 63
    ]
    half = 1 << (BITS[kind] - 1)
    return [*samples(kind), *(s * t for t in ties if t < half for s in (1, -1))]


@pytest.mark.parametrize("kind", INTS)
def test_casts_of_integers(bench: Bench, kind: str) -> None:
    columns, cases = [integer_edges(kind)], []
    for target in FLOATS:
        for name, read in (("sitofp", signed), ("uitofp", plain)):
            cases.append(
                case(
                    cast(f"arith.{name}"),
                    columns,
                    target,
                    lambda a, r=read, t=target: nearest(Fraction(r(a, kind)), t),
                )
            )
    for target in INTS:
        if BITS[target] > BITS[kind]:
            cases.append(
                case(cast("arith.extsi"), columns, target, lambda a, t=target: wrapped(signed(a, kind), t))
            )
            cases.append(
                case(cast("arith.extui"), columns, target, lambda a, t=target: wrapped(plain(a, kind), t))
            )
        elif BITS[target] < BITS[kind]:
            cases.append(case(cast("arith.trunci"), columns, target, lambda a, t=target: wrapped(a, t)))
    cases.append(case(cast("arith.index_cast"), columns, "index", lambda a: signed(a, kind)))
    cases.append(
        case(cast("arith.index_castui"), columns, "index", lambda a: wrapped(plain(a, kind), "index"))
    )
    bench.check([kind], columns, cases)


def test_casts_of_indices(bench: Bench) -> None:
    columns = [integer_edges("i64")]
    names = ("index_cast", "index_castui")
    bench.check(
        ["index"],
        columns,
        [case(cast(f"arith.{n}"), columns, t, lambda a, t=t: wrapped(a, t)) for n in names for t in INTS],
    )


def float_edges(kind: str) -> list[float]:
    """Values at, just above and just below ties of every narrower type, over its whole range."""
    out = list(samples(kind))
    for form in FLOATS.values():
        unit, nudge = 2.0 ** (1 - form.digits), 2.0 ** (2 - FLOATS[kind].digits)
        for tie in (1 + unit / 2, 1 + unit * 1.5, 2 - unit / 2):
            for scale in (
                1.0,
                2.0**form.least,
                2.0 ** (form.least - 2),
                2.0 ** (math.frexp(form.largest)[1] - 1),
            ):
                for factor in (1.0, 1 + nudge, 1 - nudge):
                    exact = Fraction(tie) * Fraction(scale) * Fraction(factor)
                    out += [nearest(exact, kind), -nearest(exact, kind)]
    return [v for v in out if not math.isnan(v) or v is math.nan]


@pytest.mark.parametrize("kind", FLOATS)
def test_casts_of_floats(bench: Bench, kind: str) -> None:
    columns, cases = [float_edges(kind)], []
    for target, form in FLOATS.items():
        if form.bits != FLOATS[kind].bits:
            name = "extf" if form.bits > FLOATS[kind].bits else "truncf"
            cases.append(
                case(cast(f"arith.{name}"), columns, target, lambda v, t=target: nearest_float(v, t))
            )
    bench.check([kind], columns, cases)
    # What fits the narrowest type fits all of them; the widest range is tried on the widest type.
    for name, targets in itertools.product(
        ("fptosi", "fptoui"), (["i1"], ["i8", "i16", "i32", "i64"], ["i64"])
    ):
        bits = BITS[targets[0]]
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if name == "fptosi" else (0, 1 << bits)
        values = [
            v for v in [*samples(kind), -128.0, 255.0] if math.isfinite(v) and low <= math.trunc(v) < high
        ]
        columns = [[v for v in values if nearest_float(v, kind) == v]]
        bench.check(
            [kind],
            columns,
            [
                case(cast(f"arith.{name}"), columns, t, lambda v, t=t: wrapped(math.trunc(v), t))
                for t in targets
            ],
        )


@pytest.mark.parametrize(("kind", "words"), [(k, f"i{f.bits}") for k, f in FLOATS.items()])
def test_bitcasts(bench: Bench, kind: str, words: str) -> None:
    # A scalar NaN is one of many.
    values = [v for v in samples(kind) if not (bench.scalar and math.isnan(v))]
    columns, back = [values], {encoded(v, kind): v for v in values}
    bench.check([kind], columns, [case(cast("arith.bitcast"), columns, words, lambda v: encoded(v, kind))])
    columns = [list(back)]
    bench.check([words], columns, [case(cast("arith.bitcast"), columns, kind, lambda w: back[w])])


@pytest.mark.parametrize("kind", [*FLOATS, *BITS])
def test_selections(bench: Bench, kind: str) -> None:
    columns = product_of(["i1", kind, kind])
    text = "arith.select {0}, {1}, {2} : " + ("{T1}" if bench.scalar else "{T0}, {T1}")
    bench.check(["i1", kind, kind], columns, [case(text, columns, kind, lambda c, a, b: a if c else b)])


@pytest.mark.parametrize("kind", FLOATS)
def test_signs_of_nan(tiles_bench: Bench, kind: str) -> None:
    columns = [[math.nan, -math.nan, 1.0], [-math.nan, math.nan, -math.nan]]
    word = f"i{FLOATS[kind].bits}"
    cases = [
        Case("arith.negf {0} : {T0}", (kind,), ([],), bitwise),
        Case("math.absf {0} : {T0}", (kind,), ([],), bitwise),
        Case(binary("math.copysign"), (kind,), ([],), bitwise),
    ]
    signs = [(out.view(DTYPES[word]) < 0).tolist() for out in tiles_bench.run([kind, kind], columns, cases)]
    assert signs == [[True, False, True], [False, False, False], [True, False, True]]
