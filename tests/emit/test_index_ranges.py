from __future__ import annotations

import pytest

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.emit.index_ranges import IndexRange, index_ranges
from tracer.models.op_call import OpCall, TensorSpec

SPEC = TensorSpec((4,), (1,), 0, "torch.int64")


def op(body: str, integers: tuple[str, ...] = ("in_ptr0",), role: str = "input", **numels: int) -> CapturedOp:
    source = "def k(in_ptr0, in_ptr1, out_ptr0, XBLOCK):\n" + "\n".join(
        f"    {line}" for line in body.split("\n")
    )
    names = ("in_ptr0", "in_ptr1", "out_ptr0")
    kernel = CapturedKernel(
        "k",
        source,
        (*((name, f"buffer of {name}") for name in names), *numels.items()),
        tuple((name, "*i64" if name in integers else "*fp16") for name in names),
        ("out_ptr0",),
        (),
    )
    buffers = tuple(Buffer(f"buffer of {name}", role, SPEC) for name in names)  # type: ignore[arg-type]
    return CapturedOp(OpCall("torch.f", (), ()), buffers, (kernel,), (), 0)


GATHER = """tmp0 = tl.load(in_ptr0 + (x0), xmask)
tmp1 = tmp0 + 100
tmp2 = tmp0 < 0
tmp3 = tl.where(tmp2, tmp1, tmp0)
tl.device_assert(((0 <= tmp3) & (tmp3 < 100)) | ~(xmask), "index out of bounds: 0 <= tmp3 < 100")
tmp4 = tl.load(in_ptr1 + (x0 + 8*tmp3), xmask)
tl.store(out_ptr0 + (x0), tmp4, xmask)"""

SCATTER = """tmp0 = tl.load(in_ptr0 + (x0), xmask)
tl.device_assert((0 <= tmp0) & (tmp0 < 7), "index out of bounds: 0 <= tmp0 < 7")
tl.store(out_ptr0 + (x0 + 8*tmp0), tmp0, xmask)"""

SUM = """tmp0 = tl.load(in_ptr0 + (x0))
tmp1 = tl.load(in_ptr1 + (x0))
tmp2 = tmp0 + tmp1
tl.device_assert((0 <= tmp2) & (tmp2 < 10), "")
tl.store(out_ptr0 + (x0), tmp2)"""


def test_the_asserted_bound_is_that_of_the_pointer_the_index_came_from():
    assert index_ranges(op(GATHER)) == {"buffer of in_ptr0": IndexRange(100, distinct=False)}


def test_an_index_that_is_stored_at_is_distinct():
    assert index_ranges(op(SCATTER)) == {"buffer of in_ptr0": IndexRange(7, distinct=True)}


def test_two_indices_that_are_added_share_the_range():
    found = index_ranges(op(SUM, integers=("in_ptr0", "in_ptr1")))
    assert {value.high for value in found.values()} == {5}
    assert len(found) == 2


def test_what_no_kernel_indexes_with_has_no_range():
    assert index_ranges(op("tmp0 = tl.load(in_ptr0 + (x0))\ntl.store(out_ptr0 + (x0), tmp0)")) == {}


def test_an_intermediate_is_nobodys_input():
    assert index_ranges(op(GATHER, role="intermediate")) == {}


PLANES = """x0 = xindex
tmp0 = tl.load(in_ptr0 + (x0), xmask)
tmp1 = (18*(x0 // 8)).to(tl.int32)
tmp2 = tmp0 + tmp1
tmp3 = (tl.full([XBLOCK], 54, tl.int32)).to(tl.int32)
tmp4 = tmp2 + tmp3
tmp5 = tmp2 < 0
tmp6 = tl.where(tmp5, tmp4, tmp2)
tl.device_assert(((0 <= tmp6) & (tmp6 < 54)) | ~(xmask), "index out of bounds: 0 <= tmp6 < 54")
tl.store(out_ptr0 + (tl.broadcast_to((tmp6 % 54), [XBLOCK])), tmp0, xmask)"""


def test_what_is_added_to_an_index_is_taken_off_its_range():
    found = index_ranges(op(PLANES, xnumel=24))
    assert found == {"buffer of in_ptr0": IndexRange(18, distinct=True)}
    # Of an extent that nobody knows nothing is taken off.
    assert index_ranges(op(PLANES)) == {"buffer of in_ptr0": IndexRange(54, distinct=True)}


@pytest.mark.parametrize(
    ("added", "most"),
    [
        ("x0", 23),
        ("(x0 % 5)", 4),
        ("(x0 % 100)", 23),
        ("x0 // 5 + 3", 7),
        ("10 - x0", 10),
        ("(-1) * x0", 0),
        ("tl.load(in_ptr1 + (x0))", 0),
        ("tl.where(x0 < 3, x0, 7)", 23),
        ("tl.where(x0 < 0, 50, 7)", 7),
    ],
)
def test_the_most_that_is_added(added: str, most: int):
    body = f"x0 = xindex\ntmp0 = tl.load(in_ptr0 + (x0))\ntmp1 = tmp0 + ({added})\n"
    body += 'tl.device_assert((0 <= tmp1) & (tmp1 < 90), "")\ntl.store(out_ptr0 + (x0), tmp1)'
    assert index_ranges(op(body, xnumel=24)) == {"buffer of in_ptr0": IndexRange(90 - most, distinct=False)}


CLASSES = """x1 = xindex
tmp0 = tl.load(in_ptr0 + (yindex), ymask).to(tl.int64)
tmp1 = (x1).to(tl.int64)
tmp3 = {0} == {1}
tl.store(out_ptr0 + (x1 + 10*yindex), tmp3.to(tl.int64), xmask & ymask)"""


@pytest.mark.parametrize("sides", [("tmp0", "tmp1"), ("tmp1", "tl.broadcast_to(tmp0, [YBLOCK, XBLOCK])")])
def test_what_is_compared_with_every_place_of_a_dim_is_a_place(sides: tuple[str, str]):
    found = index_ranges(op(CLASSES.format(*sides), xnumel=10, ynumel=5))
    assert found == {"buffer of in_ptr0": IndexRange(10, distinct=False)}


@pytest.mark.parametrize(
    "sides", [("tmp0", "0"), ("tmp0", "tmp0"), ("tmp0 + 1", "tmp1"), ("tmp0", "tmp1 + 5"), ("x1", "tmp1")]
)
def test_what_is_compared_with_anything_else_has_no_range(sides: tuple[str, str]):
    assert index_ranges(op(CLASSES.format(*sides), xnumel=10, ynumel=5)) == {}


def test_a_range_that_is_asserted_counts_before_a_comparison():
    body = SCATTER + "\ntmp5 = tmp0 == xindex\ntl.store(out_ptr0 + (x0), tmp5)"
    assert index_ranges(op(body, xnumel=90)) == {"buffer of in_ptr0": IndexRange(7, distinct=True)}
