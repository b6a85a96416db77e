"""Sums that float32 takes without rounding, and the inputs whose sums are such.

Where all terms are integers times one power of two q, and their magnitudes add up to no more than q / u (u is
the rounding unit, 2**-24 for float32), every partial sum, in whatever order, is such an integer below 1 / u
and has a float32 of its own. An error analysis cannot tell a narrower accumulator from a long sum's own
rounding; here nothing is rounded, so that nothing is allowed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import torch

from tracer.validate.error_bounds import ErrorBounds
from tracer.validate.oracle import flat_memory
from tracer.validate.problem import Problem

SIGNIFICANT = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 13}
"""Bits of the integers that inputs hold: those of the dtype, or more than the next narrower one has."""

_WIDTHS = (0, 4, 7)
"""Bits fewer than `SIGNIFICANT`, where that many make a sum too long."""

_DENSITIES = (1.0, 0.25)
"""Shares of the other operands' elements that are not zero."""

_SCALE = 2.0**-12
"""What the integers are multiplied with: sums of 2**24 of them stay within float16."""


def with_exact_sums(problem: Problem) -> Iterator[Problem]:
    """The problem with other inputs, a set for each floating one that can be told from a rounded copy of
    itself: it holds integers as wide as its dtype does, the others few ones, and the sums are exact.

    Nothing where the kernels reduce nothing, or where what they add up is rounded before.
    """
    reduced = any(
        name.startswith("r") and name.endswith("_size") for stage in problem.stages for name in stage.args
    )
    for wide in problem.inputs if reduced else ():
        if problem.inputs[wide].dtype in SIGNIFICANT:
            found = next((p for p in _candidates(problem, wide) if _adds_exactly(p)), None)
            if found is not None:
                yield found


def _candidates(problem: Problem, wide: str) -> Iterator[Problem]:
    bits = SIGNIFICANT[problem.inputs[wide].dtype]
    for fewer in _WIDTHS:
        for density in _DENSITIES:
            generator = torch.Generator().manual_seed(1)
            inputs = {
                name: _like(tensor, 2 ** (bits - fewer), 1.0, _SCALE, generator)
                if name == wide
                else _like(tensor, 1, density, 1.0, generator)
                for name, tensor in problem.inputs.items()
            }
            yield dataclasses.replace(problem, make_inputs=functools.partial(dict, inputs))


def _like(
    tensor: torch.Tensor, limit: int, density: float, scale: float, generator: torch.Generator
) -> torch.Tensor:
    """Integers of magnitudes up to `limit`, never 0 but for what `density` leaves out, times `scale`."""
    if not tensor.is_floating_point():
        return tensor
    flat = flat_memory(tensor)
    size = torch.randint(1, limit + 1, flat.shape, generator=generator)
    sign = torch.randint(0, 2, flat.shape, generator=generator) * 2 - 1
    kept = torch.rand(flat.shape, generator=generator) < density
    return (size * sign * kept * scale).to(tensor.dtype).as_strided(tensor.shape, tensor.stride())


def _adds_exactly(problem: Problem) -> bool:
    mode = ErrorBounds()
    with torch.no_grad(), mode:
        results = problem.run(dict(problem.inputs))
    finite = all(bool(torch.isfinite(t).all()) for t in results if t.is_floating_point())
    return finite and mode.exact_sums > 0
