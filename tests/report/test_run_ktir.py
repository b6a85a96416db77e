"""`simulate`: outputs, the trace and the latency report of any KTIR file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tracer.ktir.coverage import repeats
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


def test_half_an_output_is_found_without_arguments(kernel: Path):
    kernel.write_text(KERNEL.replace("grid = [2]", "grid = [1]"))
    outcome = simulate(kernel)
    (finding,) = outcome.diagnostics
    assert (finding.code, finding.severity, finding.coordinates) == ("KT302", "warning", (64,))
    assert any("KT302" in line for line in outcome.lines())
    assert outcome.to_json()["diagnostics"][0]["code"] == "KT302"


def test_coverage_is_that_of_the_cores_asked_for(kernel: Path):
    assert simulate(kernel).diagnostics == ()
    assert [d.code for d in simulate(kernel, cores=1).diagnostics] == ["KT302"]


def test_a_fault_is_a_finding_and_leaves_no_outputs(kernel: Path):
    outcome = simulate(kernel, specs=["x=f16[100]"])
    assert [d.code for d in outcome.diagnostics] == ["KT203"]
    assert outcome.outputs == ()


def test_wrong_text_is_a_finding(kernel: Path):
    kernel.write_text(KERNEL.replace("arith.addf", "arith.addg"))
    outcome = simulate(kernel)
    assert [d.code for d in outcome.diagnostics] == ["KT117"]
    assert outcome.lines() == [line for d in outcome.diagnostics for line in [str(d)]]


def test_one_fault_is_said_once(kernel: Path):
    kernel.write_text(KERNEL.replace("arith.muli %core, %c64", "arith.addi %core, %c64"))
    codes = [d.code for d in simulate(kernel).diagnostics]
    assert codes == ["KT201"]


LITERAL = KERNEL.replace("(%x: index, %y: index)", "()").replace(
    "    %c64 =", "    %x = arith.constant 1024 : index\n    %y = arith.constant 2048 : index\n    %c64 ="
)


def test_literal_addresses_are_filled_as_arguments_are(kernel: Path):
    kernel.write_text(LITERAL)
    outcome = simulate(kernel)
    assert outcome.diagnostics == ()
    assert [(name, tuple(tensor.shape)) for name, tensor in outcome.outputs] == [("memory 2048", (128,))]


def test_literal_addresses_take_values(kernel: Path, tmp_path: Path):
    kernel.write_text(LITERAL)
    torch.save(torch.arange(128, dtype=torch.float16), tmp_path / "x.pt")
    outcome = simulate(kernel, memory=[f"1024={tmp_path / 'x.pt'}"])
    assert torch.equal(outcome.outputs[0][1], 2 * torch.arange(128, dtype=torch.float16))


def test_a_scratchpad_takes_values(kernel: Path):
    local = LITERAL.replace(
        "%x, sizes: [128], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 127 >= 0)>, "
        "memory_space = #ktdp.memory_space<global>",
        "%x, sizes: [128], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 127 >= 0)>, "
        "memory_space = #ktdp.memory_space<ct_local>",
    )
    assert local != LITERAL
    kernel.write_text(local)
    assert {d.code for d in simulate(kernel).diagnostics} == {"KT204"}
    assert simulate(kernel, memory=["0:1024=f16[128]", "1:1024=f16[128]"]).diagnostics == ()


@pytest.mark.parametrize("spec", ["x=f16[4]", "1024=3", "0:x=f16[4]", "1024"])
def test_a_malformed_address_is_refused(kernel: Path, spec: str):
    kernel.write_text(LITERAL)
    with pytest.raises(BadArgument):
        simulate(kernel, memory=[spec])


@pytest.mark.parametrize(
    ("specs", "detail"),
    [
        (["1024=f16[128]", "01024=f16[64]"], "element address 1024 is given more than once"),
        (["0:64=f16[4]", "00:064=f16[4]"], "element address 64 is given more than once"),
        (
            ["1088=f16[64]"],
            r"1088: the view at 1024 \(line \d+\) reaches over it; give elements from 1024 on",
        ),
        (["1024=f16[128,]"], r"\[128,\] is no shape; write f16\[12,64\]"),
        (["1024=f16[x]"], r"\[x\] is no shape"),
        (["1024=f16[99999999999999]"], "1024: 99999999999999 elements are more than the memory"),
        (["1024=f16[999999999999999999999]"], "999999999999999999999 elements are more than the memory"),
    ],
)
def test_an_address_that_does_not_fit(kernel: Path, specs: list[str], detail: str):
    kernel.write_text(LITERAL)
    with pytest.raises(BadArgument, match=detail):
        simulate(kernel, memory=specs)
    assert simulate(kernel, memory=["01024=f16[2x 64]", "2048=f16[128]"]).diagnostics == ()


def test_a_seed_of_more_than_64_bits(kernel: Path):
    assert simulate(kernel, seed=2**64 - 1).diagnostics == ()
    with pytest.raises(BadArgument, match="--seed: 18446744073709551616 does not fit 64 bits"):
        simulate(kernel, seed=2**64)


def test_an_offset_before_the_view_counts_for_the_extent(kernel: Path):
    moved = KERNEL.replace(
        "    %vx = ktdp.construct_memory_view %x,",
        "    %x1 = arith.addi %x, %c64 : index\n    %vx = ktdp.construct_memory_view %x1,",
    )
    kernel.write_text(moved)
    assert simulate(kernel).diagnostics == ()


def test_a_number_is_asked_for_as_one(kernel: Path):
    kernel.write_text(
        KERNEL.replace("(%x: index, ", "(%n: index, %x: index, ").replace("%core, %c64", "%core, %n")
    )
    with pytest.raises(BadArgument, match="n: it is a number"):
        simulate(kernel)
    assert simulate(kernel, specs=["n=64"]).diagnostics == ()


def test_an_address_in_a_scratchpad_is_a_number(kernel: Path):
    line = KERNEL[: KERNEL.index("%vx = ")].count("\n") + 1
    kernel.write_text(KERNEL.replace("memory_space<global>", "memory_space<ct_local>", 1))
    with pytest.raises(BadArgument, match=f"x: line {line} puts a view of memory space ct_local"):
        simulate(kernel)


def test_the_public_simulators_cycles_are_a_mode(kernel: Path):
    body = "%b = arith.addf %a, %a : tensor<64xf16>"
    assert body in KERNEL
    generic = (
        "%b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], "
        'iterator_types = ["parallel"]} ins(%a : tensor<64xf16>) outs(%a : tensor<64xf16>) {\n'
        "^bb0(%p: f16, %q: f16):\n"
        "%s = arith.addf %p, %p : f16\nlinalg.yield %s : f16\n} -> tensor<64xf16>"
    )
    kernel.write_text(KERNEL.replace(body, generic))
    cycles = [
        simulate(kernel, pipeline="serial", mode=mode).latency.cycles for mode in ("strict", "ktir_cpu")
    ]
    assert cycles == [5.0, 6.0]


FP8 = KERNEL.replace("xf16>", "xf8E4M3FN>")
COUNTED = KERNEL.replace("xf16>", "xindex>").replace("arith.addf", "arith.addi")


@pytest.mark.parametrize(
    ("text", "dtype", "shown"),
    [
        (FP8, "f8E4M3FN", torch.float8_e4m3fn),
        (FP8.replace("f8E4M3FN", "f8E5M2"), "f8E5M2", torch.float8_e5m2),
        (COUNTED, "index", torch.int64),
    ],
)
def test_every_element_type_can_be_asked_for(tmp_path: Path, text: str, dtype: str, shown: torch.dtype):
    path = tmp_path / "double.ktir"
    path.write_text(text)
    outcome = simulate(path, specs=[f"x={dtype}[128]", f"y={dtype}[128]"])
    assert [d.code for d in outcome.diagnostics] == []
    ((name, tensor),) = outcome.outputs
    assert (name, tensor.dtype) == ("y", shown)
    assert bool(tensor.double().any()) is shown.is_floating_point
    assert outcome.lines()[1].startswith(f"y: {str(shown).removeprefix('torch.')}[128] ")


def test_a_dtype_that_is_not_there(kernel: Path):
    with pytest.raises(BadArgument, match=r"no dtype f8; choose from .*f8E4M3FN, f8E5M2, .*index"):
        simulate(kernel, specs=["x=f8[128]"])


@pytest.mark.parametrize("specs", [["x=f16[128]", "x=f16[64]"], ["x=f16[128]", "y=f16[128]", "%x=f16[64]"]])
def test_an_argument_given_twice(kernel: Path, specs: list[str]):
    with pytest.raises(BadArgument, match=r"x: it is given more than once: f16\[128\], f16\[64\]"):
        simulate(kernel, specs=specs)
    with pytest.raises(BadArgument, match="0:64: it is given more than once"):
        simulate(kernel, memory=["0:64=f16[4]", "64=f16[4]", "0:64=f16[8]"])


@pytest.mark.parametrize("name", ["x.npy", "x.pt"])
@pytest.mark.parametrize("content", [b"", b"no", b"\x93NUMPY\x01\x00"])
def test_a_file_that_holds_no_numbers(kernel: Path, tmp_path: Path, name: str, content: bytes):
    path = tmp_path / name
    path.write_bytes(content)
    writer = "numpy" if name == "x.npy" else "torch"
    with pytest.raises(
        BadArgument, match=rf"{name} holds no numbers as {writer}.save writes them; it may be damaged"
    ):
        simulate(kernel, specs=[f"x={path}"])


def test_a_file_that_is_not_there_or_a_folder(kernel: Path, tmp_path: Path):
    with pytest.raises(BadArgument, match=r"neither number, dtype\[shape\] nor file: gone\.npy"):
        simulate(kernel, specs=["x=gone.npy"])
    with pytest.raises(BadArgument, match="cannot be read: Is a directory"):
        simulate(kernel, specs=[f"x={tmp_path}"])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(128, "U1"), "is an array of <U1; no tensor shows it"),
        (np.zeros(128, ">f2"), "is an array of >f2; its byte order is not the machine's"),
    ],
)
def test_a_file_of_an_array_that_no_tensor_shows(kernel: Path, tmp_path: Path, array: np.ndarray, words: str):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(BadArgument, match=words):
        simulate(kernel, specs=[f"x={tmp_path / 'x.npy'}"])
    np.save(tmp_path / "x.npy", np.arange(128, dtype=np.float16))
    (_, tensor), *_ = simulate(kernel, specs=[f"x={tmp_path / 'x.npy'}"]).outputs
    assert tensor.tolist() == [2.0 * i for i in range(128)]


def test_an_output_that_must_be_written_whole(kernel: Path):
    half = kernel.with_name("half.ktir")
    half.write_text(KERNEL.replace("arith.muli %core, %c64", "arith.muli %core, %core"))
    assert [d.code for d in simulate(half, uninitialized=["y"]).diagnostics if d.severity == "error"] == [
        "KT205",
        "KT211",
    ]
    assert "KT211" not in {d.code for d in simulate(half).diagnostics}
    assert simulate(kernel, uninitialized=["%y"]).diagnostics == ()
    with pytest.raises(BadArgument, match="x: it is no output; those are y"):
        simulate(kernel, uninitialized=["x"])


def test_nothing_is_said_twice(kernel: Path):
    """The run foretells what the text tells, and the text is checked before it."""
    kernel.write_text(KERNEL.replace("grid = [2]", "grid = [1]"))
    assert [d.code for d in simulate(kernel).diagnostics] == ["KT302"]


def test_a_file_is_traced_once(kernel: Path, monkeypatch: pytest.MonkeyPatch):
    """What the text foretells is not looked for again by the run."""
    kernel.write_text(KERNEL.replace("grid = [2]", "grid = [1]"))
    traced = []
    real = repeats.traced
    monkeypatch.setattr(
        repeats, "traced", lambda *args, **options: traced.append(1) or real(*args, **options)
    )
    assert [d.code for d in simulate(kernel).diagnostics] == ["KT302"]
    assert traced == [1]
