from __future__ import annotations

import pytest

from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch
from tracer.validate.call_text import parse_identity

SPEC = TensorSpec((2, 3), (3, 1), 4, "torch.float16")
CALLS = [
    OpCall("torch.add", (SPEC, SPEC), (TensorRef(0), TensorRef(1)), (("alpha", -2),)),
    OpCall("torch.cat", (SPEC,), ((TensorRef(0), TensorRef(0)), -1)),
    OpCall("torch.Tensor.__getitem__", (SPEC,), (TensorRef(0), (Torch("..."), slice(None, 64, None), None))),
    OpCall(
        "torch.full",
        (),
        ((2,), float("-inf")),
        (("device", Torch("torch.device('cpu')")), ("dtype", Torch("torch.float16"))),
    ),
    OpCall("torch.Tensor.reshape", (SPEC,), (TensorRef(0), [1, -1], True, "a $0 'x'", 1e-05)),
    OpCall("torch.zeros", (TensorSpec((), (), 0, "torch.int64"),), (TensorRef(0), (), 3.0)),
    OpCall("f", (SPEC,), ({"a": TensorRef(0), "b": [1, (2,)]},)),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_an_identity_reads_back_as_its_call(call):
    assert parse_identity(call.identity) == call


@pytest.mark.parametrize(
    "text",
    ["", "torch.add", "torch.add($0", "torch.add($0); $1=torch.float16[2]:[1]+0",
     "torch.add($0); $0=float16[2]", "torch.add(  1)", "torch.add(1); import os", "import os; os.getcwd()"],
)  # fmt: skip
def test_what_is_no_identity_is_refused(text):
    with pytest.raises(ValueError, match=r"no |reads back"):
        parse_identity(text)
