"""What a pass leaves behind is valid IR, and a pass that breaks this rule is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f64

from tracer.lower import lowering
from tracer.lower.edit import operations, retype
from tracer.lower.errors import PassError
from tracer.lower.lowering import pipeline
from tracer.lower.manager import Job, run_passes

POINTERS = {"in_ptr0": "*fp16", "out_ptr0": "*fp16"}
VALUES = {"x0_size": 64, "X0_BLOCK": 16, "CORES": 2}


@dataclass(frozen=True)
class Spoil:
    """Constants of a type that they do not have."""

    name: ClassVar[str] = "spoil"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Break the module."""
        for op in operations(module):
            if isinstance(op, arith.ConstantOp):
                retype(op.result, f64)


@pytest.fixture
def product_path(monkeypatch) -> None:
    """Verification as outside of tests."""
    monkeypatch.setattr(lowering, "run_passes", run_passes)


@pytest.mark.usefixtures("product_path")
@pytest.mark.parametrize("position", [0, -2, -1])
def test_the_pass_that_breaks_the_module_is_named(monkeypatch, lowered, position: int):
    passes = list(pipeline())
    passes.insert(position % (len(passes) + 1), Spoil())
    # What comes after it keeps the damage, as if it had nothing to do.
    kept = passes[: passes.index(Spoil()) + 1]
    monkeypatch.setattr(lowering, "pipeline", lambda profile: (*kept, *pipeline()[-1:]))
    with pytest.raises(PassError, match="spoil"):
        lowered("silu", POINTERS, VALUES)


@pytest.mark.usefixtures("product_path")
def test_a_module_is_verified_once_unless_it_is_invalid(monkeypatch, lowered):
    verified = []
    verify = ModuleOp.verify
    monkeypatch.setattr(ModuleOp, "verify", lambda module: (verified.append(module), verify(module))[1])
    lowered("silu", POINTERS, VALUES)
    assert len(verified) == 2, "what is read, and what is written"
    assert verified[0] is verified[1]


def test_tests_verify_after_every_pass(monkeypatch, lowered):
    verified = []
    verify = ModuleOp.verify
    monkeypatch.setattr(ModuleOp, "verify", lambda module: (verified.append(module), verify(module))[1])
    lowered("silu", POINTERS, VALUES)
    assert len(verified) == 1 + len(pipeline())


def test_operations_are_those_of_a_walk_in_its_order(module_after):
    module = module_after("peel-tiles", "silu", POINTERS, VALUES)
    assert operations(module) == list(module.walk())
    assert len(operations(module)) > 10
