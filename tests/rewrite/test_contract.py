"""What becomes a `dot`, and which axis plays which role."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite.contract import axes_of, contraction
from tracer.rewrite.ir import Reduce


def half(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float16)


def roles(found: tuple) -> dict[str, str] | None:
    """Axes of each role of the only dot; None where there is none."""
    axes, kernel = found
    dots = [s for s in kernel.body if isinstance(s, Reduce) and s.kind == "dot"]
    if not dots:
        return None
    found_roles = contraction(dots[0], axes_of(kernel, axes), axes)
    names = ("batch", "m", "n", "k")
    return {n: " ".join(f"{a.name}:{a.extent}" for a in getattr(found_roles, n)) for n in names}


@pytest.mark.parametrize(
    ("function", "tensors", "expected"),
    [
        (F.linear, (half(12, 64), half(40, 64)), {"batch": "", "m": "x0:12", "n": "x1:40", "k": "r0:64"}),
        (
            torch.matmul,
            (half(2, 3, 12, 64), half(2, 3, 64, 40)),
            {"batch": "x0:6", "m": "x1:12", "n": "x2:40", "k": "r0:64"},
        ),
        # a matrix times one vector: no m
        (F.linear, (half(1, 64), half(40, 64)), {"batch": "", "m": "", "n": "x0:40", "k": "r0:64"}),
        (torch.matmul, (half(37, 64), half(64)), {"batch": "", "m": "x0:37", "n": "", "k": "r0:64"}),
        # every head of its own
        (
            torch.matmul,
            (half(4, 1, 64), half(4, 64, 40)),
            {"batch": "x0:4", "m": "", "n": "x1:40", "k": "r0:64"},
        ),
    ],
)
def test_contractions(function: Callable, tensors: tuple, expected: dict[str, str], refined: Callable):
    assert roles(refined(function, *tensors)) == expected


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x: x.sum(-1), (half(12, 64),)),
        (lambda x: torch.linalg.norm(x, dim=-1), (half(12, 64),)),  # a square, not a product of two
        (torch.matmul, (half(64), half(64))),  # both factors over the same axes
        (torch.matmul, (torch.empty(5, 8, dtype=torch.int64), torch.empty(8, 6, dtype=torch.int64))),
    ],
)
def test_what_is_no_contraction(function: Callable, tensors: tuple, refined: Callable):
    assert roles(refined(function, *tensors)) is None


def test_operands_are_read_in_the_dtype_they_lie_in(refined: Callable):
    _, kernel = refined(F.linear, half(1, 64), half(40, 64))
    [dot] = [s for s in kernel.body if isinstance(s, Reduce)]
    assert {kernel.statement(str(arg)).dtype for arg in dot.args} == {"float16"}
    assert dot.dtype == "float32"
