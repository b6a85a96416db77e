from __future__ import annotations

import pytest

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.emit.domains import positive_inputs
from tracer.models.op_call import OpCall, TensorSpec

SPEC = TensorSpec((4,), (1,), 0, "torch.float32")


def op(body: str, kind: str = "*fp32") -> CapturedOp:
    lines = [
        "tmp0 = tl.load(in_ptr0 + (x0 + 4*x1), xmask).to(tl.float32)",
        *body.split("; "),
        "tl.store(out_ptr0, tmp9)",
    ]
    source = "def k(in_ptr0, out_ptr0):\n" + "\n".join(f"    {line}" for line in lines)
    kernel = CapturedKernel(
        "k",
        source,
        (("in_ptr0", "input"), ("out_ptr0", "out")),
        (("in_ptr0", kind), ("out_ptr0", kind)),
        ("out_ptr0",),
        (),
    )
    buffers = (Buffer("input", "input", SPEC), Buffer("out", "output", SPEC))
    return CapturedOp(OpCall("torch.f", (), ()), buffers, (kernel,), ("out",), 1)


@pytest.mark.parametrize(
    "body",
    [
        "tmp9 = libdevice.rsqrt(tmp0)",
        "tmp9 = tl.sqrt_rn(tmp0)",
        "tmp1 = tmp0 + 1; tmp2 = tl_math.log(tmp1); tmp9 = -tmp2",
        "tmp1 = tl.where(xmask, tmp0, 0); tmp2 = tl.sum(tmp1, 1)[:, None]; tmp9 = libdevice.sqrt(tmp2)",
        "tmp9 = libdevice.pow(tmp0, 0.3)",
    ],
)
def test_an_input_under_a_root_is_positive(body):
    assert positive_inputs(op(body)) == {"input"}


@pytest.mark.parametrize(
    "body",
    [
        "tmp1 = tmp0 * tmp0; tmp2 = tmp1 + 1e-05; tmp9 = libdevice.rsqrt(tmp2)",
        "tmp1 = tl_math.exp(tmp0); tmp2 = tl.sum(tmp1, 1); tmp9 = tl_math.log(tmp2)",
        "tmp1 = tl_math.abs(tmp0); tmp9 = libdevice.sqrt(tmp1)",
        "tmp9 = libdevice.exp(tmp0)",
    ],
)
def test_an_input_that_only_gives_positive_values_has_any_sign(body):
    assert positive_inputs(op(body)) == frozenset()


@pytest.mark.parametrize("kind", ["*i64", "*i8", "*u8"])
@pytest.mark.parametrize(
    "body",
    [
        "tmp9 = 100 // tmp0",
        "tmp9 = (x0 % tmp0)",
        # Inductor's floor division: another divisor where it is 0, and its sign.
        "tmp1 = tl.where(tmp0 == 0, 1, tmp0); tmp2 = tl.where(tmp1 < 0, -tmp1, tmp1); tmp9 = 7 // tmp2",
        "tmp1 = tl_math.abs(tmp0); tmp9 = 7 // tmp1",
    ],
)
def test_an_integer_that_is_divided_by_is_positive(body, kind):
    assert positive_inputs(op(body, kind)) == {"input"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("tmp9 = tmp0 // 7", "*i64"),
        ("tmp9 = (tmp0 % 7)", "*i64"),
        ("tmp9 = x0 // (2*ks0) + tmp0", "*i64"),
        ("tmp9 = (7.0 % tmp0)", "*fp32"),
        ("tmp9 = (x0 % tmp0)", "*i1"),
    ],
)
def test_what_is_divided_and_floats_have_any_sign(body, kind):
    assert positive_inputs(op(body, kind)) == frozenset()
