from __future__ import annotations

import pytest
import torch

from tracer.validate.errors import LaunchRefused
from tracer.validate.gpu import prepare, prepared, reason_unaligned
from tracer.validate.problem import check_interpreted
from tracer.validate.stage import Stage, set_aside, unaligned

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
