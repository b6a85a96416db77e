from __future__ import annotations

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.emit.index_ranges import IndexRange, index_ranges
from tracer.models.op_call import OpCall, TensorSpec

SPEC = TensorSpec((4,), (1,), 0, "torch.int64")


def op(body: str, integers: tuple[str, ...] = ("in_ptr0",), role: str = "input") -> CapturedOp:
    source = "def k(in_ptr0, in_ptr1, out_ptr0, XBLOCK):\n" + "\n".join(
        f"    {line}" for line in body.split("\n")
    )
    names = ("in_ptr0", "in_ptr1", "out_ptr0")
    kernel = CapturedKernel(
        "k",
        source,
        tuple((name, f"buffer of {name}") for name in names),
        tuple((name, "*i64" if name in integers else "*fp16") for name in names),
        ("out_ptr0",),
        (),
    )
    buffers = tuple(Buffer(f"buffer of {name}", role, SPEC) for name in names)  # type: ignore[arg-type]
    return CapturedOp(OpCall("torch.f", (), ()), buffers, (kernel,), ())


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
