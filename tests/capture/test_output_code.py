"""Reading Inductor's own output_code.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tracer.capture import capture
from tracer.capture.errors import NoOutputCode
from tracer.capture.output_code import parse_output_code, read_output_code
from tracer.models.op_call import OpCall, TensorRef, TensorSpec

SILU = OpCall(
    "torch.nn.functional.silu", (TensorSpec((8, 64), (64, 1), 0, "torch.float16"),), (TensorRef(0),)
)


@pytest.fixture(scope="module")
def kernel():
    (kernel,) = capture(SILU).kernels
    return kernel


@pytest.fixture
def text(kernel) -> str:
    return f"""
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()
# kernel path: cache/x.py
{kernel.name} = async_compile.triton({kernel.name!r}, '''
{kernel.source}''', device_str='cuda')

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (8, 64), (64, 1))
        with torch.cuda._DeviceGuard(0):
            buf0 = empty_strided_cuda((8, 64), (64, 1), torch.float16)
            stream0 = get_raw_stream(0)
            {kernel.name}.run(arg0_1, buf0, 512, stream=stream0)
            del arg0_1
            buf1 = buf0; del buf0  # reuse
            buf2 = empty_strided_cuda((8, 8), (8, 1), torch.float16)
            extern_kernels.mm(reinterpret_tensor(buf1, (8, 64), (64, 1), 0), arg1_1, out=buf2)
            {kernel.name}.run(reinterpret_tensor(buf1, (4, 64), (64, 1), 256), buf2, 64, stream=stream0)
        return (buf1, buf2, )
"""


def test_launches_are_what_capture_gives(text: str, kernel) -> None:
    code = parse_output_code(text)
    first = code.kernels[0]
    assert first.source == kernel.source
    assert first.signature == kernel.signature
    assert first.mutated == kernel.mutated
    assert [value for _, value in first.arguments] == ["arg0_1", "buf0", 512]
    assert code.extern == ("extern_kernels.mm",)
    assert code.outputs == ("buf0", "buf2")


def test_buffers_have_layout_role_and_dtype(text: str) -> None:
    buffers = {b.name: b for b in parse_output_code(text).buffers}
    assert buffers["arg0_1"].role == "input"
    assert buffers["arg0_1"].spec == TensorSpec((8, 64), (64, 1), 0, "torch.float16")
    assert buffers["buf2"].role == "output"
    view = next(b for b in buffers.values() if b.spec.offset)
    assert (view.base, view.spec.offset, view.spec.shape) == ("buf0", 256, (4, 64))


def test_torch_compile_output_is_read(tmp_path: Path) -> None:
    """What Inductor itself writes for a graph with a library call, kernel text included."""
    from torch._inductor.utils import run_and_get_code

    _, codes = run_and_get_code(torch.compile(lambda a, b: a @ b), torch.randn(4, 4), torch.randn(4, 4))
    file = tmp_path / "output_code.py"
    file.write_text(codes[0])
    code = read_output_code(file)
    assert code.kernels == ()
    assert code.extern == ("extern_kernels.mm",)
    assert [b.spec.shape for b in code.buffers] == [(4, 4)] * 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "def f(:",
        "def call(args):\n    return (nothing,)",
        "\0",
        "def call(a):\n  t.run(x)\n  return (y,)",
    ],
)
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(NoOutputCode):
        parse_output_code(text)


def test_dynamic_shapes_are_refused(text: str) -> None:
    with pytest.raises(NoOutputCode, match="dynamic"):
        parse_output_code(text.replace("512, stream", "s0*64, stream"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoOutputCode):
        read_output_code(tmp_path / "none.py")
