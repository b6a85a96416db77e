"""Op calls: identity, JSON, printing, replay."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from tracer.models.errors import UnknownOp
from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch
from tracer.models.record import Recorder
from tracer.models.replay import empty_tensors, float64, render, replay, tensor_names
from tracer.models.trace import Trace
from tracer.models.values import Values

HALF = TensorSpec((2, 3), (3, 1), 0, "torch.float16")
R = TensorRef

leaf = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(
        [Torch("torch.float32"), Torch("..."), R(0), slice(None, 2, None), slice(R(0), None, None)]
    )
)
value = st.recursive(
    leaf,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=8,
)
calls = st.builds(
    lambda args, kwargs: OpCall("torch.add", (HALF,), tuple(args), tuple(sorted(kwargs.items()))),
    st.lists(value, max_size=4),
    st.dictionaries(st.text(max_size=4), value, max_size=2),
)


@given(calls)
def test_json_round_trip(call: OpCall) -> None:
    assert OpCall.from_json(json.loads(json.dumps(call.to_json()))) == call


@given(calls, calls)
def test_identity_tells_calls_apart(first: OpCall, second: OpCall) -> None:
    assert (first.identity == second.identity) == (repr(first) == repr(second))


def test_identity_reads_the_layout() -> None:
    call = OpCall("torch.neg", (HALF,), (R(0),))
    for change in ({"shape": (3, 2)}, {"stride": (1, 2)}, {"offset": 1}, {"dtype": "torch.bfloat16"}):
        other = dataclasses.replace(call, tensors=(dataclasses.replace(HALF, **change),))
        assert other.identity != call.identity


@pytest.mark.parametrize("model", ["llama", "vit", "t5"])
def test_what_render_prints_is_the_same_call(traces: dict[str, Trace], model: str) -> None:
    for op in traces[model].ops:
        call = op.call
        names = tensor_names(call)
        mode = FakeTensorMode()
        recorder = Recorder(Values(mode))
        with mode:
            scope = dict(zip(names, empty_tensors(call.tensors), strict=True))
            with recorder:
                eval(render(call, names), {"torch": torch}, scope)
        (found,) = recorder.ops
        bare = dataclasses.replace(
            call, tensors=tuple(dataclasses.replace(t, offset=0) for t in call.tensors)
        )
        assert found.call.identity == bare.identity


@pytest.mark.parametrize("model", ["llama", "vit", "t5"])
def test_every_recorded_call_replays_alone_and_in_float64(traces: dict[str, Trace], model: str) -> None:
    for op in traces[model].ops:
        with FakeTensorMode():
            narrow = replay(op.call, empty_tensors(op.call.tensors))
            wide_call = float64(op.call)
            wide = replay(wide_call, empty_tensors(wide_call.tensors))
        for left, right in zip(_tensors(narrow), _tensors(wide), strict=True):
            assert left.shape == right.shape
            # Without anything floating to widen, the result has PyTorch's default dtype.
            floats = wide_call != op.call
            expected = torch.float64 if left.is_floating_point() and floats else left.dtype
            assert right.dtype == expected, op.call.identity


def _tensors(result: object) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def test_float64_widens_what_is_floating() -> None:
    softmax = OpCall("torch.softmax", (HALF,), (R(0), -1), (("dtype", Torch("torch.float32")),))
    assert float64(softmax).kwargs == (("dtype", Torch("torch.float64")),)
    assert float64(OpCall("torch.Tensor.half", (HALF,), (R(0),))).name == "torch.Tensor.double"
    to_int = OpCall("torch.Tensor.to", (HALF,), (R(0), Torch("torch.int64")))
    assert float64(to_int).args == to_int.args
    bits = OpCall("torch.Tensor.view", (HALF,), (R(0), Torch("torch.int16")))
    assert float64(bits) == bits


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (OpCall("torch.nn.functional.silu", (HALF,), (R(0),)), "torch.nn.functional.silu(x)"),
        (OpCall("torch.Tensor.__getitem__", (HALF,), (R(0), (Torch("..."), slice(None, 64)))), "x[..., :64]"),
        (OpCall("torch.Tensor.__getitem__", (HALF,), (R(0), (slice(None, None, 2),))), "x[::2,]"),
        (OpCall("torch.Tensor.expand", (HALF,), (R(0), -1, 3)), "x.expand(-1, 3)"),
        (OpCall("torch.Tensor.mT", (HALF,), (R(0),)), "x.mT"),
        (OpCall("torch.add", (HALF,), (R(0), float("-inf"))), 'torch.add(x, float("-inf"))'),
    ],
)
def test_render_reads_like_python(call: OpCall, text: str) -> None:
    assert render(call, ["x"]) == text


def test_tensors_are_named_after_parameters() -> None:
    linear = OpCall("torch.nn.functional.linear", (HALF, HALF, HALF), (R(0), R(1), R(2)))
    assert tensor_names(linear) == ("input", "weight", "bias")
    cat = OpCall("torch.cat", (HALF, HALF), ((R(0), R(1)),))
    assert tensor_names(cat) == ("tensors0", "tensors1")
    assert tensor_names(OpCall("torch.add", (HALF,), (R(0), R(0)))) == ("input",)


@given(st.text(max_size=30))
@settings(max_examples=50)
def test_names_that_lead_nowhere_are_refused(name: str) -> None:
    with pytest.raises(UnknownOp):
        replay(OpCall(f"torch.{name}!", (), ()), [])


@pytest.mark.parametrize("name", ["os.system", "torch.os.system", "torch.float32", "torch"])
def test_only_functions_of_torch_are_called(name: str) -> None:
    with pytest.raises(UnknownOp):
        replay(OpCall(name, (), ("true",)), [])
