"""What changes under `mode="ktir_cpu"`, for scores that must match the public simulator.

* Views bound nothing: a load past the end of its buffer gives zeros there, a store past the end drops
  elements, and
  inside the buffer anything is reachable. Coordinate sets are ignored. There is no sanitizer.
* Partitions of a distributed view may overlap and leave gaps: a load takes the last partition that holds an
  element, a store goes to all; gaps load as zero and drop what is stored, but a tile must meet a partition.
* `linalg.matmul` and `batch_matmul` round the product to the type of the first input, then add in the
  output's type.
* Arithmetic on two scalars of any float type is done in f16.
* Reductions of every float type fold pairwise in halves, rightmost axis first.
* Collectives fold in ring order: core c takes c, c - 1, c - 2 ... of its group. All producers of the group
  count, `producer_dependency_per_consumer` is ignored.
* `math.rsqrt` rounds after the square root and after the division.

Not imitated: results that depend on mutated `outs`, misparsed text, unsigned operations done signed, cast
targets ignored, NumPy's and torch's different rounding of transcendental functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.simulator.dtypes import Element
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.linalg_ops import accumulator
from tracer.ktir.simulator.memory import View


def addresses(view: View, lo: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Element indices of a box, unbounded. Raises Fault for one before the buffer, as the public
    tool does.
    """
    total = np.asarray(view.offset, dtype=np.int64)
    for axis, (start, extent, stride) in enumerate(zip(lo, shape, view.strides, strict=True)):
        steps = (start + np.arange(extent)) * stride
        total = total + steps.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    if total.size and int(total.min()) < 0:
        raise Fault("KT203", f"element {int(total.min())} of {view.buffer.name}", tuple(lo))
    return np.broadcast_to(total, tuple(shape))


def read(view: View, lo: Sequence[int], shape: Sequence[int]) -> Tensor:
    """The box, zeros where the buffer has ended."""
    flat = addresses(view, lo, shape)
    valid = flat < view.buffer.numel
    out = view.buffer.data[torch.from_numpy(np.where(valid, flat, 0))]
    return torch.where(torch.from_numpy(valid), out, torch.zeros((), dtype=out.dtype))


def write(view: View, lo: Sequence[int], shape: Sequence[int], value: Tensor) -> None:
    """Store the box, dropping what lies past the end of the buffer."""
    flat = addresses(view, lo, shape)
    valid = flat < view.buffer.numel
    view.buffer.data[torch.from_numpy(flat[valid])] = value[torch.from_numpy(valid)]


def contraction(equation: str, first: Element, target: Element) -> Callable[..., Tensor]:
    """`(a, b, c) -> c + a x b` with the product rounded to the first input's type."""
    wide = accumulator(first)

    def apply(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        product = torch.einsum(equation, a.to(wide), b.to(wide)).to(first.dtype)
        return (c + product.to(target.dtype)).to(target.dtype)

    return apply


def two_step_rsqrt(value: Tensor) -> Tensor:
    """Square root and reciprocal, each rounded."""
    return torch.reciprocal(torch.sqrt(value))


def ring_order(cores: Sequence[int], core: int, count: int) -> list[int]:
    """The producers in the order in which `core` folds them on a ring of `count` cores."""
    return sorted(cores, key=lambda c: (core - c) % count)
