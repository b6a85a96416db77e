"""Matrix products: `tl.dot` where Inductor can, a sum of products where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tracer.capture.inductor import can_dot

aten = torch.ops.aten


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Where sums of products are formed: float32 for half types, as tl.dot does; integers as torch does."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def contract(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`[..., m, k] @ [..., k, n]` as a broadcast product summed over k, not yet rounded."""
    dtype = accumulator(left.dtype)
    product = left.to(dtype).unsqueeze(-1) * right.to(dtype).unsqueeze(-3)
    return product.sum(-2, dtype=dtype)


def takes_dot(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether Inductor writes `tl.dot` for `left @ right`."""
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    return can_dot(left.dtype, right.dtype, m, n, k)


def mm(left: torch.Tensor, right: torch.Tensor) -> Any:
    """`aten.mm` and `aten.bmm` where no dot is possible, rounded once."""
    return NotImplemented if takes_dot(left, right) else contract(left, right).to(left.dtype)


def addmm(
    bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    """`aten.addmm` and `aten.baddbmm`: `beta * bias + alpha * (left @ right)`."""
    if not left.is_floating_point():
        # PyTorch has the factors in the dtype of the tensors.
        beta, alpha = int(beta), int(alpha)
    # Inductor adds the bias to a product that is already rounded; PyTorch adds it before rounding.
    total = product(left, right)
    if alpha != 1:
        total = total * alpha
    if beta == 0:
        return total.to(left.dtype)
    return ((bias if beta == 1 else bias * beta) + total).to(left.dtype)


def addbmm(
    bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    """`aten.addbmm`: `beta * bias + alpha * sum(left @ right)`, summed over the batch."""
    return addmm(bias, left.movedim(0, 1).flatten(1), right.flatten(0, 1), beta, alpha)


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left @ right` of two matrices or two batches of them."""
    if not takes_dot(left, right):
        return contract(left, right)
    return aten.mm(left, right) if left.dim() == 2 else aten.bmm(left, right)


def trilinear(
    first: torch.Tensor,
    second: torch.Tensor,
    third: torch.Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> torch.Tensor:
    """`aten._trilinear`: the product of three tensors, dims of extent 1 put in at `expand`, summed over
    `sumdim`."""
    factors = []
    for tensor, dims in ((first, expand1), (second, expand2), (third, expand3)):
        factor = tensor.to(accumulator(tensor.dtype))
        for dim in sorted(dims):
            factor = factor.unsqueeze(dim)
        factors.append(factor)
    return (factors[0] * factors[1] * factors[2]).sum(list(sumdim)).to(first.dtype)
