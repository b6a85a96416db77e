"""Formulas that kernels use for operations, in operations that the error analysis has rules for.

An operation that kernels compute in more than one order has several; its bound is the largest of theirs.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from tracer.validate.error_rules import covered

Formula = Callable[..., Any]
Order = Callable[..., torch.Tensor]


def _variance(
    x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> torch.Tensor:
    dims = list(range(x.dim())) if not dim else list(dim)
    count = 1
    for d in dims:
        count *= x.shape[d]
    spread = x - x.mean(dims, keepdim=True)
    return (spread * spread).sum(dims, keepdim=keepdim) / max(
        0.0, count - (1 if correction is None else correction)
    )


def _variance_and_mean(
    x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    dims = list(range(x.dim())) if not dim else list(dim)
    return _variance(x, dim, correction=correction, keepdim=keepdim), x.mean(dims, keepdim=keepdim)


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 1 / (1 + torch.exp(-x))


def in_float32(value: float) -> float:
    """The number of float32 that is nearest to `value`."""
    return ctypes.c_float(value).value


def _number(value: Any, like: torch.Tensor) -> Any:
    """A number as kernels have it: one that float32 cannot hold is rounded, here by a product with 1."""
    if not isinstance(value, int | float) or in_float32(value) == value:
        return value
    return torch.full((), float(value), dtype=torch.float64, device=like.device) * 1


def _addcmul(x: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    product = one * other
    return x + (product if value == 1 else _number(value, x) * product)


def _addcdiv(x: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    quotient = one / other
    return x + (quotient if value == 1 else _number(value, x) * quotient)


def _lerp(start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    """From the nearer end, as torch._decomp and PyTorch's own kernels have it."""
    weight = weight if isinstance(weight, torch.Tensor) else torch.as_tensor(_number(weight, start))
    distance = end - start
    return torch.where(weight.abs() < 0.5, start + weight * distance, end - distance * (1 - weight))


def _ldexp(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """`ldexp` is documented as x * 2**exponent, also for exponents that are no integers."""
    return x * torch.pow(2.0, exponent)


def _round_decimals(x: torch.Tensor, *, decimals: int) -> torch.Tensor:
    """A product that falls on the other side of a tie gives the next number of so many decimals."""
    if decimals == 0:
        return torch.round(x)
    step = _number(10.0 ** abs(decimals), x)
    return torch.round(x * step) / step if decimals > 0 else torch.round(x / step) * step


def _sinc(x: torch.Tensor) -> torch.Tensor:
    """As torch._refs has it. The rounding of pi x shows where the sine is near 0."""
    angle = _number(math.pi, x) * x
    return torch.where(angle == 0, 1.0, torch.sin(angle) / angle)


def _centred(
    x: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """As the paper has it, and torch._decomp: the mean is taken off first."""
    out = (x - mean) * rstd
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _scaled(
    x: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """One product and one sum for each element, as PyTorch's CPU kernels and torch._refs.native_group_norm
    have it: what is not centred cancels in the sum."""
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale
    return x * scale + (shift if bias is None else shift + bias)


def _layer_norm(
    x: torch.Tensor,
    normalized_shape: Any,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
    *,
    order: Order,
) -> tuple[torch.Tensor, ...]:
    dims = tuple(range(x.dim() - len(normalized_shape), x.dim()))
    variance, mean = _variance_and_mean(x, dims, correction=0, keepdim=True)
    rstd = torch.rsqrt(variance + eps)
    return order(x, mean, rstd, weight, bias), mean, rstd


def _group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    eps: float,
    *,
    order: Order,
) -> tuple[torch.Tensor, ...]:
    grouped = x.reshape(batch, groups, channels // groups, inner)
    variance, mean = _variance_and_mean(grouped, (2, 3), correction=0, keepdim=True)
    rstd = torch.rsqrt(variance + eps)
    weight, bias = (None if t is None else t.reshape(groups, channels // groups, 1) for t in (weight, bias))
    out = order(grouped, mean, rstd, weight, bias)
    return out.reshape(x.shape), mean.reshape(batch, groups), rstd.reshape(batch, groups)


def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    momentum: float,
    eps: float,
    *,
    order: Order,
) -> tuple[torch.Tensor, ...]:
    shape = (-1, *[1] * (x.dim() - 2))
    mean, variance = running_mean.reshape(shape), running_var.reshape(shape)
    weight, bias = (None if t is None else t.reshape(shape) for t in (weight, bias))
    out = order(x, mean, torch.rsqrt(variance + eps), weight, bias)
    return out, x.new_zeros((0,)), x.new_zeros((0,))


@functools.cache
def formulas() -> dict[Any, tuple[Formula, ...]]:
    """Operations by their parts: ours, then PyTorch's core decompositions, then its others.

    Of PyTorch's, those that a rule covers are left out: it knows more than their parts tell.
    """
    from torch._decomp import core_aten_decompositions, decomposition_table

    aten = torch.ops.aten
    ours: dict[Any, Formula] = {
        aten.addcmul.default: _addcmul,
        aten.addcdiv.default: _addcdiv,
        aten.ldexp.Tensor: _ldexp,
        aten.lerp.Scalar: _lerp,
        aten.lerp.Tensor: _lerp,
        aten.round.decimals: _round_decimals,
        aten.sinc.default: _sinc,
        aten.var.correction: _variance,
        aten.var_mean.correction: _variance_and_mean,
        aten.gelu.default: _gelu,
        aten.sigmoid.default: _sigmoid,
        aten.silu.default: lambda x: x / (1 + torch.exp(-x)),
    }
    norms: dict[Any, Formula] = {
        aten.native_layer_norm.default: _layer_norm,
        aten.native_group_norm.default: _group_norm,
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
    }
    # The core table leaves whole what a backend may have a kernel for; a guess is worse than a formula. A
    # pointwise operation has a rule, which needs none.
    rest = {op: rule for op, rule in decomposition_table.items() if torch.Tag.pointwise not in _tags(op)}
    theirs = {**rest, **core_aten_decompositions()}
    single = {op: rule for op, rule in theirs.items() if isinstance(op, torch._ops.OpOverload)}
    single = {op: rule for op, rule in single.items() if not covered(op.overloadpacket.__name__)} | ours
    return {op: (rule,) for op, rule in single.items()} | {
        op: tuple(functools.partial(rule, order=order) for order in (_centred, _scaled))
        for op, rule in norms.items()
    }


def _tags(op: Any) -> Any:
    return op.tags if isinstance(op, torch._ops.OpOverload) else ()
