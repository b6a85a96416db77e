"""The text of generated kernels, one golden file for every form (`pytest --snapshot-update` renews them)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from tracer.ktir.simulator import Module
from tracer.lower import lower
from tracer.rewrite import SpyreKernel
from tracer.rewrite.layout import WIDTH
from tracer.target import SPYRE

GOLDEN = Path(__file__).parents[1] / "golden" / "rewrite"
LONG, SINGLE, BOOL = torch.int64, torch.float32, torch.bool


class KernelFiles(SingleFileSnapshotExtension):
    """One Python file per case."""

    _write_mode = WriteMode.TEXT
    file_extension = "py"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(GOLDEN)

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: int | str = 0) -> str:
        return str(test_location.snapshot_name).split("[")[1].rstrip("]")


@pytest.fixture
def kernel_files(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(KernelFiles)


def tensor(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


HEADS = tensor(1, 12, 32, 128).transpose(1, 2)

CASES: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "pointwise": (F.silu, (tensor(1, 12, 14336),)),
    "broadcast": (torch.mul, (HEADS, tensor(1, 1, 12, 128))),
    "transpose_copy": (lambda x: x.transpose(1, 2).contiguous(), (tensor(1, 32, 12, 128),)),
    "cat_stage": (lambda a, b: torch.cat((a, b), -1), (tensor(1, 32, 12, 64), tensor(1, 32, 12, 64))),
    "whole_reduction": (lambda x: x.sum(), (tensor(400, 100, dtype=SINGLE),)),
    "looped_reduction": (lambda x: F.softmax(x, -1), (tensor(2, 1_000_000),)),
    "softmax": (lambda x: F.softmax(x, -1, dtype=SINGLE), (tensor(1, 32, 12, 12),)),
    "mean": (lambda x: x.mean(-1, keepdim=True), (tensor(1, 12, 4096, dtype=SINGLE),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (768,), w, b), (tensor(4, 768), tensor(768), tensor(768))),
    "linear": (F.linear, (tensor(1, 12, 4096), tensor(1024, 4096))),
    "linear_bias": (F.linear, (tensor(12, 500), tensor(100, 500), tensor(100))),
    "bmm": (torch.matmul, (HEADS, tensor(1, 32, 128, 12))),
    "decode_matvec": (F.linear, (tensor(1, 1, 4096), tensor(1024, 4096))),
    "embedding": (F.embedding, (tensor(1, 12, dtype=LONG), tensor(128_256, 4096))),
    "index_copy_": (
        lambda c, i, v: c.index_copy_(2, i, v),
        (tensor(1, 8, 2048, 128), tensor(12, dtype=LONG), tensor(1, 12, 8, 128).transpose(1, 2)),
    ),
    "gather": (lambda x, i: x.gather(1, i), (tensor(4, 100), tensor(4, 7, dtype=LONG))),
    "pad": (lambda x: F.pad(x, (1, 2, 1, 0)), (tensor(2, 3, 10, 20),)),
    "roll": (lambda x: x.roll(3, 1), (tensor(2, 10, 20),)),
    "flip": (lambda x: x.flip(-1), (tensor(4, 100),)),
    "argmax": (lambda x: x.argmax(-1), (tensor(4, 1000),)),
    "cumsum": (lambda x: x.cumsum(-1), (tensor(4, 1000, dtype=SINGLE),)),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding=1), (tensor(1, 8, 30), tensor(6, 8, 3), tensor(6))),
    "bool_output": (torch.le, (tensor(12, 1, dtype=LONG), tensor(1, 12, dtype=LONG))),
    "bool_input": (torch.where, (tensor(12, 12, dtype=BOOL), tensor(12, 12), tensor(12, 12))),
    "arange": (lambda: torch.arange(3, 4000, 4), ()),
    "constant": (lambda: torch.zeros(1, 8, 2048, 128, dtype=torch.float16), ()),
    "cross_entropy": (F.cross_entropy, (tensor(4, 33, dtype=SINGLE), tensor(4, dtype=LONG))),
    "rank_six": (lambda x: x.permute(5, 2, 0, 3, 1, 4).contiguous(), (tensor(2, 3, 2, 3, 2, 3),)),
}


def text_of(kernels: tuple[SpyreKernel, ...]) -> str:
    """A module of all kernels of an op; above each, what its parameters are."""
    parts = ["import triton\nimport triton.language as tl\n"]
    if any("libdevice." in kernel.source for kernel in kernels):
        parts[0] += "from triton.language.extra import libdevice\n"
    for kernel in kernels:
        values = [f"#   {p.name}: {p.type} = {p.value}" for p in kernel.parameters]
        parts.append("\n".join(["", f"# grid ({kernel.grid},)", *values, kernel.source]))
    return "\n".join(parts)


@pytest.mark.filterwarnings("ignore:.*Can not relate snapshot")
@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, rewritten: Callable, kernel_files: SnapshotAssertion):
    function, tensors = CASES[name]
    text = text_of(rewritten(function, *tensors))
    ast.parse(text)
    assert all(len(line) <= WIDTH for line in text.splitlines() if not line.startswith("#"))
    assert text == kernel_files


def test_every_golden_file_has_a_case():
    assert {path.stem for path in GOLDEN.glob("*.py")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_all_memory_goes_through_descriptors(name: str, rewritten: Callable):
    function, tensors = CASES[name]
    for kernel in rewritten(function, *tensors):
        called = {ast.unparse(n.func) for n in ast.walk(ast.parse(kernel.source)) if isinstance(n, ast.Call)}
        assert "tl.make_tensor_descriptor" in called
        assert not called & {"tl.load", "tl.store", "tl.make_block_ptr", "tl.num_programs"}


def whole(*shape: int, dtype: torch.dtype = LONG) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


# What lowers to wider values than the kernel names: sums of booleans, narrow integers, element numbers,
# permuted and broadcast operands, running results.
PASSING: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "all of one row": (torch.all, (tensor(524_288, dtype=BOOL),)),
    "any of rows": (lambda x: x.any(-1), (tensor(40, 70_000, dtype=BOOL),)),
    "sign of bytes": (torch.sign, (whole(300, 3300, dtype=torch.int8),)),
    "remainder of bytes": (lambda x: torch.remainder(x, 3), (whole(300, 3300, dtype=torch.int8),)),
    "argmin of columns": (lambda x: x.argmin(1), (tensor(4, 3300, 50),)),
    "cumsum of columns": (lambda x: x.cumsum(1), (tensor(4, 3300, 50),)),
    "sum of 0 and 2": (lambda x: x.sum((0, 2)), (tensor(50, 70, 110),)),
    "transposed add": (torch.add, (tensor(3000, 2000), tensor(2000, 3000).t())),
    "outer comparison": (torch.le, (whole(1200, 1), whole(1, 1200))),
    "softmax of columns": (lambda x: F.softmax(x, 1), (tensor(4, 3300, 50),)),
}


@pytest.mark.parametrize("name", [*CASES, *PASSING])
def test_the_plan_bounds_the_scratchpad(name: str, rewritten: Callable):
    function, tensors = (CASES | PASSING)[name]
    for kernel in rewritten(function, *tensors):
        high_water, _ = Module.parse(lower(kernel).text).function(kernel.name).peak
        assert 0 <= high_water <= kernel.plan.lx_bytes <= SPYRE.lx_bytes


def test_no_scalar_is_reduced(rewritten: Callable):
    source = rewritten(F.cross_entropy, *CASES["cross_entropy"][1])[-1].source
    assert "tmp17 = tmp17 + tmp13" in source


def test_a_scalar_index_is_a_tensor_where_it_is_cast(source_of: Callable):
    # Triton's interpreter counts in Python integers, which have no `.to`.
    source = source_of(lambda x: F.interpolate(x, size=(5, 7)), torch.empty(1, 2, 8, 8))
    assert "tl.full([], x" in source
    assert not re.search(r"\bx\d\.to\(", source)


def test_a_padded_lane_of_bfloat16_is_bfloat16_again(source_of: Callable):
    # Lanes are summed in float32; what follows (a dot, say) takes the dtype that memory has.
    source = source_of(torch.neg, torch.empty(64, 2, dtype=torch.bfloat16)[:, 1])
    assert re.search(r"tl\.sum\(in0\.load\(.*\)\.to\(tl\.float32\), axis=1\)\.to\(tl\.bfloat16\)", source)


def test_regions_say_which_part_of_the_output_they_make(source_of: Callable):
    comments = [line.strip() for line in source_of(*flat("pad")).splitlines() if "# Region" in line]
    assert comments == [
        "# Region x: out0[:, :, : x2_size] = 0.0",
        "# Region y: out0[:, :, out0_2_start_y2 : out0_2_start_y2 + y2_size] from in0",
        "# Region z: out0[:, :, out0_3_start_z2 : out0_3_start_z2 + z2_size] = 0.0",
    ]


def test_one_region_needs_no_comment(source_of: Callable):
    assert "#" not in source_of(*flat("pointwise"))


def test_padded_lanes_are_explained_once(source_of: Callable):
    source = source_of(*flat("gather"))
    assert source.count("tl.sum(in") == 2
    assert source.count("and the sum drops them") == source.count("past the one element are clipped") == 1


def test_a_wrap_around_is_explained(source_of: Callable):
    lines = [line.strip() for line in source_of(*flat("index_copy_")).splitlines()]
    assert lines[lines.index("# A negative index counts from the end.") + 1] == "tmp2 = tmp0 + out0_size_d1"
    assert "# A negative" not in source_of(*flat("embedding"))


def test_a_tile_number_is_divided_once_per_axis(source_of: Callable):
    source = source_of(*flat("rank_six"))
    assert "outer_x4 = outer_x5 // x4_tiles" in source
    assert not re.search(r"//.*//", source)


def test_an_accumulator_of_other_dims_has_its_own_name(source_of: Callable):
    source = source_of(*flat("decode_matvec"))
    assert "acc = tl.dot(" in source
    assert re.search(r"tmp\d+ = tl.reshape\(acc, ", source)


def test_a_clamped_coordinate_has_a_name_and_the_mask_names_the_same_ends(source_of: Callable):
    source = source_of(lambda x: F.pad(x, (0, 0, 3, 2)), tensor(2, 10, 32))
    assert "in0_x1 = tl.minimum(tl.maximum(x1 - in0_low_x1, 0), in0_size_x1 - 1)" in source
    assert "x1 >= in0_low_x1" in source
    assert "x1 < in0_low_x1 + in0_size_x1" in source
    assert "in0.load([x0, in0_x1, x2])" in source


def test_an_axis_is_clamped_only_where_it_leaves_the_buffer(source_of: Callable):
    before = source_of(lambda x: F.pad(x, (0, 0, 3, 0)), tensor(2, 10, 32))
    assert "in0_x1 = tl.maximum(x1 - in0_low_x1, 0)" in before
    behind = source_of(lambda x: F.pad(x, (0, 0, 0, 2)), tensor(2, 10, 32))
    assert "in0_x1 = tl.minimum(x1, in0_size_x1 - 1)" in behind
    assert "in0_low" not in behind


def test_a_loop_keeps_the_dtype_that_triton_widens(rewritten: Callable):
    x = torch.randint(-128, -3, (3, 300_001), generator=torch.Generator().manual_seed(5)).to(torch.int8)
    [kernel] = rewritten(lambda x: x.amax(-1), x.expand(3, -1))
    assert "for r0 in tl.range" in kernel.source
    found = Module.parse(lower(kernel).text).function(kernel.name).run([x, torch.zeros(3, dtype=torch.int8)])
    assert torch.equal(found.outputs[-1], x.amax(-1))


def flat(name: str) -> tuple[Callable[..., object], ...]:
    function, tensors = CASES[name]
    return (function, *tensors)  # type: ignore[arg-type]
