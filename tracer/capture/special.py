"""Special functions that KTIR has no operation for, in float32, by polynomials and logarithms.

The coefficients interpolate the named quotient at Chebyshev points (40 digits of mpmath), lowest power first;
each fits it to 2**-27 or better. Formulas: NIST Digital Library of Mathematical Functions, 5.5, 5.11, 7.7,
10.25. Near the zeros that lgamma and digamma have at negative arguments the error is absolute, as a sum of
two large terms leaves it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tracer.capture.errors import ExternKernel

_AT_ONE = (
    -0.577215664786, 0.822467027335, -0.400685676611, 0.2705818047, -0.207384558867, 0.169511848539,
    -0.143971184848, 0.126171746626, -0.114004909929, 0.100613594604, -0.0741933766376, 0.0364893911155,
    -0.00839628203174,
)  # fmt: skip
"""lgamma(1 + z) / z on [-1/4, 3/4]."""

_AT_TWO = (
    0.422784335288, 0.322467029004, -0.0673523208362, 0.0205810017147, -0.00738532948684, 0.00288812869622,
    -0.0011921231354, 0.000520163429491, -0.000235325737785, 8.96139058201e-05, -1.79925130302e-05,
)  # fmt: skip
"""lgamma(2 + z) / z on [-1/2, 1]."""

_DIGAMMA = (
    1.25038013231, -0.854692098435, 0.752416731694, -0.713704841514, 0.691253177916, -0.654592267978,
    0.565928531457, -0.405148252017, 0.213450402715, -0.0708865636182, 0.0109025886726,
)  # fmt: skip
"""digamma(1 + z) / (1 + z - root) on [0, 1]."""

_SCALED_ERFC = (
    1.09599565779, 0.976548721755, 0.773208932342, 0.540854359383, 0.330848984479, 0.174004740919,
    0.0763918930507, 0.0263968065608, 0.00609485482497, 0.000228184161611, -0.000445535024309,
    -0.0001276113261,
)  # fmt: skip
"""(x + 4) erfcx(x), where s = (4 - x) / (4 + x), for s on [-1, 1]."""

_CENTRAL = (
    1.50140935111, 0.616600723569, -0.0261082502534, -0.0195741953569, 0.00852569234234,
    -0.000484344901779, -0.000835794500542, 0.000284068243715, 2.43901155608e-05, -3.33366802324e-05,
    4.45550204185e-06,
)  # fmt: skip
"""erfinv(x) / x, where w = -log(1 - x^2) is 5/2 (1 + s), for s on [-1, 1]."""

_TAIL = (
    3.00152680944, 0.935970674874, 0.00556217387711, -0.00379853250444, 0.00247748657912,
    -0.00155135411259, 0.000765886256364, -0.000217279751987, -3.74788895127e-05, 6.48787579019e-05,
    -1.6057242016e-05, -2.32542576158e-06,
)  # fmt: skip
"""the same, where sqrt(w) goes from sqrt(5) to 4.1 as s goes from -1 to 1."""

_BESSEL_0 = (
    0.207001921224, -0.113004336109, 0.094515631894, -0.089042889187, 0.0873432153256, -0.0849730495901,
    0.0792787441867, -0.0694645149311, 0.056749110844, -0.0433137936791, 0.0302974085324, -0.0188651259884,
    0.0116616340636, -0.00800984960667, 0.00406265364667, -0.000759696728412, 0.000469624873119,
    -0.000850852697666, 0.000335946138823,
)  # fmt: skip
"""exp(-x) I0(x), where x = 4 (1 + s), for s on [-1, 1]."""

_BESSEL_1 = (
    2.86001343204, -1.05194417753, 1.15873208857, -1.00519095924, 0.787150056479, -0.552514970579,
    0.341509109986, -0.180364423847, 0.0758501530017, -0.0191381713811, -0.00458956089912,
    0.00963080175813, -0.00784824429066, 0.00556489493955, -0.00334699705427, 0.00123944846556,
    -0.000187600714481,
)  # fmt: skip
"""(x + 4)^2 exp(-x) I1(x) / x, likewise."""

_BESSEL_0_FAR = (
    0.398942280349, 0.00623347988651, 0.000438149925504, 5.81855105141e-05, 6.64927001838e-06,
    1.13785116102e-05, -8.08643905405e-06, 4.30541995937e-06,
)  # fmt: skip
"""sqrt(x) exp(-x) I0(x), where x = 8 / t, on [0, 1]."""

_BESSEL_1_FAR = (
    0.398942280462, -0.0187004271416, -0.000730323476002, -8.11720549402e-05, -9.17912045173e-06,
    -1.31424178434e-05, 9.07590172368e-06, -4.84561909055e-06,
)  # fmt: skip
"""sqrt(x) exp(-x) I1(x), likewise."""

_ROOT = (1.4616321325302124, 1.2438149e-08)
"""The positive zero of digamma: a float32, and what it lacks."""

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_SQRT_5, _TAIL_END = math.sqrt(5.0), 4.1


def in_single(op: Any, rule: Callable[[torch.Tensor], torch.Tensor], data: torch.Tensor) -> torch.Tensor:
    """`rule` for a tensor of any shape and dtype but float64, for which it has too few digits.

    Raises ExternKernel for float64.
    """
    if data.dtype == torch.float64 or data.is_complex():
        raise ExternKernel(aten_ops=str(op))
    dtype = data.dtype if data.is_floating_point() else torch.get_default_dtype()
    return rule(data.to(torch.float32)).to(dtype)


def _polynomial(coefficients: Sequence[float], x: torch.Tensor) -> torch.Tensor:
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _lgamma_positive(x: torch.Tensor) -> torch.Tensor:
    below = x < 0.75
    # lgamma(x) = lgamma(1 + x) - log(x); the polynomial's argument is exact.
    z = torch.where(below, x, x - 1)
    near_one = z * _polynomial(_AT_ONE, z) - torch.where(below, torch.log(x), 0.0)
    # Every value is made of x and not of the one before: Inductor writes its formula out at each use.
    steps = (torch.floor(x) - 2).clamp(0, 5)
    y = x - steps
    factors = [torch.where(steps > k, x - (k + 1), 1.0) for k in range(5)]
    near_two = (y - 2) * _polynomial(_AT_TWO, y - 2) + torch.log(math.prod(factors[1:], start=factors[0]))
    inverse = 1 / x
    series = inverse * _polynomial((1 / 12, -1 / 360, 1 / 1260), inverse * inverse)
    stirling = (x - 0.5) * (torch.log(x) - 1) + (_HALF_LOG_TAU - 0.5) + series
    stirling = torch.where(x == math.inf, math.inf, stirling)
    return torch.where(x < 1.5, near_one, torch.where(x < 8, near_two, stirling))


def _fraction(x: torch.Tensor) -> torch.Tensor:
    """How far x is from the next whole number, in [0, 1/2]; exact."""
    part = x - torch.floor(x)
    return torch.minimum(part, 1 - part)


def lgamma(x: torch.Tensor) -> torch.Tensor:
    """log |gamma(x)| of float32."""
    reflected = x <= 0
    positive = _lgamma_positive(torch.where(reflected, 1 - x, x))
    # At whole numbers the sine is 0 and its logarithm -inf.
    sine = torch.sin(math.pi * _fraction(x))
    mirrored = math.log(math.pi) - torch.log(sine) - positive
    result = torch.where(reflected, mirrored, positive)
    return torch.where(x == -math.inf, math.inf, result)


def digamma(x: torch.Tensor) -> torch.Tensor:
    """The derivative of log gamma, of float32: NaN at negative whole numbers, an infinity at 0."""
    mirrored = x <= 0
    y = torch.where(mirrored, 1 - x, x)
    below = y < 1
    z, total = torch.where(below, y + 1, y), torch.where(below, -1 / y, 0.0)
    steps = (torch.floor(z) - 1).clamp(0, 6)
    low = z - steps
    total = sum((torch.where(steps > k, 1 / (z - (k + 1)), 0.0) for k in range(6)), start=total)
    near = (low - _ROOT[0] - _ROOT[1]) * _polynomial(_DIGAMMA, low - 1) + total
    inverse = 1 / z
    square = inverse * inverse
    series = square * _polynomial((1 / 12, -1 / 120, 1 / 252), square)
    far = torch.log(z) - 0.5 * inverse - series
    positive = torch.where(z < 8, near, far)
    part = x - torch.round(x)
    angle = math.pi * part
    reflection = math.pi * torch.cos(angle) / torch.sin(angle)
    result = torch.where(mirrored, positive - reflection, positive)
    result = torch.where(mirrored & (part == 0), math.nan, result)
    return torch.where(x == 0, torch.copysign(torch.full_like(x, math.inf), -x), result)


def _exp_square(x: torch.Tensor, sign: float) -> torch.Tensor:
    """exp(sign * x^2) for x in [0, 16): the square of x to seven bits after the point is exact."""
    high = torch.floor(x * 128) / 128
    return torch.exp(sign * (high * high)) * torch.exp(sign * ((x - high) * (x + high)))


def _scaled_erfc(x: torch.Tensor) -> torch.Tensor:
    # Of an infinity the quotient has no value, the limit has.
    s = torch.where(x == math.inf, -1.0, (4 - x) / (4 + x))
    return _polynomial(_SCALED_ERFC, s) / (x + 4)


def erfc(x: torch.Tensor) -> torch.Tensor:
    """1 - erf(x) of float32, to its last bits where it is small."""
    size = x.abs().clamp(max=15.0)
    small = _exp_square(size, -1.0) * _scaled_erfc(size)
    return torch.where(x < 0.5, torch.where(x < -0.5, 2 - small, 1 - torch.erf(x)), small)


def erfcx(x: torch.Tensor) -> torch.Tensor:
    """exp(x^2) erfc(x) of float32."""
    size = x.abs()
    scaled = _scaled_erfc(size)
    return torch.where(x < 0, 2 * _exp_square(size.clamp(max=15.0), 1.0) - scaled, scaled)


def erfinv(x: torch.Tensor) -> torch.Tensor:
    """The inverse of erf, of float32: infinite at 1 and -1, NaN beyond."""
    w = -torch.log((1 - x) * (1 + x))
    central = _polynomial(_CENTRAL, w * 0.4 - 1)
    middle, half = (_TAIL_END + _SQRT_5) / 2, (_TAIL_END - _SQRT_5) / 2
    tail = _polynomial(_TAIL, (torch.sqrt(w) - middle) / half)
    return torch.where(x.abs() == 1, x * math.inf, x * torch.where(w < 5, central, tail))


def i0e(x: torch.Tensor) -> torch.Tensor:
    """exp(-|x|) I0(x) of float32."""
    size = x.abs()
    near = _polynomial(_BESSEL_0, size * 0.25 - 1)
    far = _polynomial(_BESSEL_0_FAR, 8 / size) * torch.rsqrt(size)
    return torch.where(size <= 8, near, far)


def i1e(x: torch.Tensor) -> torch.Tensor:
    """exp(-|x|) I1(x) of float32."""
    size = x.abs()
    near = _polynomial(_BESSEL_1, size * 0.25 - 1) * x / ((size + 4) * (size + 4))
    far = _polynomial(_BESSEL_1_FAR, 8 / size) * torch.rsqrt(size)
    return torch.where(size <= 8, near, torch.where(x < 0, -far, far))


def i0(x: torch.Tensor) -> torch.Tensor:
    """The modified Bessel function I0 of float32."""
    return _grown(x, i0e(x))


def i1(x: torch.Tensor) -> torch.Tensor:
    """The modified Bessel function I1 of float32."""
    return _grown(x, i1e(x))


def _grown(x: torch.Tensor, scaled: torch.Tensor) -> torch.Tensor:
    """exp(|x|) times `scaled`, which is small where the exponential alone would be infinite."""
    half = torch.exp(0.5 * x.abs())
    return scaled * half * half


aten = torch.ops.aten

RULES: dict[Any, Callable[..., Any]] = {
    op.default: functools.partial(in_single, op.default, rule)
    for op, rule in {
        aten.lgamma: lgamma,
        aten.digamma: digamma,
        aten.erfc: erfc,
        aten.erfinv: erfinv,
        aten.special_erfcx: erfcx,
        aten.i0: i0,
        aten.special_i0e: i0e,
        aten.special_i1: i1,
        aten.special_i1e: i1e,
        aten.special_modified_bessel_i0: i0,
        aten.special_modified_bessel_i1: i1,
    }.items()
}
