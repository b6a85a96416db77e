"""What is recorded, under which name, as what."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

from tracer.models.number import number
from tracer.models.op_call import OpCall, TensorRef
from tracer.models.record import RecordedOp, Recorder
from tracer.models.values import Values


def record(
    run: Callable[..., object], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float16
) -> list[RecordedOp]:
    mode = FakeTensorMode()
    recorder = Recorder(Values(mode))
    with mode:
        tensors = [torch.empty(shape, dtype=dtype) for shape in shapes]
        with recorder:
            run(*tensors)
    return list(recorder.ops)


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (torch.add, "torch.add"),
        (operator.add, "torch.add"),
        (lambda x, y: x.add(y), "torch.add"),
        (lambda x, y: torch.Tensor.__add__(x, y), "torch.add"),
        (lambda x, y: x / y, "torch.div"),
        (lambda x, y: x @ y, "torch.matmul"),
        (lambda x, y: x.where(x > 0, y), "torch.Tensor.where"),
        (operator.iadd, "torch.Tensor.add_"),
        (lambda x, y: x.copy_(y), "torch.Tensor.copy_"),
    ],
)
def test_one_name_for_one_op(run: Callable[..., object], name: str) -> None:
    assert record(run, (4, 4), (4, 4))[-1].call.name == name


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (lambda x: 2 - x, "torch.rsub"),
        (lambda x: 2 * x, "torch.mul"),
        (lambda x: -x, "torch.neg"),
        (lambda x: x.permute(1, 0), "torch.permute"),
        (lambda x: torch.nn.functional.silu(x), "torch.nn.functional.silu"),
        (lambda x: x[..., :2], "torch.Tensor.__getitem__"),
        (lambda x: x.mT, "torch.Tensor.mT"),
        (lambda x: x.to(torch.float32), "torch.Tensor.to"),
    ],
)
def test_names_of_unary_calls(run: Callable[..., object], name: str) -> None:
    (op,) = record(run, (4, 4))
    assert op.call.name == name


def test_packed_and_loose_dims_are_one_call() -> None:
    (op,) = record(lambda x: (x.permute(1, 0), torch.permute(x, (1, 0))), (4, 4))
    assert (op.count, op.call.args) == (2, (TensorRef(0), (1, 0)))


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda x: x.view(16), "view"),
        (lambda x: x.t().contiguous(), "compute"),
        (lambda x: x.contiguous(), "view"),
        (lambda x: x.reshape(2, 8), "view"),
        (lambda x: x.chunk(2), "view"),
        (lambda x: torch.nn.functional.dropout(x, training=False), "view"),
        (lambda x: x.to(torch.float16), "view"),
        (lambda x: x.to(torch.float32), "compute"),
        (lambda x: x.add_(1), "compute"),
        (lambda x: x.__setitem__(0, 1.0), "compute"),
        (lambda x: torch.empty(0, 4), "view"),
        (lambda x: torch.zeros(4), "compute"),
    ],
)
def test_views_are_told_from_storages(run: Callable[..., object], kind: str) -> None:
    assert record(run, (4, 4))[-1].kind == kind


def test_queries_are_not_ops() -> None:
    assert (
        record(lambda x: (x.shape, x.dim(), x.size(0), x.is_floating_point(), x.dtype, len(x)), (4, 4)) == []
    )


def test_defaults_and_devices_say_nothing() -> None:
    ops = record(
        lambda i, w: (
            torch.nn.functional.embedding(i, w),
            torch.nn.functional.embedding(i, w, None, None, 2.0, False, False),
            torch.nn.functional.embedding(input=i, weight=w, max_norm=None),
        ),
        (3,),
        (4, 4),
        dtype=torch.int64,
    )
    assert ops[0].call.kwargs == ()
    (plain, placed) = (record(lambda: torch.arange(4)), record(lambda: torch.arange(4, device="cpu")))
    assert plain[0].call == placed[0].call


def test_one_tensor_twice_is_one_tensor() -> None:
    (op,) = record(lambda x: x * x, (4, 4))
    assert (op.call.args, len(op.call.tensors)) == ((TensorRef(0), TensorRef(0)), 1)


def test_layout_is_that_before_the_call() -> None:
    (op,) = record(lambda x: x.t_(), (4, 2))
    assert op.call.tensors[0].shape == (4, 2)


def test_strides_and_offsets_are_recorded() -> None:
    _, op = record(lambda x: -x[1:, 2:], (4, 4))
    assert (op.call.tensors[0].stride, op.call.tensors[0].offset) == ((4, 1), 6)


def test_an_argument_without_spelling_refuses_its_call() -> None:
    (op,) = record(lambda: torch.rand(3, generator=torch.Generator()))
    assert op.refusal is not None
    assert op.refusal.code == "HV109"
    assert record(lambda: torch.zeros(3))[0].refusal is None


def test_sizes_read_from_tensors_become_numbers() -> None:
    mode = FakeTensorMode()
    values = Values(mode)
    recorder = Recorder(values)
    with mode:
        with values:
            count = torch.tensor(5)
        with recorder:
            made = torch.ones(1, count)
    assert made.shape == (1, 5)
    assert recorder.ops[0].call.args == (1, 5)


def test_numbers_are_stable() -> None:
    calls = [OpCall("torch.zeros", (), (n,)) for n in range(3)]
    first = number(calls)
    assert list(first.values()) == ["torch.zeros.1", "torch.zeros.2", "torch.zeros.3"]
    new = OpCall("torch.zeros", (), (9,))
    again = number([new, *reversed(calls)], first)
    assert {i: again[i] for i in first} == first
    assert again[new.identity] == "torch.zeros.4"
    assert number([new]) == {new.identity: "torch.zeros.1"}


def test_a_number_is_never_given_twice() -> None:
    gone, kept = OpCall("torch.zeros", (), (1,)), OpCall("torch.zeros", (), (2,))
    known = {gone.identity: "torch.zeros.7"}
    assert number([kept], known)[kept.identity] == "torch.zeros.8"


@pytest.mark.parametrize(
    ("run", "refused"),
    [
        (lambda x: x.mul_(x.T), True),
        (lambda x: x[:, :5].add_(x[:, 3:]), True),
        (lambda x: x[:, :4].add_(x[:, 4:]), False),
        (lambda x: x.mul_(x), False),
        (lambda x: x.mul(x.T), False),
    ],
)
def test_a_call_that_overwrites_what_another_argument_reads_is_refused(run: Callable, refused: bool):
    ops = [op for op in record(run, (8, 8)) if op.kind == "compute"]
    assert [op.refusal is not None and op.refusal.code == "HV111" for op in ops] == [refused]


def test_bounds_of_a_range_may_be_tensors_of_known_value() -> None:
    def run() -> torch.Tensor:
        start = torch.full((), 3, dtype=torch.int64)
        return torch.arange(start, start + 2)

    (call,) = [op.call for op in record(run) if op.call.name == "torch.arange"]
    assert (call.args, call.tensors) == ((3, 5), ())


def test_an_item_changed_in_place_is_one_op_and_no_copy_onto_itself() -> None:
    def halve(x: torch.Tensor) -> None:
        x[..., 0] *= 0.5

    ops = record(halve, (4, 2))
    assert [(op.call.name, op.kind, op.refusal) for op in ops] == [
        ("torch.Tensor.__getitem__", "view", None),
        ("torch.Tensor.mul_", "compute", None),
        ("torch.Tensor.__setitem__", "view", None),
    ]


def test_a_copy_between_overlapping_parts_is_refused() -> None:
    def shift(x: torch.Tensor) -> None:
        x[1:] = x[:-1]

    (copy,) = [op for op in record(shift, (4, 2)) if op.call.name == "torch.Tensor.__setitem__"]
    assert copy.kind == "compute"
    assert copy.refusal is not None
    assert copy.refusal.code == "HV111"


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (lambda x: torch.bincount(x, minlength=8), "torch.bincount"),
        (lambda x: x[x > 0], "torch.Tensor.__getitem__"),
        (lambda x: torch.nonzero(x), "torch.nonzero"),
    ],
)
def test_a_call_whose_shape_is_unknown_is_recorded_before_the_trace_ends(run: Callable, name: str) -> None:
    mode = FakeTensorMode()
    recorder = Recorder(Values(mode))
    with mode:
        x = torch.empty(30, dtype=torch.int64)
        with recorder, pytest.raises(DynamicOutputShapeException):
            run(x)
    op = recorder.ops[-1]
    assert (op.call.name, op.kind, op.call.tensors[0].shape) == (name, "compute", (30,))
    assert op.refusal is not None
    assert op.refusal.code == "HV115"


def test_a_shape_that_follows_from_known_values_is_no_refusal() -> None:
    ops = record(lambda: torch.bincount(torch.arange(5), minlength=8))
    assert [(op.call.name, op.refusal) for op in ops] == [("torch.arange", None), ("torch.bincount", None)]
