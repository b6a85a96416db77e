"""Decompositions that give Inductor something to write Triton for where it would call a library."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tracer.capture import interpolation, ranking, scattering, special
from tracer.capture.bags import embedding_bag
from tracer.capture.bucketing import bucketize, searchsorted
from tracer.capture.contraction import addbmm, addmm, mm, trilinear
from tracer.capture.convolution import convolution
from tracer.capture.distance import cdist, pdist
from tracer.capture.division import floor_divide, round_decimals
from tracer.capture.pooling import adaptive_avg_pool, avg_pool, max_pool
from tracer.capture.prefix import cummax, cummin, cumprod, logcumsumexp
from tracer.capture.windows import col2im, im2col

aten = torch.ops.aten

COMPOSITE = "CompositeExplicitAutograd"
"""The dispatch key of kernels in C++ that serve every device, being made of other ops."""


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """What Inductor has no lowering for by its parts, Inductor's own decompositions, and ours over them."""
    from torch._decomp import decomposition_table
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.lowering import lowerings

    inductor = select_decomp_table()
    unknown = {op: rule for op, rule in decomposition_table.items() if op not in lowerings}
    composite = {op: functools.partial(_composite, op) for op in _composites() if op not in lowerings}
    theirs: dict[Any, Callable[..., Any]] = {**composite, **unknown, **inductor}
    extended = {op: _first_of(rule, theirs.get(op, _as_it_is)) for op, rule in EXTENDED.items()}
    return {**theirs, **extended, **OURS}


def _first_of(rule: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`rule`, and `other` for what it does not take."""

    def decompose(*args: Any, **kwargs: Any) -> Any:
        found = rule(*args, **kwargs)
        return other(*args, **kwargs) if found is NotImplemented else found

    return decompose


def _as_it_is(*_: Any, **__: Any) -> Any:
    return NotImplemented


def _of_bytes(op: Any, data: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """`aten.any` and `aten.all` of bytes, which are bytes again, as they were before bools."""
    return op(data != 0, *args, **kwargs).to(data.dtype) if data.dtype == torch.uint8 else NotImplemented


def _composites() -> Iterator[Any]:
    """ATen ops whose one kernel for every device calls other ops, and neither writes, aliases nor draws."""
    for name in torch._C._dispatch_get_registrations_for_dispatch_key(COMPOSITE):
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        found = getattr(getattr(aten, packet, None), overload or "default", None)
        if namespace != "aten" or found is None or torch.Tag.nondeterministic_seeded in found.tags:
            continue
        schema = found._schema
        if not any(value.alias_info for value in (*schema.arguments, *schema.returns)):
            yield found


def _composite(op: Any, *args: Any, **kwargs: Any) -> Any:
    return op._op_dk(getattr(torch._C.DispatchKey, COMPOSITE), *args, **kwargs)


EXTENDED: dict[Any, Callable[..., Any]] = {
    aten.max_pool2d_with_indices.default: functools.partial(max_pool, 2),
    aten.max_pool3d_with_indices.default: functools.partial(max_pool, 3),
    aten.round.decimals: round_decimals,
    **{
        op: functools.partial(_of_bytes, op)
        for packet in (aten.any, aten.all)
        for op in (packet.default, packet.dim, packet.dims)
    },
}
"""Rules for some calls of an op; the others are decomposed by Inductor's own rule."""

OURS: dict[Any, Callable[..., Any]] = {
    aten.mm.default: mm,
    aten.bmm.default: mm,
    aten.addmm.default: addmm,
    aten.baddbmm.default: addmm,
    aten.addbmm.default: addbmm,
    aten._trilinear.default: trilinear,
    aten.convolution.default: convolution,
    aten.div.Tensor_mode: floor_divide,
    aten.div.Scalar_mode: floor_divide,
    aten.topk.default: ranking.topk,
    aten.sort.default: ranking.sort,
    aten.sort.stable: ranking.sort_stable,
    aten.kthvalue.default: ranking.kthvalue,
    aten.median.default: ranking.median_of_all,
    aten.median.dim: ranking.median,
    aten.nanmedian.default: ranking.nanmedian_of_all,
    aten.nanmedian.dim: ranking.nanmedian,
    aten.searchsorted.Tensor: searchsorted,
    aten.bucketize.Tensor: bucketize,
    aten.cummax.default: cummax,
    aten.cummin.default: cummin,
    aten.cumprod.default: cumprod,
    aten.logcumsumexp.default: logcumsumexp,
    aten.scatter_add.default: scattering.scatter_add,
    aten.scatter_reduce.two: scattering.scatter_reduce,
    aten.scatter.reduce: scattering.scatter,
    aten.scatter.value_reduce: scattering.scatter,
    aten.index_add.default: scattering.index_add,
    aten.index_reduce.default: scattering.index_reduce,
    aten.index_put.default: scattering.index_put,
    aten.masked_scatter.default: scattering.masked_scatter,
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_forward_only.default: embedding_bag,
    aten._cdist_forward.default: cdist,
    aten._pdist_forward.default: pdist,
    aten.avg_pool2d.default: functools.partial(avg_pool, 2),
    aten.avg_pool3d.default: functools.partial(avg_pool, 3),
    aten._adaptive_avg_pool2d.default: functools.partial(adaptive_avg_pool, 2),
    aten._adaptive_avg_pool3d.default: functools.partial(adaptive_avg_pool, 3),
    aten.im2col.default: im2col,
    aten.col2im.default: col2im,
    aten.upsample_linear1d.default: interpolation.linear,
    aten.upsample_bilinear2d.default: interpolation.linear,
    aten.upsample_trilinear3d.default: interpolation.linear,
    aten.upsample_bicubic2d.default: interpolation.cubic,
    aten._upsample_bilinear2d_aa.default: interpolation.linear_smoothed,
    aten._upsample_bicubic2d_aa.default: interpolation.cubic_smoothed,
    aten.upsample_nearest1d.default: interpolation.nearest,
    aten.upsample_nearest2d.default: interpolation.nearest,
    aten.upsample_nearest3d.default: interpolation.nearest,
    **special.RULES,
}
"""Rules in place of others; what a rule does not take goes to Inductor's lowering as it is."""
