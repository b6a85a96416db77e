"""The `arith` ops of KTIR that xDSL's own do not cover; they live with the rest of the dialect."""

from tracer.ktir.arith_ops import CASTS, OPS, CastOp, CmpfOp, CmpiOp, SelectOp

__all__ = ["CASTS", "OPS", "CastOp", "CmpfOp", "CmpiOp", "SelectOp"]
