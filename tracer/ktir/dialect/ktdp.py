"""The `ktdp` dialect, what KTIR adds to xDSL's dialects, and the context that knows all of it.

Constructors (all importable from here; values are `SSAValue`s, sizes and strides may mix ints and values):

    GetComputeTileIdOp(dims=1)                                          .ids
    ConstructMemoryViewOp(pointer, sizes, strides, memref_type, memory_space=None, coordinate_set=None)
    .view ConstructDistributedMemoryViewOp(views, memref_type)                .view
    ConstructAccessTileOp(view, indices, shape, *, base_map=None, access_tile_set=None,
                          access_tile_order=None, symbols=())           .tile
    ConstructIndirectAccessTileOp(view, [(is_indirect, AffineMap)], shape, *, index_views, captured=(),
                                  variables_space_set, variables_space_order=None, symbols=(), names=())
                                  .tile
    LoadOp(tile, tensor_type)                                           .result
    StoreOp(data, tile)
    InterTileProduceOp(producers, future_type, region)                  .future
    InterTileReduceOp(future, identity, consumers, tensor_type, region, dependency=None)
    .result YieldPartialOp(value), YieldReducedOp(value), RegionTerminatorOp() RuntimeArgExtractOp(field,
    arg, result_type)                        .result AccessTileType(shape), TileFutureType(tensor_type,
    groups), RuntimeArgType(type, granularity=0, upperbound=0) MemorySpaceAttr("global" | "ct_local",
    core=-1), SpyreMemorySpaceAttr("HBM" | "LX" ..., core=-1)

    linalg: BatchMatmulOp(inputs, outputs), DivOp(inputs, outputs), ELEMENTWISE["linalg.rsqrt"](inputs,
    outputs) ...,
            ReduceManyOp(inputs, inits, dims, region), MapOp(inputs, init, region)
    arith:  RemfOp(lhs, rhs), IndexCastUIOp(value, type), CmpiOp(lhs, rhs, "slt"), CmpfOp(lhs, rhs, "olt"),
            SelectOp(condition, lhs, rhs), arith_ops.CASTS["arith.extf"](value, type): scalars and tensors
            alike
    math:   see `value_ops` and `gather_ops`
    tensor: GenerateOp(type, region), RankOp(tensor), and those of `value_ops` and `gather_ops`
    scf:    ForallOp(lower, upper, step, body, outputs=())

Everything else is xDSL's own (`xdsl.dialects.arith`, `linalg`, `math`, `scf`, `tensor`, `func`).
"""

from __future__ import annotations

from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, linalg, math, scf, tensor
from xdsl.ir import Dialect

from tracer.ktir.dialect import arith_ops, gather_ops, value_ops
from tracer.ktir.dialect.arith_ops import CmpfOp, CmpiOp, IndexCastUIOp, SelectOp
from tracer.ktir.dialect.attributes import (
    AccessTileType,
    MemorySpace,
    MemorySpaceAttr,
    RuntimeArgType,
    SpyreMemorySpaceAttr,
    TileFutureType,
)
from tracer.ktir.dialect.extra_ops import (
    ARITH_OPS,
    CONTRACTIONS,
    ELEMENTWISE,
    LINALG_OPS,
    TENSOR_OPS,
    BatchMatmulOp,
    DivOp,
    GenerateOp,
    MapOp,
    MatmulOp,
    NamedLinalgOp,
    RankOp,
    ReduceManyOp,
    RemfOp,
)
from tracer.ktir.dialect.indirect_ops import ConstructIndirectAccessTileOp, RegionTerminatorOp
from tracer.ktir.dialect.intertile_ops import (
    InterTileProduceOp,
    InterTileReduceOp,
    RuntimeArgExtractOp,
    YieldPartialOp,
    YieldReducedOp,
)
from tracer.ktir.dialect.loop_ops import SCF_OPS, ForallOp, InParallelOp, ParallelInsertSliceOp
from tracer.ktir.dialect.memory_ops import (
    ConstructAccessTileOp,
    ConstructDistributedMemoryViewOp,
    ConstructMemoryViewOp,
    GetComputeTileIdOp,
)
from tracer.ktir.dialect.region_ops import REGION_OPS
from tracer.ktir.dialect.transfer_ops import LoadOp, StoreOp

__all__ = [
    "CONTRACTIONS",
    "DIALECTS",
    "ELEMENTWISE",
    "AccessTileType",
    "BatchMatmulOp",
    "CmpfOp",
    "CmpiOp",
    "ConstructAccessTileOp",
    "ConstructDistributedMemoryViewOp",
    "ConstructIndirectAccessTileOp",
    "ConstructMemoryViewOp",
    "DivOp",
    "ForallOp",
    "GenerateOp",
    "GetComputeTileIdOp",
    "InParallelOp",
    "IndexCastUIOp",
    "InterTileProduceOp",
    "InterTileReduceOp",
    "Ktdp",
    "LoadOp",
    "MapOp",
    "MatmulOp",
    "MemorySpace",
    "MemorySpaceAttr",
    "NamedLinalgOp",
    "ParallelInsertSliceOp",
    "RankOp",
    "ReduceManyOp",
    "RegionTerminatorOp",
    "RemfOp",
    "RuntimeArgExtractOp",
    "RuntimeArgType",
    "SelectOp",
    "SpyreMemorySpaceAttr",
    "StoreOp",
    "TileFutureType",
    "YieldPartialOp",
    "YieldReducedOp",
    "context",
]

Ktdp = Dialect(
    "ktdp",
    [
        GetComputeTileIdOp,
        ConstructMemoryViewOp,
        ConstructDistributedMemoryViewOp,
        ConstructAccessTileOp,
        ConstructIndirectAccessTileOp,
        RegionTerminatorOp,
        LoadOp,
        StoreOp,
        InterTileProduceOp,
        YieldPartialOp,
        InterTileReduceOp,
        YieldReducedOp,
        RuntimeArgExtractOp,
    ],
    [AccessTileType, TileFutureType, RuntimeArgType, MemorySpaceAttr, SpyreMemorySpaceAttr],
)

DIALECTS = ("builtin", "func", "arith", "math", "linalg", "tensor", "scf", "ktdp")
"""Dialects that KTIR may use; anything else is an error."""


def context() -> Context:
    """A fresh xDSL context with every dialect of KTIR, ours and xDSL's."""
    ctx = Context()
    for dialect in (builtin.Builtin, func.Func, Ktdp):
        ctx.load_dialect(dialect)
    own_arith = (*ARITH_OPS, *arith_ops.OPS)
    extended: tuple[tuple[Dialect, Any], ...] = (
        (arith.Arith, own_arith),
        (linalg.Linalg, LINALG_OPS),
        (math.Math, (*value_ops.MATH_OPS, *gather_ops.MATH_OPS)),
        (
            tensor.Tensor,
            (*TENSOR_OPS, *value_ops.TENSOR_OPS, *gather_ops.TENSOR_OPS, ParallelInsertSliceOp),
        ),
        (scf.Scf, (*SCF_OPS, *REGION_OPS)),
    )
    for dialect, extra in extended:
        named = {op.name for op in extra}
        kept = [op for op in dialect.operations if op.name not in named]
        ctx.load_dialect(Dialect(dialect.name, [*kept, *extra], list(dialect.attributes)))
    return ctx
