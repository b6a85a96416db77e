"""Quotients and remainders of sums, separated into digits of single ranges.

Inductor numbers the elements of a joined dim by a sum over ranges: `(r0 + 64 * x1) % 768`, where r0 < 64.
The fine part r0 never carries into the coarse one, so this is `r0 + 64 * (x1 % 12)`: a digit of x1, by which
an axis can be cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import sympy

from tracer.rewrite.ir import FloorDiv, Modulo


def separate(expression: sympy.Expr, extents: Mapping[sympy.Symbol, int]) -> sympy.Expr:
    """`expression` with every `//` and `%` of a sum over ranges as narrow as it can be.

    `extents` is how many iterations each range has. What is not known to be non-negative stays as it is.
    """
    if not expression.atoms(FloorDiv, Modulo):
        return expression
    args = [separate(arg, extents) for arg in expression.args]
    if (
        isinstance(expression, FloorDiv | Modulo)
        and args[1].is_Integer
        and (args[0].is_Add or args[0].is_Mul)
    ):
        return _separated(isinstance(expression, Modulo), sympy.expand(args[0]), int(args[1]), extents)
    return expression.func(*args) if expression.args else expression


def _separated(
    remainder: bool, inner: sympy.Expr, number: int, extents: Mapping[sympy.Symbol, int]
) -> sympy.Expr:
    terms = {term: _greatest(term, extents) for term in sympy.Add.make_args(inner)}
    if any(greatest is None for greatest in terms.values()):
        return Modulo(inner, number) if remainder else FloorDiv(inner, number)
    whole = [term for term in terms if _factor(term) % number == 0]
    rest = [term for term in terms if term not in whole]
    quotient = sympy.Add(*(term / number for term in whole))
    if sum(terms[term] or 0 for term in rest) < number:
        return sympy.Add(*rest) if remainder else quotient
    for step in sorted({math.gcd(_factor(term), number) for term in rest} - {1}, reverse=True):
        fine = [term for term in rest if _factor(term) % step]
        if sum(terms[term] or 0 for term in fine) < step:
            coarse = sympy.Add(*(term / step for term in rest if term not in fine))
            part = _separated(remainder, coarse, number // step, extents)
            return sympy.expand(sympy.Add(*fine) + step * part) if remainder else quotient + part
    part = sympy.Add(*rest)
    return Modulo(part, number) if remainder else quotient + FloorDiv(part, number)


def _factor(term: sympy.Expr) -> int:
    return int(term) if term.is_Integer else int(term.as_coeff_Mul()[0])


def _greatest(term: sympy.Expr, extents: Mapping[sympy.Symbol, int]) -> int | None:
    """Greatest value of a term that is never negative; None where it may be, or nothing is known."""
    factor, rest = term.as_coeff_Mul()
    if not factor.is_Integer or factor < 0:
        return None
    if rest == 1:
        return int(factor)
    if rest in extents:
        return int(factor) * (extents[rest] - 1)
    if isinstance(rest, FloorDiv | Modulo) and rest.args[1].is_Integer:
        inner, number = rest.args
        greatest = [_greatest(part, extents) for part in sympy.Add.make_args(inner)]
        if all(part is not None for part in greatest):
            most = sum(part or 0 for part in greatest)
            most = most // int(number) if isinstance(rest, FloorDiv) else min(most, int(number) - 1)
            return int(factor) * most
    return None
