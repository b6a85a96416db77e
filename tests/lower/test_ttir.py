"""TTIR from stock Triton: deterministic, without a GPU, without files, with typed refusals."""

from __future__ import annotations

import linecache
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.lower.errors import InterpretedTritonError, SourceRejectedError
from tracer.lower.ttir import generate_ttir

COPY = """@triton.jit
def copy(in_ptr0, out_ptr0, x0_size, X0_BLOCK: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0.store([0], {value})
"""
SIGNATURE = {"in_ptr0": "*fp16", "out_ptr0": "*fp16", "x0_size": "i32", "X0_BLOCK": "constexpr"}
VALUES = {"x0_size": 50, "X0_BLOCK": 64}


def ttir(value: str = "in0.load([0])") -> str:
    return generate_ttir(COPY.format(value=value), "copy", SIGNATURE, VALUES).text


def test_numbers_are_specialised_and_pointers_stay(in_order):
    in_order(
        ttir(), "tt.func public @copy(%in_ptr0: !tt.ptr<f16>", "%out_ptr0: !tt.ptr<f16>", "tensor<64xf16>"
    )
    assert "%x0_size" not in ttir()


def test_text_does_not_depend_on_process_or_folder(tmp_path: Path):
    program = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "from tracer.lower.ttir import generate_ttir\n"
        f"source = {COPY.format(value='in0.load([0])')!r}\n"
        f"print(generate_ttir(source, 'copy', {SIGNATURE!r}, {VALUES!r}).text, end='')"
    )
    root = Path(__file__).parents[2]
    texts = {
        subprocess.run(
            [sys.executable, "-c", program, str(root)],
            cwd=folder,
            env={"PYTHONHASHSEED": seed, "HOME": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for folder, seed in ((tmp_path, "1"), (root, "2"))
    }
    assert texts == {ttir()}
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_in_linecache():
    before = set(linecache.cache)
    ttir()
    assert set(linecache.cache) == before


def test_small_dots_are_allowed():
    source = """@triton.jit
def dot(in_ptr0, out_ptr0):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[2, 8], strides=[8, 1], block_shape=[2, 8])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[2, 4], strides=[4, 1], block_shape=[2, 4])
    tmp0 = in0.load([0, 0])
    out0.store([0, 0], tl.dot(tmp0, tl.trans(tmp0)).reshape([2, 2]).broadcast_to([2, 2]))
"""
    with pytest.raises(SourceRejectedError, match="line 6"):
        generate_ttir(source, "dot", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, {})
    fixed = source.replace(
        "[2, 4], strides=[4, 1], block_shape=[2, 4]", "[2, 2], strides=[2, 1], block_shape=[2, 4]"
    )
    fixed = fixed.replace("tl.dot(tmp0, tl.trans(tmp0)).reshape([2, 2]).broadcast_to([2, 2])", "X")
    fixed = fixed.replace("X", "tl.join(*[tl.dot(tmp0, tl.trans(tmp0))] * 2).reshape([2, 4])")
    assert "tt.dot" in generate_ttir(fixed, "dot", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, {}).text


def test_device_library_functions_become_named_calls():
    assert '"__nv_tanhf"' in ttir("libdevice.tanh(in0.load([0]).to(tl.float32)).to(tl.float16)")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("tl.expp(in0.load([0]))", "expp"),
        ("in0.load([0, 0])", "expected"),
        ("undefined_name", "undefined_name"),
    ],
)
def test_frontend_errors_name_the_source_line(value: str, reason: str):
    with pytest.raises(SourceRejectedError) as caught:
        ttir(value)
    assert caught.value.code == "HV401"
    assert "line 5" in caught.value.reason
    assert caught.value.line is not None
    assert "out0.store" in caught.value.line
    assert reason in caught.value.reason


def test_source_that_is_not_python_is_refused():
    with pytest.raises(SourceRejectedError, match="SyntaxError"):
        generate_ttir("@triton.jit\ndef copy(:\n", "copy", {}, {})


def test_missing_function_is_refused():
    with pytest.raises(SourceRejectedError, match=r"no @triton\.jit function other"):
        generate_ttir(COPY.format(value="0"), "other", SIGNATURE, VALUES)


def test_signature_that_does_not_fit_is_refused():
    with pytest.raises(SourceRejectedError, match="x0_size"):
        generate_ttir(COPY.format(value="0"), "copy", {"in_ptr0": "*fp16"}, {})


def test_interpreter_mode_is_refused():
    program = (
        "from tracer.lower.ttir import generate_ttir\n"
        "from tracer.lower.errors import InterpretedTritonError\n"
        "try: generate_ttir('', 'copy', {}, {})\n"
        "except InterpretedTritonError as error: print(error.code)"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": root, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == InterpretedTritonError.code
