"""Special functions in float32 against PyTorch's in float64."""

from __future__ import annotations

import math

import pytest
import torch

from tracer.capture import special
from tracer.capture.errors import ExternKernel

aten = torch.ops.aten
INF, NAN = math.inf, math.nan

# Units in the last place of float32 (2**-24 of the value) that a function may be off, and where.
CASES = [
    (aten.lgamma, 6, (0.01, 0.75), (0.75, 1.5), (1.5, 3), (3, 8), (8, 1e6), (-2, -0.25)),
    (aten.digamma, 6, (0.01, 1), (1, 2), (2, 8), (8, 1e4)),
    (aten.erfc, 8, (-3, -0.5), (-0.5, 0.5), (0.5, 2), (2, 9)),
    (aten.special_erfcx, 10, (-9, -2), (-2, 0), (0, 5), (5, 1e3)),
    (aten.erfinv, 6, (-0.99, 0.99), (-1e-3, 1e-3), (0.99, 1)),
    (aten.i0, 8, (-8, 8), (8, 85), (-85, -8)),
    (aten.special_i0e, 6, (-8, 8), (8, 85), (-85, -8)),
    (aten.special_i1, 8, (-8, 8), (8, 85), (-85, -8)),
    (aten.special_i1e, 6, (-8, 8), (8, 85), (-85, -8)),
]


@pytest.mark.parametrize(
    ("op", "units", "ends"),
    [pytest.param(op, units, ends, id=f"{op} {ends}") for op, units, *ranges in CASES for ends in ranges],
)
def test_values(op, units: int, ends: tuple[float, float]) -> None:
    low, high = ends
    points = torch.rand(20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points = (low + (high - low) * points).float()
    wanted = op(points.double())
    error = (special.RULES[op.default](points).double() - wanted).abs()
    assert bool((error <= units * 2.0**-24 * wanted.abs()).all())


EDGES = torch.tensor([INF, -INF, NAN, 0.0, -1.0, 1.0, -5.0, 2.0, 64.0])


@pytest.mark.parametrize("op", [op for op, *_ in CASES], ids=str)
def test_edges(op) -> None:
    torch.testing.assert_close(special.RULES[op.default](EDGES), op(EDGES), equal_nan=True, rtol=2e-6, atol=0)


def test_digamma_has_an_infinity_on_either_side_of_zero() -> None:
    assert special.RULES[aten.digamma.default](torch.tensor([0.0, -0.0])).tolist() == [-INF, INF]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
def test_other_dtypes_are_computed_in_float32(dtype: torch.dtype) -> None:
    points = torch.tensor([1, 3, 7], dtype=dtype)
    torch.testing.assert_close(special.RULES[aten.lgamma.default](points), torch.lgamma(points))


def test_float64_is_refused() -> None:
    with pytest.raises(ExternKernel, match=r"aten\.lgamma\.default"):
        special.RULES[aten.lgamma.default](torch.ones(3, dtype=torch.float64))
