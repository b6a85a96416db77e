"""Which rule of the error analysis applies to which ATen operation. Lists, nothing else."""

from __future__ import annotations

import math


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOVES = _names("""
    alias as_strided cat clone constant_pad_nd contiguous copy detach diagonal embedding expand fill flip
    gather index index_copy index_fill index_put index_select lift_fresh masked_fill masked_scatter
    masked_select narrow permute pixel_shuffle reflection_pad1d reflection_pad2d repeat replication_pad1d
    replication_pad2d reshape roll scatter select select_scatter slice slice_scatter split split_with_sizes
    squeeze stack t take take_along_dim transpose tril triu unbind unfold unsqueeze unsafe_index view
    view_as _unsafe_view _unsafe_index _reshape_alias _unsafe_index_put unsafe_split tile movedim swapaxes
    im2col upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
    _upsample_nearest_exact2d diag_embed rot90 real imag view_as_real view_as_complex
    """)
"""Operations that only move elements."""

FILLERS = _names("constant_pad_nd fill index_fill masked_fill")
"""Moves whose last argument is a new element, which is exact."""

EXACT = _names("""
    abs ceil clamp clamp_max clamp_min eq floor fmax fmin ge gt hardtanh isfinite isinf isnan le logical_and
    logical_not logical_or logical_xor lt maximum minimum ne neg positive relu relu6 round sgn sign
    signbit threshold trunc where _to_copy copysign heaviside bitwise_and bitwise_or bitwise_xor bitwise_not
    nan_to_num to frac _conj conj arange full zeros ones empty scalar_tensor eye linspace any all
    argmax argmin argsort bucketize searchsorted nonzero bincount isin is_nonzero _local_scalar_dense item
    equal floor_divide remainder fmod
    """)
"""Elementwise operations that round nothing, and operations whose results are integers or constants."""

UNINITIALISED = _names("empty empty_like empty_permuted empty_strided new_empty new_empty_strided")
"""Operations whose results hold what happens to lie in memory."""

CONSTANTS = UNINITIALISED | _names("full_like new_full new_ones new_zeros ones_like zeros_like")
"""Operations that take a tensor for its layout: no element of it is in the result."""

ROUNDED_ONCE = _names("add sub mul div rsub sqrt square reciprocal true_divide")
"""Elementwise operations that IEEE arithmetic rounds correctly, or nearly so."""

SCALED_OPERAND = {"add": 1, "sub": 1, "rsub": 0}
"""Sums of two, and the position of the one that `alpha` multiplies: a product with a rounding of its own."""

DOMAINS = {"sqrt": (0.0, math.inf), "acosh": (1.0, math.inf), "acos": (-1.0, 1.0), "asin": (-1.0, 1.0)}
"""Functions that are finite at an edge of their domain, and its edges: an operand moves that far at most."""

TRANSCENDENTAL = _names("""
    acos acosh asin asinh atan atan2 atanh cos cosh digamma erf erfc erfinv exp exp2 expm1 hypot lgamma log
    log10 log1p log2 pow rsqrt sin sinh tan tanh
    """)
"""Elementwise functions that hardware approximates to a few units in the last place."""

SCALED_ARGUMENT = _names("exp exp2 expm1 sinh cosh tanh pow")
"""Functions that are computed from exp2 of a scaled, so rounded, argument."""

SUMS = frozenset(
    [
        "sum",
        "mean",
        "cumsum",
        "nansum",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
        "adaptive_avg_pool1d",
    ]
)
"""Linear reductions with weights of one sign."""

UNSCALED = _names("cumsum nansum sum")
"""Sums whose weights are 1."""

SELECTIONS = _names("""
    amax amin aminmax cummax cummin kthvalue max median min mode nanmedian sort topk
    """)
"""Operations whose results are elements of their first operand, chosen along `dim` or among all."""

WINDOWED_MAXIMA = _names("""
    adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d
    max_pool2d_with_indices max_pool3d_with_indices
    """)
"""Operations whose results are the largest elements of windows."""

SCATTERED = {
    "scatter_add": 3, "scatter_reduce": 3, "index_add": 3, "index_reduce": 3, "index_put": 2,
    "_unsafe_index_put": 2, "_index_put_impl": 2,
}  # fmt: skip
"""Operations that may add several elements of a source to one of the result, and the source's position."""

ADDING = {"index_reduce": "index_add"}
"""Scattering operations that cannot add, and the one of the same leading arguments that does."""

CONTRACTIONS = {
    "mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "dot": 0, "mv": 0, "addmv": 1, "addbmm": 1, "convolution": 0,
}  # fmt: skip
"""Sums of products, and the position of their left factor."""


def covered(name: str) -> bool:
    """Whether a rule bounds the operation of this name as a whole."""
    families = (
        MOVES, EXACT, CONSTANTS, CONTRACTIONS, SUMS, SELECTIONS, ROUNDED_ONCE, TRANSCENDENTAL,
        SCALED_ARGUMENT, SCATTERED, WINDOWED_MAXIMA,
    )  # fmt: skip
    return any(name in family for family in families)
