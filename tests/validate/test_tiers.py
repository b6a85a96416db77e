"""The tiers on folders that the tool makes, and on the same folders with a mistake in them."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from tracer.errors import HarvestError
from tracer.validate import scaling, tiers
from tracer.validate.errors import (
    Disturbed,
    InterpreterFailed,
    Mismatch,
    NotCovered,
    NotSpyreShaped,
    StaleKtir,
    StaleSource,
    SurvivingControl,
)  # fmt: skip
from tracer.validate.problem import check_interpreted, magnified, turned
from tracer.validate.shape import accesses
from tracer.validate.simulate import check_simulated

SILU = "torch.nn.functional.silu($0); $0=torch.float16[3, 100]:[100, 1]+0"
LINEAR = (
    "torch.nn.functional.linear($0, $1, None); $0=torch.float16[1, 5, 300]:[1500, 300, 1]+0;"
    " $1=torch.float16[40, 300]:[300, 1]+0"
)
INDEX_COPY = (
    "torch.Tensor.index_copy_($0, 2, $1, $2); $0=torch.float16[1, 2, 32, 16]:[1024, 512, 16, 1]+0;"
    " $1=torch.int64[5]:[1]+0; $2=torch.float16[1, 2, 5, 16]:[160, 80, 16, 1]+0"
)
SOFTMAX = "torch.nn.functional.softmax($0, dim=-1); $0=torch.float32[6, 12]:[12, 1]+0"
LE = "torch.le($0, $1); $0=torch.int64[12, 1]:[1, 1]+0; $1=torch.int64[1, 12]:[12, 1]+0"
ONE = "torch.add($0, 1); $0=torch.int64[1]:[1]+0"
KTH = "torch.kthvalue($0, 3); $0=torch.float32[30]:[1]+0"
NEG_VIEW = "torch.neg($0); $0=torch.float16[2, 4, 6, 8]:[384, 16, 64, 1]+8"

ALL = [SILU, LINEAR, INDEX_COPY, SOFTMAX, LE, ONE, NEG_VIEW]


@pytest.mark.parametrize("identity", ALL, ids=lambda identity: identity.partition("(")[0])
def test_a_generated_folder_passes_every_tier(identity, make_folder):
    folder = make_folder(identity)
    tiers.check_t0(folder)
    assert tiers.check_t1(folder) > 0
    tiers.check_t2(folder)
    score = tiers.check_controls(folder)
    assert score.caught
    assert not score.survived


WRONG_TRITON = {
    "another function": (SILU, ("tl.exp", "tl.exp2"), Mismatch),
    "a constant off by a thousandth": (SILU, ("+ 1.0", "+ 1.001"), Mismatch),
    "half of K": (LINEAR, ("r0_size], strides=[in1_", "r0_size // 2], strides=[in1_"), Mismatch),
    "a sum over one lane too few": (
        SOFTMAX,
        ("tl.arange(0, R0_BLOCK) < r0_size", "tl.arange(0, R0_BLOCK) < r0_size - 1"),
        Mismatch,
    ),
    "a misspelt name": (SILU, ("tl.exp", "tl.expo"), InterpreterFailed),
}


@pytest.mark.parametrize("case", WRONG_TRITON)
def test_t0_finds_a_wrong_kernel(case, make_folder):
    identity, (old, new), error = WRONG_TRITON[case]
    with pytest.raises(error):
        tiers.check_t0(make_folder(identity, triton_kernel=(old, new)))


def source_of(folder) -> str:
    return (folder.path / "triton_kernel.py").read_text()


def test_t0_finds_a_store_beside_the_output(make_folder):
    folder = make_folder(NEG_VIEW)
    tiers.check_t0(folder)
    # The input is written through its own descriptor: nothing of the output is wrong.
    store = next(line for line in source_of(folder).splitlines() if ".store(" in line)
    tile = next(line for line in source_of(folder).splitlines() if "in0.load(" in line)
    where = tile[tile.index("load(") + 5 : tile.index("]") + 1]
    extra = f"{store}\n        in0.store({where}, -in0.load({where}))"
    with pytest.raises(Disturbed, match="input, which the op only reads"):
        tiers.check_t0(make_folder(NEG_VIEW, triton_kernel=(store, extra)))


def test_t1_wants_descriptors_only(make_folder):
    old = "    in0 = tl.make_tensor_descriptor("
    new = "    tl.load(in_ptr0)\n" + old
    with pytest.raises(NotSpyreShaped, match=r"tl\.load"):
        tiers.check_t1(make_folder(SILU, triton_kernel=(old, new)))


def test_t1_wants_no_more_programs_than_cores(make_folder):
    folder = make_folder(SILU)
    grid = folder.problem.stages[0].grid[0]
    folder = make_folder(SILU, wrapper=(f"grid=({grid},)", "grid=(33,)"))
    with pytest.raises(NotSpyreShaped, match="33 programs"):
        tiers.check_t1(folder)


def test_t1_wants_every_output_element_written(make_folder):
    folder = make_folder(SILU)
    assert "grid = [" in ktir_of(folder)
    cores = folder.problem.stages[0].grid[0]
    assert cores > 1
    smaller = make_folder(SILU, ktir=(f"grid = [{cores}]", f"grid = [{cores - 1}]"))
    text = (smaller.path / "wrapper.py").read_text()
    text = text.replace(f"grid=({cores},)", f"grid=({cores - 1},)").replace(
        f'"CORES": {cores}', f'"CORES": {cores - 1}'
    )
    (smaller.path / "wrapper.py").write_text(text)
    with pytest.raises(NotCovered, match="never written"):
        tiers.check_t1(smaller)


def ktir_of(folder) -> str:
    (path,) = folder.path.glob("*.ktir")
    return path.read_text()


def test_t1_wants_the_same_source_at_other_sizes(make_folder):
    # The size of the output as a number: right at the traced size, wrong at every other.
    folder = make_folder(SILU)
    extent = next(v for k, v in folder.problem.stages[0].args.items() if k == "x0_size")
    with pytest.raises(StaleSource, match=f"has `tiles = tl.cdiv.{extent},"):
        tiers.check_t1(
            make_folder(SILU, triton_kernel=("tiles = tl.cdiv(x0_size,", f"tiles = tl.cdiv({extent},"))
        )


def test_t1_finds_a_softmax_that_overflows(make_folder):
    old = next(line for line in source_of(make_folder(SOFTMAX)).splitlines() if "tl.max(" in line)
    name = old.split()[0]
    folder = make_folder(SOFTMAX, triton_kernel=(old, f"{old}\n        {name} = -{name}"))
    tiers.check_t0(folder)
    folder = make_folder(SOFTMAX)
    problem = magnified(folder.scaled.problem)
    check_interpreted(problem, "T1")
    problem.source.write_text(source_of(folder).replace(old, f"{old}\n        {name} = -{name}"))
    with pytest.raises(Mismatch, match="nan"):
        check_interpreted(problem, "T1")


ATTENTION = (
    "torch.nn.functional.multi_head_attention_forward($0, $1, $1, 64, 4, $2, $3, None, None, False, 0.0, $4,"
    " $5, training=False); $0=torch.float16[1, 1, 64]:[64, 64, 1]+0; $1=torch.float16[20, 1, 64]:[64, 64,"
    " 1]+0; $2=torch.float16[192, 64]:[64, 1]+0; $3=torch.float16[192]:[1]+0; $4=torch.float16[64,"
    " 64]:[64, 1]+0; $5=torch.float16[64]:[1]+0"
)
GET_ROWS = "torch.Tensor.__getitem__($0, $1); $0=torch.float16[100, 64]:[64, 1]+0; $1=torch.int64[12]:[1]+0"
EMBEDDING = (
    "torch.nn.functional.embedding($0, $1); $0=torch.int64[12]:[1]+0; $1=torch.float16[100, 64]:[64, 1]+0"
)


def test_t1_counts_indices_from_the_end_where_the_op_takes_them(make_folder):
    folder = make_folder(GET_ROWS)
    (indices,) = (t for t in folder.scaled.problem.inputs.values() if t.dtype == torch.int64)
    assert bool((indices < 0).any())
    assert bool((indices >= 0).any())
    tiers.check_t1(folder)


def test_t1_counts_no_index_from_the_end_where_the_op_refuses(make_folder):
    folder = make_folder(EMBEDDING)
    (indices,) = (t for t in folder.scaled.problem.inputs.values() if t.dtype == torch.int64)
    assert bool((indices >= 0).all())
    tiers.check_t1(folder)


def test_t1_finds_a_wrap_around_by_the_traced_extent(make_folder):
    folder = make_folder(GET_ROWS)
    problem = folder.scaled.problem
    problem.source.write_text(source_of(folder).replace("tmp0 + in1_size_d0", "tmp0 + 100"))
    with pytest.raises((Mismatch, InterpreterFailed, Disturbed)):
        check_interpreted(problem, "T1")
    with pytest.raises(StaleSource, match=r"makes `.*in1_size_d0"):
        tiers.check_t1(make_folder(GET_ROWS, triton_kernel=("tmp0 + in1_size_d0", "tmp0 + 100")))


def test_t1_compares_the_cores(make_folder):
    folder = make_folder(LINEAR)
    assert not isinstance(folder.scaled, str)
    problem = folder.scaled.problem
    tiers.check_cores(problem)
    broken = problem.source.read_text().replace("tl.program_id(0)", "tl.program_id(0) * 2")
    problem.source.write_text(broken)
    with pytest.raises(HarvestError):
        tiers.check_cores(problem)


def test_t2_finds_a_wrong_ktir(make_folder):
    folder = make_folder(SILU, ktir=("math.exp ", "math.exp2 "))
    with pytest.raises(Mismatch):
        check_simulated(folder.problem, folder.modules)


def test_t2_names_the_line_that_is_not_what_the_source_lowers_to(make_folder):
    folder = make_folder(SILU, ktir=("math.exp ", "math.exp2 "))
    lines = next(folder.path.glob("*.ktir")).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "math.exp2" in line)
    with pytest.raises(
        StaleKtir, match=rf"\.ktir:{number} has .*exp2.* lowers to .*exp.*; T2: 300 of 300"
    ) as caught:
        tiers.check_t2(folder)
    assert isinstance(caught.value.__cause__, Mismatch)


def test_t2_wants_the_ktir_of_this_source(make_folder):
    folder = make_folder(SILU, triton_kernel=("tl.exp(", "tl.exp2("))
    with pytest.raises(StaleKtir, match=r"math\.exp2"):
        tiers.check_t2(folder)


def test_t2_wants_the_ktir_of_this_source_also_where_it_is_run_at_a_reduced_size(make_folder, monkeypatch):
    folder = make_folder(SILU, ktir=("math.exp ", "math.exp2 "))
    monkeypatch.setattr(type(folder), "is_large", True)
    with pytest.raises(StaleKtir, match=r"math\.exp2"):
        tiers.check_t2(folder)


def test_t2_tells_of_text_that_is_no_ktir(make_folder):
    folder = make_folder(SILU, ktir=("ktdp.store", "ktdp.stow"))
    with pytest.raises(StaleKtir, match=r"ktdp\.stow.*parser"):
        tiers.check_t2(folder)


def test_a_comparison_that_accepts_anything_is_told(make_folder, monkeypatch):
    folder = make_folder(SILU)
    monkeypatch.setattr("tracer.validate.problem.difference", lambda expected, got: "")
    with pytest.raises(SurvivingControl, match="zeros, untouched"):
        tiers.check_controls(folder)


def test_a_dropped_contribution_shows_in_an_op_of_many_steps(make_folder):
    # Projections, softmax, projection: unscaled weights saturate the softmax, and bounds swallow a bias.
    score = tiers.check_controls(make_folder(ATTENTION))
    assert not score.survived
    assert {"zeroed x5", "permuted x5", "zeroed query"} <= set(score.caught)
    assert sum(name.startswith("half of") for name in score.caught) >= 6


def test_half_of_a_row_shows_wherever_the_selected_element_is(make_folder):
    problem = make_folder(KTH).problem
    [place] = [e.value for e in problem.expected if e.value.dtype == torch.int64]
    [other] = [e.value for e in turned(problem).expected if e.value.dtype == torch.int64]
    assert int(place) + int(other) == 29
    score = tiers.check_controls(make_folder(KTH))
    assert sum(name.startswith("half of") for name in score.caught) == 2


@pytest.mark.parametrize("op", ["max", "min"])
def test_half_of_a_row_shows_where_the_extreme_is_in_both(make_folder, op):
    folder = make_folder(f"torch.{op}($0); $0=torch.int64[2000]:[1]+0")
    [row] = folder.problem.inputs.values()
    assert getattr(row, op)() == getattr(row[:1000], op)() == getattr(row[1000:], op)()
    assert any(name.startswith("half of r0") for name in tiers.check_controls(folder).caught)


def test_an_integer_divisor_is_never_zero_and_its_zeros_are_no_control(make_folder):
    spec = "torch.int64[6, 200]:[200, 1]+0"
    folder = make_folder(f"torch.floor_divide($0, $1); $0={spec}; $1={spec}")
    score = tiers.check_controls(folder)
    excluded = {name: why for name, why in score.excluded.items() if name.startswith("zeroed")}
    assert list(excluded.values()) == ["the op does not take it: RuntimeError"]
    assert score.survived == []
    found = folder.scaled
    assert isinstance(found, scaling.Scaled)
    assert sum(bool((tensor == 0).any()) for tensor in found.problem.inputs.values()) <= 1


def test_a_size_that_no_memory_holds_is_passed_over(make_folder):
    # 8 is a size of the input, of the output, and how often an element is repeated.
    tensor = "$0=torch.float32[2, 33, 1, 64]:[2112, 1, 2112, 33]+0"
    found = make_folder(f"torch.repeat_interleave($0, 8, dim=2, output_size=8); {tensor}").scaled
    assert isinstance(found, scaling.Scaled)
    taken = sum(math.prod(shape) * dtype.itemsize for shape, _, dtype in found.problem.layouts.values())
    assert taken <= scaling.LARGEST


def test_a_kernel_of_a_wide_buffer_has_a_smaller_size_that_deals_its_tiles_alike(make_folder):
    # 2.1 GB of weights, of which a core reaches its own part: at the size of a test they are not wide.
    found = make_folder(
        "torch.nn.functional.linear($0, $1, None); $0=torch.float16[3, 4096]:[4096, 1]+0; "
        "$1=torch.float16[256000, 4096]:[4096, 1]+0"
    ).scaled
    assert isinstance(found, scaling.Scaled)
    assert "tl.minimum(first + core_tiles, tiles)" in found.kernels[0].source
    assert sum(math.prod(shape) for shape, _, _ in found.problem.layouts.values()) < 10**8


def test_addresses_may_depend_on_floats(make_folder):
    tensors = "$0=torch.float32[1, 1, 4, 5]:[20, 20, 5, 1]+0; $1=torch.float32[1, 2, 3, 2]:[12, 6, 2, 1]+0"
    folder = make_folder(f"torch.nn.functional.grid_sample($0, $1, align_corners=False); {tensors}")
    [cover] = accesses(folder.problem, folder.modules)
    assert set(cover.reads) == {0, 1}


def test_controls_that_are_no_mistake_are_left_out(make_folder):
    score = tiers.check_controls(make_folder(ONE))
    assert "permuted input" in score.excluded
    assert "half a reduction" in score.excluded
    score = tiers.check_controls(make_folder(LINEAR))
    assert any(name.startswith("half of r0") for name in score.caught)
    assert str(score) == "7/7"


def test_evidence_names_what_it_was_taken_on(make_folder):
    from tracer.emit.digest import folder_digest
    from tracer.validate import validate_folder

    folder = make_folder(SILU)
    found = validate_folder(folder.path)
    assert found.passed
    data = found.to_json()
    assert data["T0"]["interpreter"] == {"status": "pass", "digest": folder_digest(folder.path)}
    assert data["T1"]["status"] == data["T2"]["builtin"]["status"] == data["controls"]["status"] == "pass"
    assert data["controls"]["score"] == "4/4"
    assert data["T1"]["lx_bytes"] > 0
    merged = found.merged(
        {"T0": {"gpu": {"status": "pass"}, "interpreter": {"status": "fail"}}, "T3": {"by": "x"}}
    )
    assert merged["T0"]["gpu"] == {"status": "pass"}
    assert merged["T0"]["interpreter"]["status"] == "pass"
    assert merged["T3"] == {"by": "x"}


def test_evidence_of_a_wrong_folder_is_a_failure_with_a_code(make_folder):
    from tracer.validate import validate_folder

    found = validate_folder(make_folder(SILU, triton_kernel=("tl.exp", "tl.exp2")).path)
    assert not found.passed
    assert found.t0_interpreter.status == "fail"
    assert found.t0_interpreter.reason.startswith("HV601 ")
    found = validate_folder(make_folder(SILU, wrapper=("BUFFERS =", "BUFFER =")).path)
    assert found.t2_builtin.status == "fail"


def test_public_simulator_says_what_it_cannot_run(make_folder):
    from tracer.validate.public_simulator import unsupported

    assert unsupported(make_folder(LE).problem) == "ktir_cpu takes no arguments of torch.bool"
    assert unsupported(make_folder(SILU).problem) == ""


def test_a_size_whose_run_takes_long_is_passed_over(make_folder, monkeypatch):
    identity = "torch.nn.functional.silu($0); $0=torch.float16[3, 700]:[700, 1]+0"
    first = make_folder(identity).scaled
    steps = scaling._steps(first)
    monkeypatch.setattr(scaling, "STEPS", 0)
    shortest = make_folder(identity).scaled
    assert 0 < scaling._steps(shortest) <= steps
    wide = dataclasses.replace(
        first.problem.stages[0], args={**first.problem.stages[0].args, "x0_size": 10**6}
    )
    problem = dataclasses.replace(first.problem, stages=(wide,))
    assert scaling._steps(dataclasses.replace(first, problem=problem)) > 100 * steps


BATCH_NORM = (
    "torch.nn.functional.batch_norm($0, $1, $2, training=True); $0=torch.float32[2, 6, 12]:[72, 12, 1]+0;"
    " $1=torch.float32[6]:[1]+0; $2=torch.float32[6]:[1]+0"
)


def test_inputs_that_an_op_writes_beside_its_result_are_compared(make_folder):
    folder = make_folder(BATCH_NORM)
    assert len(folder.problem.outputs) == 3
    tiers.check_t0(folder)
    tiers.check_t2(folder)
    tiers.check_controls(folder)


def test_a_wrong_input_beside_the_result_is_found(make_folder):
    with pytest.raises(Mismatch):
        tiers.check_t0(make_folder(BATCH_NORM, triton_kernel=(" * 0.1", " * 0.2")))
