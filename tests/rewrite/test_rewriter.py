"""The rewrite as a whole: determinism, fixed blocks, and that other sizes give the same source."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite import rewrite


def half(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float16)


OPS: dict[str, tuple[Callable, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]] = {
    "silu": (F.silu, (half(12, 512),), (half(5, 300),)),
    "broadcast": (torch.add, (half(3, 12, 64), half(12, 1)), (half(4, 20, 70), half(20, 1))),
    "softmax": (lambda x: F.softmax(x, -1), (half(12, 200),), (half(9, 130),)),
    "mean": (lambda x: x.mean(-1), (half(12, 200),), (half(9, 130),)),
    "var": (lambda x: x.var(-1), (half(12, 200),), (half(9, 130),)),
    "linear": (F.linear, (half(12, 512), half(96, 512)), (half(9, 256), half(70, 256))),
    "transpose": (lambda x: x.t().contiguous(), (half(40, 200),), (half(70, 130),)),
}


@pytest.mark.parametrize("name", OPS)
def test_the_blocks_of_one_size_give_the_same_source_at_another(name: str, at_two_sizes: Callable):
    kernels, again = at_two_sizes(*OPS[name])
    assert [kernel.source for kernel in again] == [kernel.source for kernel in kernels]
    assert [k.parameters for k in again] != [k.parameters for k in kernels]


def test_the_rewrite_is_deterministic(captured: Callable):
    op = captured(F.silu, half(4, 96))
    assert rewrite(op) == rewrite(op)


@pytest.mark.parametrize("name", OPS)
def test_every_parameter_is_used_and_every_name_is_defined(name: str, captured: Callable):
    function, traced, _ = OPS[name]
    for kernel in rewrite(captured(function, *traced)):
        tree = ast.parse(kernel.source)
        body = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel.name)
        assert [a.arg for a in body.args.args] == [p.name for p in kernel.parameters]
        names = [n for n in ast.walk(body) if isinstance(n, ast.Name)]
        read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        written = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        assert {p.name for p in kernel.parameters} <= read
        assert read <= written | {p.name for p in kernel.parameters} | {"tl", "triton", "libdevice", "float"}


def test_an_op_that_computes_nothing_has_no_kernel(captured: Callable):
    op = captured(F.silu, half(4, 96))
    assert rewrite(replace(op, kernels=())) == ()
