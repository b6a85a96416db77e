"""`simulate`: outputs, the trace and the latency report of any KTIR file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.report.errors import BadArgument
from tracer.report.run_ktir import simulate

KERNEL = """module {
  func.func @double(%x: index, %y: index) attributes {grid = [2]} {
    %c64 = arith.constant 64 : index
    %core = ktdp.get_compute_tile_id : index
    %vx = ktdp.construct_memory_view %x, sizes: [128], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 127 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<128xf16>
    %vy = ktdp.construct_memory_view %y, sizes: [128], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 127 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<128xf16>
    %i = arith.muli %core, %c64 : index
    %tx = ktdp.construct_access_tile %vx[%i] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>} : memref<128xf16> -> !ktdp.access_tile<64xindex>
    %a = ktdp.load %tx : !ktdp.access_tile<64xindex> -> tensor<64xf16>
    %b = arith.addf %a, %a : tensor<64xf16>
    %ty = ktdp.construct_access_tile %vy[%i] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>} : memref<128xf16> -> !ktdp.access_tile<64xindex>
    ktdp.store %b, %ty : tensor<64xf16>, !ktdp.access_tile<64xindex>
    return
  }
}
"""  # noqa: E501


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "double.ktir"
    path.write_text(KERNEL)
    return path


def test_outputs_are_named_after_their_arguments(kernel: Path):
    outcome = simulate(kernel)
    assert [(name, tuple(tensor.shape)) for name, tensor in outcome.outputs] == [("y", (128,))]
    assert outcome.latency is None
    assert outcome.trace == ()


def test_the_trace_has_a_line_per_operation_and_core(kernel: Path):
    trace = simulate(kernel, trace=True).trace
    sums = [line for line in trace if "arith.addf" in line]
    assert [line.split(" float16")[0] for line in sums] == [
        f"core {core} line 10 arith.addf" for core in (0, 1)
    ]
    assert not any(" object at 0x" in line for line in trace)


def test_latency_counts_the_sticks_of_both_buffers(kernel: Path):
    report = simulate(kernel, pipeline="serial").latency
    assert report is not None
    # 128 halves are two sticks: each core moves one in and one out at half of 128 bytes a cycle, adds once.
    assert (report.bytes, report.compulsory_bytes, report.cycles) == (512, 512, 5.0)
    assert simulate(kernel, pipeline="overlapped").latency.cycles == 4.0


def test_an_argument_that_the_function_lacks_is_refused(kernel: Path):
    with pytest.raises(BadArgument, match="the function has x, y"):
        simulate(kernel, specs=["z=1"])
