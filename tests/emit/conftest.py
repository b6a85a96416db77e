from __future__ import annotations

from collections.abc import Callable

import pytest

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.emit.render import OpRecord
from tracer.lower.ktir_text import Ktir
from tracer.models.op_call import OpCall, TensorRef, TensorSpec
from tracer.rewrite.kernel import Parameter, Plan, SpyreKernel

INDUCTOR = """
import triton
import triton.language as tl

@triton.jit
def triton_poi_fused_silu_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 24
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    tmp0 = tl.load(in_ptr0 + (xindex), xindex < xnumel).to(tl.float32)
    tl.store(out_ptr0 + (xindex), tmp0 / (1 + tl.exp(-tmp0)), xindex < xnumel)
"""

SPYRE = """@triton.jit
def triton_poi_fused_silu_0(in_ptr0, out_ptr0, x0_size, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    for x0 in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        tmp0 = in0.load([x0 * X0_BLOCK]).to(tl.float32)
        out0.store([x0 * X0_BLOCK], (tmp0 / (1.0 + tl.exp(-tmp0))).to(tl.float16))
"""


def spyre_kernel(name: str = "triton_poi_fused_silu_0", size: int = 24, source: str = SPYRE) -> SpyreKernel:
    parameters = (
        Parameter("in_ptr0", "*fp16", "input"),
        Parameter("out_ptr0", "*fp16", "out"),
        Parameter("x0_size", "i32", size),
        Parameter("X0_BLOCK", "constexpr", 8),
        Parameter("CORES", "constexpr", 3),
    )
    plan = Plan(3, 3, 48, 96, ("3 tiles on 3 cores",))
    return SpyreKernel(name, source, parameters, 3, plan, ("aten.silu",))


@pytest.fixture
def record() -> Callable[..., OpRecord]:
    """Builds the record of a silu over float16[2, 12]; keywords replace its fields."""

    def build(**changes: object) -> OpRecord:
        spec = TensorSpec((2, 12), (12, 1), 0, "torch.float16")
        call = OpCall("torch.nn.functional.silu", (spec,), (TensorRef(0),), (("inplace", False),))
        captured = CapturedOp(
            call,
            (Buffer("input", "input", spec), Buffer("out", "output", spec)),
            (
                CapturedKernel(
                    "triton_poi_fused_silu_0",
                    INDUCTOR,
                    (("in_ptr0", "input"), ("out_ptr0", "out"), ("xnumel", 24)),
                    (("in_ptr0", "*fp16"), ("out_ptr0", "*fp16"), ("xnumel", "i32")),
                    ("out_ptr0",),
                    ("aten.silu",),
                ),
            ),
            ("out",),
            1,
        )
        fields = {
            "name": "torch.nn.functional.silu.1",
            "model": "tiny",
            "captured": captured,
            "kernels": (spyre_kernel(),),
            "ktirs": (Ktir("triton_poi_fused_silu_0", "module {\n}\n"),),
            "calls": 2,
            "phases": ("prefill", "decode"),
            "modules": ("model.layers.*.mlp.act_fn",),
        }
        return OpRecord(**{**fields, **changes})  # type: ignore[arg-type]

    return build
