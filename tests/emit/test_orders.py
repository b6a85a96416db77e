"""Which inputs have to ascend, and which have to hold no value twice."""

from __future__ import annotations

import pytest

from tracer.capture.kernel import Buffer, CapturedOp
from tracer.emit.orders import Orders, input_orders
from tracer.emit.pieces import input_expression
from tracer.validate.call_text import parse_identity

ROWS = "$0=torch.float16[5, 60]:[60, 1]+0"


def orders(identity: str) -> Orders:
    call = parse_identity(identity)
    buffers = tuple(Buffer(f"b{n}", "input", spec) for n, spec in enumerate(call.tensors))
    return input_orders(CapturedOp(call, buffers, (), (), 0))


@pytest.mark.parametrize(
    ("call", "ascending"),
    [
        ("torch.bucketize($0, $1, right=True)", {"b1"}),
        ("torch.searchsorted($1, $0)", {"b1"}),
        ("torch.searchsorted($1, $0, sorter=$2)", {"b1", "b2"}),
        ("torch.add($0, 1)", set()),
    ],
)
def test_boundaries_ascend(call: str, ascending: set[str]):
    tensors = "$0=torch.float32[37]:[1]+0; $1=torch.float32[20]:[1]+0; $2=torch.int64[20]:[1]+0"
    found = orders(f"{call}; {tensors}")
    assert found == Orders(frozenset(ascending))


@pytest.mark.parametrize(
    ("call", "distinct"),
    [
        ("torch.sort($0)", {"b0"}),
        ("torch.argsort($0, -1)", {"b0"}),
        ("torch.topk($0, 4)", {"b0"}),
        ("torch.kthvalue($0, 3)", {"b0"}),
        ("torch.median($0, -1)", {"b0"}),
        ("torch.softmax($0, -1)", set()),
        # Documented: the order of ties stays, the first of them is found.
        ("torch.sort($0, stable=True)", set()),
        ("torch.max($0, -1)", set()),
        ("torch.argmax($0, -1)", set()),
        # Values alone are the same whatever ties do.
        ("torch.median($0)", set()),
    ],
)
def test_rows_whose_ties_have_no_order_are_distinct(call: str, distinct: set[str]):
    assert orders(f"{call}; {ROWS}") == Orders(distinct=frozenset(distinct))


def test_bools_have_no_more_than_two_values():
    assert orders("torch.sort($0); $0=torch.bool[5, 60]:[60, 1]+0") == Orders()


def test_the_orders_stand_in_the_generated_inputs():
    found = Orders(frozenset("b"), frozenset("x"))
    assert input_expression("b", None, orders=found).endswith("generator=generator, ordered=True)")
    assert input_expression("x", None, orders=found).endswith("generator=generator, distinct=True)")
    assert input_expression("y", None, orders=found).endswith("generator=generator)")
