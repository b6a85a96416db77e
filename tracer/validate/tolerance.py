"""How far a result may be from the oracle, element by element, and the comparison itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from tracer.validate.error_bounds import ErrorBounds
from tracer.validate.oracle import observing

_INTERMEDIATE = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


@dataclass(frozen=True)
class Expected:
    """What the oracle says of one output: its value, rounded once, and the allowed difference of every
    element.

    `allowed` is float64 of the same shape; None means equality, bit for bit but for the sign of zero.
    """

    name: str
    value: torch.Tensor
    allowed: torch.Tensor | None


def expect(
    run: Callable[[dict[str, torch.Tensor]], tuple[torch.Tensor, ...]],
    inputs: Mapping[str, torch.Tensor],
    outputs: Sequence[str],
    between: Sequence[torch.dtype] = (),
    products: float = 0.0,
) -> tuple[Expected, ...]:
    """Run an oracle on `inputs`; bound what a kernel of the same formula may round differently.

    `between` are the dtypes of the buffers between kernels: a result that passes through float16 is rounded
    there once more. `products` is the rounding unit of the products of contracted tiles where that is coarser
    than float32. For an output of rounding unit u (2**-11 for float16, 2**-24 for float32) and a bound E
    of the error analysis (`error_bounds`) the allowed difference is E + 2 u |expected|: the kernel's value
    is within E of the exact one, and both are rounded to the output's dtype, by at most u each. Where E is
    0, because nothing but data movement and exact operations leads to the element, both roundings agree, and
    nothing is allowed.
    """
    floats = {t.dtype for t in inputs.values() if t.is_floating_point()}
    unit = 2.0**-53 if floats == {torch.float64} else 2.0**-24
    stored = max((_INTERMEDIATE.get(dtype, 0.0) for dtype in between), default=0.0)
    bounds: list[torch.Tensor | None] = []
    mode = ErrorBounds(unit, stored, products)
    with mode, observing(lambda found: bounds.extend(mode.bound(t) for t in found)):
        values = run(dict(inputs))
    return tuple(
        Expected(name, value, _allowed(value, bound))
        for name, value, bound in zip(outputs, values, bounds, strict=True)
    )


def _allowed(value: torch.Tensor, bound: torch.Tensor | None) -> torch.Tensor | None:
    if bound is None:
        return None
    bound = bound.expand(value.shape)
    if not value.dtype.is_floating_point:
        return bound
    info = torch.finfo(value.dtype)
    size = value.to(torch.float64).abs().nan_to_num(nan=0.0, posinf=0.0).clamp_min(info.smallest_normal)
    # Hardware may flush float32 denormals on the way.
    total = bound + info.eps * size + torch.finfo(torch.float32).smallest_normal
    return torch.where(bound > 0, total, 0.0)


def difference(expected: Expected, got: torch.Tensor) -> str:
    """What is wrong with `got`; empty where every element is within what is allowed.

    NaN equals NaN and an infinity its like. A bool is compared as the byte that lies in memory: 0 or 1.
    """
    want = expected.value
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{expected.name} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if want.numel() == 0:
        return ""
    if want.dtype == torch.bool:
        want, got = want.view(torch.uint8), got.view(torch.uint8)
    if expected.allowed is None:
        wrong = got != want
        if want.is_floating_point():
            wrong &= ~(got.isnan() & want.isnan())
        if not bool(wrong.any()):
            return ""
        distance = (got.to(torch.float64) - want.to(torch.float64)).abs()
        allowed = torch.zeros((), dtype=torch.float64).expand(want.shape)
    else:
        exact, found = want.to(torch.float64), got.to(torch.float64)
        distance = (found - exact).abs()
        allowed = expected.allowed
        same = (found == exact) | (found.isnan() & exact.isnan())
        wrong = ~same & ~(distance <= allowed)
        if not bool(wrong.any()):
            return ""
    return _worst(expected.name, want, got, wrong, distance, allowed)


def _worst(
    name: str,
    want: torch.Tensor,
    got: torch.Tensor,
    wrong: torch.Tensor,
    distance: torch.Tensor,
    allowed: torch.Tensor,
) -> str:
    excess = torch.where(wrong, (distance - allowed).nan_to_num(nan=torch.inf, posinf=torch.inf), -1.0)
    index = int(excess.flatten().argmax())
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), want.shape))
    count = int(wrong.sum())
    return (
        f"{count} of {want.numel()} elements of {name} differ by more than rounding allows;"
        f" worst at {list(place)}: expected {want[place].item():.9g}, got {got[place].item():.9g},"
        f" allowed difference {allowed[place].item():.3g}"
    )
