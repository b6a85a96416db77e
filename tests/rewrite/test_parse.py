"""Inductor's source -> IR: what is read, and what is refused with the line that is at fault."""

from __future__ import annotations

import textwrap

import pytest
import torch

from tracer.errors import HarvestError
from tracer.rewrite.errors import (
    AtomicStore,
    RandomNumbers,
    UndefinedValue,
    UnsupportedOperation,
    UnsupportedSyntax,
)
from tracer.rewrite.ir import Compute, Const, Kernel, Load, Reduce, Scan, Store
from tracer.rewrite.parse import parse

MEMORY = {"in_ptr0": "float32", "in_ptr1": "int64", "out_ptr0": "float32"}
HEAD = """
def kernel(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 24
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
"""
REDUCED = """
def kernel(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    xnumel = 6
    r0_numel = 5000
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    x0 = xindex
"""


def parsed(body: str, head: str = HEAD) -> Kernel:
    return parse("kernel", head + textwrap.indent(textwrap.dedent(body), "    "), MEMORY)


def one_value(expression: str) -> object:
    """The value stored by `out = expression`, as a statement or literal."""
    kernel = parsed(
        f"tmp0 = tl.load(in_ptr0 + (x0), xmask)\ntmp9 = {expression}\ntl.store(out_ptr0 + (x0), tmp9, xmask)"
    )
    store = kernel.body[-1]
    assert isinstance(store, Store)
    return kernel.statement(store.value) if isinstance(store.value, str) else store.value


def test_range_masks_are_dropped():
    kernel = parsed("tmp0 = tl.load(in_ptr0 + (x0), xmask)\ntl.store(out_ptr0 + (x0), tmp0, xmask)")
    load, store = kernel.body
    assert isinstance(load, Load)
    assert (load.mask, str(load.index)) == (None, "x")
    assert isinstance(store, Store)
    assert [(r.symbol.name, r.extent, r.reduced) for r in kernel.ranges] == [("x", 24, False)]


def test_a_computed_mask_of_a_load_stays():
    body = """
        tmp1 = x0
        tmp2 = tl.full([1], 3, tl.int64)
        tmp3 = tmp1 < tmp2
        tmp0 = tl.load(in_ptr0 + (x0), tmp3 & xmask, other=0.0)
        tl.store(out_ptr0 + (x0), tmp0, xmask)
    """
    load = parsed(body).statement("tmp0")
    assert isinstance(load, Load)
    assert (load.mask, load.other) == ("tmp3", Const(0.0, "float32"))


@pytest.mark.parametrize(
    ("expression", "op"),
    [
        ("tl.exp(tmp0)", "exp"),
        ("libdevice.exp(tmp0)", "exp"),
        ("tl_math.abs(tmp0)", "abs"),
        ("triton_helpers.maximum(tmp0, 0.0)", "maximum"),
        ("triton.language.div_rn(tmp0, tmp0)", "div"),
        ("-tmp0", "neg"),
        ("tmp0 * 2.0", "mul"),
        ("tl.where(tmp0 < 0, tmp0, 1.0)", "where"),
        ("(libdevice.signbit(tmp0) != 0) if (tmp0).dtype is tl.float32 else tmp0 < 0", "ne"),
        ("(tmp0 < 0) if (tmp0).dtype is tl.float64 else tmp0 * 3.0", "mul"),
    ],
)
def test_elementwise(expression: str, op: str):
    value = one_value(expression)
    assert isinstance(value, Compute)
    assert value.op == op


def test_integer_extremes_are_read_as_such():
    kernel = parsed("""
        tmp1 = ((5) * ((5) <= (2*x0)) + (2*x0) * ((2*x0) < (5))).to(tl.int32)
        tl.store(out_ptr0 + (x0), tmp1, xmask)
    """)
    ops = [s.op for s in kernel.body if isinstance(s, Compute)]
    assert ops == ["minimum"]


def test_a_cast_to_the_dtype_of_another_value():
    value = one_value("(tmp0 < 0).to(tmp0.dtype)")
    assert isinstance(value, Compute)
    assert (value.op, value.dtype) == ("cast", "float32")


def test_an_asserted_index_is_bounded():
    body = """
        tmp1 = tl.load(in_ptr1 + (x0), xmask)
        tl.device_assert(((0 <= tmp1) & (tmp1 < 50)) | ~(xmask), "index out of bounds")
        tmp0 = tl.load(in_ptr0 + (tmp1), xmask)
        tl.store(out_ptr0 + (x0), tmp0, xmask)
    """
    kernel = parsed(body)
    assert kernel.bounds == (("tmp1", 50),)
    assert str(kernel.body[1].index) == "tmp1"


def test_a_loop_with_an_accumulator_is_a_reduction():
    body = """
        _tmp2 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
        for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
            r0_index = r0_offset + r0_base
            r0_mask = r0_index < r0_numel
            r0_1 = r0_index
            tmp0 = tl.load(in_ptr0 + (r0_1 + 5000*x0), r0_mask & xmask, other=0.0)
            tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
            tmp3 = _tmp2 + tmp1
            _tmp2 = tl.where(r0_mask & xmask, tmp3, _tmp2)
        tmp2 = tl.sum(_tmp2, 1)[:, None]
        tl.store(out_ptr0 + (x0), tmp2, xmask)
    """
    load, reduction, store = parsed(body, REDUCED).body
    assert isinstance(load, Load)
    assert isinstance(reduction, Reduce)
    assert (reduction.kind, reduction.args) == ("sum", ("tmp0",))
    assert isinstance(store, Store)
    assert store.value == reduction.name


def test_a_loop_with_a_maximum():
    body = """
        _tmp2 = tl.full([XBLOCK, R0_BLOCK], float("-inf"), tl.float32)
        for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
            r0_index = r0_offset + r0_base
            r0_mask = r0_index < r0_numel
            tmp0 = tl.load(in_ptr0 + (r0_index + 5000*x0), r0_mask & xmask, other=0.0)
            tmp3 = triton_helpers.maximum(_tmp2, tmp0)
            _tmp2 = tl.where(r0_mask & xmask, tmp3, _tmp2)
        tmp2 = triton_helpers.max2(_tmp2, 1)[:, None]
        tl.store(out_ptr0 + (x0), tmp2, xmask)
    """
    [reduction] = [s for s in parsed(body, REDUCED).body if isinstance(s, Reduce)]
    assert reduction.kind == "max"


def test_a_loop_that_ends_in_another_reduction_is_refused():
    body = """
        _tmp2 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
        for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
            r0_index = r0_offset + r0_base
            tmp0 = tl.load(in_ptr0 + (r0_index), None)
            _tmp2 = _tmp2 + tmp0
        tmp2 = triton_helpers.max2(_tmp2, 1)[:, None]
        tl.store(out_ptr0 + (x0), tmp2, xmask)
    """
    with pytest.raises(UnsupportedSyntax, match="loop-carried value of another kind"):
        parsed(body, REDUCED)


def test_what_a_load_of_integers_gives_beside_memory_is_an_integer():
    body = """
        tmp2 = x0 < 3
        tmp0 = tl.load(in_ptr1 + (x0), tmp2 & xmask, other=0.0)
        tl.store(out_ptr0 + (x0), tmp0, xmask)
    """
    load = parsed(body).statement("tmp0")
    assert isinstance(load, Load)
    assert (type(load.other.value), load.other) == (int, Const(0, "int64"))


@pytest.mark.parametrize(("literal", "body"), [("True", ["Load", "Store"]), ("False", ["Store"])])
def test_a_literal_mask(literal: str, body: list[str]):
    kernel = parsed(f"""
        tmp2 = tl.full([1], {literal}, tl.int1)
        tmp0 = tl.load(in_ptr0 + (x0), tmp2 & xmask, other=2.0)
        tl.store(out_ptr0 + (x0), tmp0, xmask)
    """)
    assert [type(statement).__name__ for statement in kernel.body] == body
    if literal == "False":
        assert kernel.body[-1].value == Const(2.0, "float32")


def test_a_shift_by_a_literal_inside_of_the_width_is_one_operation():
    body = """
        tmp0 = tl.load(in_ptr1 + (x0), xmask)
        tmp1 = tl.full([1], {}, tl.int64)
        tmp2 = tmp0 << tmp1
        tl.store(out_ptr0 + (x0), tmp2, xmask)
    """
    assert len(parsed(body.format(63)).body) == 3
    assert parsed(body.format(64)).body[-1].value == Const(0, "int64")


@pytest.mark.parametrize(
    ("body", "error", "line"),
    [
        (
            "tl.atomic_add(out_ptr0 + (x0), 1.0, xmask)",
            AtomicStore,
            "tl.atomic_add(out_ptr0 + (x0), 1.0, xmask)",
        ),
        ("tmp0 = tl.rand(3, x0)", RandomNumbers, "tmp0 = tl.rand(3, x0)"),
        ("tl.store(out_ptr0 + (x0), tmp7, xmask)", UndefinedValue, "tl.store(out_ptr0 + (x0), tmp7, xmask)"),
        ("tmp0 = libdevice.lgamma(1.0)", UnsupportedOperation, "tmp0 = libdevice.lgamma(1.0)"),
        ("tmp0 = [x0]", UnsupportedSyntax, "tmp0 = [x0]"),
        (
            "tmp0 = tl.load(in_ptr0 + (x0), xmask).to(tl.int32, bitcast=True)",
            UnsupportedSyntax,
            "tmp0 = tl.load(in_ptr0 + (x0), xmask).to(tl.int32, bitcast=True)",
        ),
        ("while x0: pass", UnsupportedSyntax, "while x0: pass"),
        ("tmp0 = tl.load(in_ptr9 + (x0), xmask)", UnsupportedSyntax, "tmp0 = tl.load(in_ptr9 + (x0), xmask)"),
    ],
)
def test_refusals_name_the_line(body: str, error: type[HarvestError], line: str):
    with pytest.raises(error) as refusal:
        parsed(body)
    assert refusal.value.line == line
    assert refusal.value.code.startswith("HV3")
    assert refusal.value.advice


def test_a_store_under_a_computed_mask_is_refused():
    body = """
        tmp0 = tl.load(in_ptr0 + (x0), xmask)
        tl.store(out_ptr0 + (x0), tmp0, xmask & (tmp0 > 0.0))
    """
    with pytest.raises(UnsupportedSyntax, match="a store under a computed mask"):
        parsed(body)


def test_rindex_flattens_several_reduced_ranges(rewritten):
    [kernel] = rewritten(lambda x: x.sum((0, 2)), torch.empty(5, 7, 11))
    assert "r0_size" in kernel.source
    assert "r1_size" in kernel.source


def test_scan(refined):
    _, kernel = refined(lambda x: x.cumsum(-1), torch.empty(4, 100))
    [scan] = [s for s in kernel.body if isinstance(s, Scan)]
    assert scan.kind == "add"


def test_a_scan_of_two_values_is_refused(rewritten):
    with pytest.raises(UnsupportedOperation, match="associative_scan"):
        rewritten(lambda x: x.cummax(-1), torch.empty(4, 4096))
