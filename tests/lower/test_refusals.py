"""What cannot be lowered is refused, all of it at once, by source line."""

from __future__ import annotations

import pickle

import pytest

from tracer.lower.errors import UnsupportedOpsError
from tracer.lower.lowering import lower_source

UNKNOWN = {"in_ptr0": "*i32", "out_ptr0": "*i32"}


def test_an_operation_without_reading_is_named(lowered, source: str):
    with pytest.raises(UnsupportedOpsError) as caught:
        lowered("histogram", UNKNOWN, {"X0_BLOCK": 16, "CORES": 1})
    number = next(i for i, line in enumerate(source.splitlines(), 1) if "tl.histogram" in line)
    assert caught.value.code == "HV403"
    assert f"tt.histogram (line {number})" in caught.value.reason


def test_an_operation_without_lowering_is_named_with_its_line(source: str):
    text = """@triton.jit
def odd(in_ptr0, out_ptr0, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[16], strides=[1], block_shape=[16])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[16], strides=[1], block_shape=[16])
    tmp0 = libdevice.lgamma(in0.load([0]))
    out0.store([0], libdevice.lgamma(tmp0))
"""
    types = {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "CORES": "constexpr"}
    with pytest.raises(UnsupportedOpsError) as caught:
        lower_source(text, "odd", types, {"CORES": 1}, 1)
    assert "tt.extern_elementwise (lines 5, 6)" in caught.value.reason
    assert "lgamma(in0" in (caught.value.line or "")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_the_same_kernel_with_a_known_function_lowers():
    text = """@triton.jit
def even(in_ptr0, out_ptr0, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[16], strides=[1], block_shape=[16])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[16], strides=[1], block_shape=[16])
    out0.store([0], libdevice.tanh(in0.load([0])))
"""
    types = {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "CORES": "constexpr"}
    assert "math.tanh" in lower_source(text, "even", types, {"CORES": 1}, 1).text
