from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tracer.validate.errors import LaunchRefused
from tracer.validate.gpu import prepare, prepared, reason_unaligned
from tracer.validate.problem import check_interpreted
from tracer.validate.stage import Stage, launch, set_aside, unaligned

SILU = "torch.nn.functional.silu($0); $0=torch.float16[3, 100]:[100, 1]+0"
SOFTMAX = "torch.nn.functional.softmax($0, dim=-1); $0=torch.float32[6, 10]:[10, 1]+0"
MEAN = "torch.mean($0, -1); $0=torch.float16[6, 64]:[64, 1]+0"
INDEX_COPY = (
    "torch.Tensor.index_copy_($0, 2, $1, $2); $0=torch.float16[1, 2, 32, 16]:[1024, 512, 16, 1]+0;"
    " $1=torch.int64[5]:[1]+0; $2=torch.float16[1, 2, 5, 16]:[160, 80, 16, 1]+0"
)


def test_a_launcher_refuses_another_layout_and_the_cpu(make_folder):
    silu = make_folder(SILU).wrapper.silu
    with pytest.raises(LaunchRefused, match=r"input is torch.float16\[3, 99\]"):
        silu(torch.zeros(3, 99, dtype=torch.float16))
    with pytest.raises(LaunchRefused, match="strides"):
        silu(torch.zeros(100, 3, dtype=torch.float16).T)
    with pytest.raises(LaunchRefused, match="no CPU tensors"):
        silu(torch.zeros(3, 100, dtype=torch.float16))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1.0], "input is a list; this kernel takes a tensor of torch.float16"),
        (None, "input is a NoneType; this kernel takes"),
        (torch.zeros(3, 100, dtype=torch.float16, device="meta"), "input is on the meta device"),
        (torch.zeros(3, 100, dtype=torch.float16).to_sparse(), r"input is torch\.sparse_coo"),
    ],
    ids=["list", "none", "meta", "sparse"],
)
def test_a_launcher_refuses_what_is_no_tensor_with_values(given, said, make_folder):
    with pytest.raises(LaunchRefused, match=said):
        make_folder(SILU).wrapper.silu(given)


def test_a_launcher_refuses_tensors_of_several_devices():
    with FakeTensorMode():
        inputs = {"x": torch.zeros(2), "y": torch.zeros(2, device="cuda:0")}
    layouts = dict.fromkeys(inputs, ((2,), (1,), torch.float32))
    with pytest.raises(LaunchRefused, match="y is on cuda:0, x on cpu"):
        launch((), layouts, (), inputs)


INTERPRETED = """
import sys, torch
from tracer.testing import load_sibling
import triton.runtime.interpreter as stock
before = {(c, n): getattr(getattr(stock, c), n) for c, n in (
    ("TensorDescHandle", "validate"), ("TensorDescHandle", "materialize_pointers"),
    ("InterpreterBuilder", "cast_impl"), ("InterpreterBuilder", "binary_op"))}
for file, name in zip(sys.argv[1::2], sys.argv[2::2]):
    wrapper = load_sibling(file, "wrapper.py")
    inputs = wrapper.make_inputs()
    (expected,) = wrapper.run({k: v.clone() for k, v in inputs.items()})
    inputs = {k: v if name != "index_copy_" or k != "input" else moved(v) for k, v in inputs.items()}
    found = getattr(wrapper, name)(**inputs)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=1e-3)
assert before == {key: getattr(getattr(stock, key[0]), key[1]) for key in before}
"""
MOVED = """
def moved(v):
    span = 1 + sum((n - 1) * s for n, s in zip(v.shape, v.stride()))
    room = torch.zeros(span + 1, dtype=v.dtype)
    other = room.as_strided(v.shape, v.stride(), 1)
    assert other.data_ptr() % 16
    return other.copy_(v)
"""


def test_launchers_run_in_the_interpreter_whatever_the_alignment(make_folder):
    # Rows of 12 elements, a cache that begins at an odd element, and bfloat16.
    bf16 = "torch.exp($0); $0=torch.bfloat16[3, 12]:[12, 1]+0"
    given = []
    for identity, name in ((SOFTMAX, "softmax"), (INDEX_COPY, "index_copy_"), (bf16, "exp")):
        given += [str(make_folder(identity).path / "wrapper.py"), name]
    done = subprocess.run(
        [sys.executable, "-c", f"import torch\n{MOVED}{INTERPRETED}", *given],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_what_a_gpu_would_ignore_is_told():
    stage = Stage(test_what_a_gpu_would_ignore_is_told, "", (1,), {"in_ptr0": "x", "in0_stride_x0": 12}, {})
    assert "in0_stride_x0=12 is no multiple of 16 bytes" in unaligned(
        stage, {"x": torch.zeros(0, dtype=torch.float16)}
    )
    assert unaligned(stage, {"x": torch.zeros(0, dtype=torch.float32)}) == ""
    assert "starts at" in unaligned(stage, {"x": torch.zeros(64)[1:]})


def test_an_aligned_size_is_prepared_for_a_gpu(make_folder):
    folder = make_folder(SOFTMAX)
    assert "in0_stride_x0=10" in reason_unaligned(folder.problem)
    problem = prepared(folder, prepare(folder))
    assert reason_unaligned(problem) == ""
    check_interpreted(problem, "T0")


def test_an_op_without_an_aligned_size_says_why(make_folder):
    # One number per tile goes out through rows of one element, whatever the size.
    assert "no multiple of 16 bytes" in prepare(make_folder(MEAN))["reason"]


def test_index_inputs_are_in_range_and_distinct(make_folder):
    index = make_folder(INDEX_COPY).problem.inputs["index"].tolist()
    assert len(set(index)) == 5
    assert max(index) < 32


def test_inputs_that_end_inside_16_bytes_are_set_aside():
    base = torch.arange(64, dtype=torch.float16)
    whole, ragged = base[:16].view(2, 8), base[16:32].view(2, 8)[:, :5]
    copies = set_aside({"whole": whole, "ragged": ragged, "read": ragged}, {"whole", "ragged"})
    assert list(copies) == ["ragged"]
    assert torch.equal(copies["ragged"], ragged)
    assert copies["ragged"].stride() == ragged.stride()
    assert copies["ragged"].untyped_storage().nbytes() >= 2 * (13 + 8)
    assert copies["ragged"].data_ptr() != ragged.data_ptr()
