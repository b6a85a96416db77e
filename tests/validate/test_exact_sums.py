"""A float grid, sums that round nothing, and the mistakes that only such sums show."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from tracer.validate.error_bounds import ErrorBounds
from tracer.validate.exact_sums import with_exact_sums
from tracer.validate.float_grid import grid
from tracer.validate.problem import check_interpreted, interpret


@pytest.mark.parametrize(
    ("values", "step"),
    [([3.0, 1.5, 0.0], 0.5), ([4.0, -12.0], 4.0), ([2.0**-30], 2.0**-30), ([0.0], math.inf)],
)
def test_the_grid_of_a_tensor(values, step):
    assert grid(torch.tensor(values)) == step


def test_no_grid_without_finite_elements():
    assert grid(torch.tensor([1.0, math.inf])) == 0.0
    assert grid(torch.tensor([math.nan])) == 0.0


def bound_of(op, *inputs: torch.Tensor) -> float:
    mode = ErrorBounds()
    with mode:
        result = op(*inputs)
    found = mode.bound(result)
    assert found is not None
    assert (mode.exact_sums > 0) == (not float(found.max()))
    return float(found.max())


def test_sums_below_2_to_the_24_of_their_grid_are_exact():
    ones = torch.ones(2, 2**12).double()
    half = ones * 2.0**11
    odd = half * 2 + 1
    assert bound_of(lambda a, b: a @ b.T, half - 1, ones) == 0
    assert bound_of(lambda a, b: a @ b.T, odd, ones) > 0
    assert bound_of(lambda a, b: a @ b.T, odd - 1, ones * 3) == 0
    assert bound_of(lambda a: a.sum(-1), half) == 0
    assert bound_of(lambda a: a.sum(-1), odd) > 0
    assert bound_of(lambda a: a.sum(-1), ones / 3) > 0


def test_a_bias_must_lie_on_the_grid_of_the_products():
    a, b = torch.ones(2, 8).double(), torch.ones(8, 3).double()
    assert bound_of(torch.addmm, torch.ones(3).double() * 5, a, b) == 0
    assert bound_of(torch.addmm, torch.ones(3).double() / 3, a, b) > 0


MEAN = "torch.mean($0, -1, keepdim=True); $0=torch.float32[100, 4096]:[4096, 1]+0"
LINEAR = (
    "torch.nn.functional.linear($0, $1, None); $0=torch.{0}[16, 320]:[320, 1]+0;"
    " $1=torch.{0}[64, 320]:[320, 1]+0"
)
FLOAT32, FLOAT16 = LINEAR.format("float32"), LINEAR.format("float16")
DOT = 'tl.dot(tmp0, tl.trans(tmp1), tmp4, input_precision="ieee")'
DOT16 = DOT.replace("tmp4", "tmp8").replace("tmp1", "tmp2")

MUTANTS = {
    "sum in float16": (MEAN, "tl.sum(tmp0, axis=1)", "tl.sum(tmp0.to(tl.float16), axis=1).to(tl.float32)"),
    "terms read as float16": (MEAN, "tl.sum(tmp0,", "tl.sum(tmp0.to(tl.float16).to(tl.float32),"),
    "result rounded to float16": (MEAN, "[x0], tmp6", "[x0], tmp6.to(tl.float16).to(tl.float32)"),
    "divisor off by one": (MEAN, "/ r0_size", "/ (r0_size - 1)"),
    "left factor in float16": (FLOAT32, "dot(tmp0,", "dot(tmp0.to(tl.float16).to(tl.float32),"),
    "right factor in float16": (FLOAT32, "trans(tmp1)", "trans(tmp1.to(tl.float16).to(tl.float32))"),
    "accumulated in float16": (FLOAT32, DOT, f"{DOT}.to(tl.float16).to(tl.float32)"),
    "left factor in bfloat16": (FLOAT16, "dot(tmp0,", "dot(tmp0.to(tl.bfloat16).to(tl.float16),"),
    "right factor in bfloat16": (FLOAT16, "trans(tmp2)", "trans(tmp2.to(tl.bfloat16).to(tl.float16))"),
    "float16 accumulated in float16": (FLOAT16, DOT16, f"{DOT16}.to(tl.float16).to(tl.float32)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_narrower_dtype_shows(name, make_folder):
    identity, old, new = MUTANTS[name]
    folder = make_folder(identity)
    scaled = folder.scaled.problem
    problems = list(with_exact_sums(scaled))
    assert len(problems) == len(scaled.inputs)
    for problem in problems:
        (expected,) = problem.expected
        assert float((expected.allowed / expected.value.abs()).max()) <= 5.01 * 2.0**-24
        check_interpreted(problem, "T0")
    text = scaled.source.read_text()
    assert old in text
    mutant = folder.path / "mutant.py"
    mutant.write_text(text.replace(old, new))
    wrong = [dataclasses.replace(problem, source=mutant) for problem in problems]
    assert any(p.compare(interpret(p, "T0")) for p in wrong)


@pytest.mark.parametrize(
    "identity",
    [
        "torch.exp($0); $0=torch.float32[100, 33]:[33, 1]+0",
        "torch.nn.functional.softmax($0, -1); $0=torch.float32[100, 33]:[33, 1]+0",
    ],
)
def test_no_inputs_where_nothing_is_added_exactly(identity, make_folder):
    assert list(with_exact_sums(make_folder(identity).problem)) == []
