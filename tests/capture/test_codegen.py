"""The form of captures: buffers, arguments, determinism, refusals, and what is left behind."""

from __future__ import annotations

import ast
import multiprocessing
import subprocess
import sys
from unittest import mock

import pytest
import torch

from tracer.capture import capture, missing_names
from tracer.capture.errors import (
    CodegenFailure,
    DataDependent,
    ExternKernel,
    HostData,
    MovedNames,
    RandomOp,
    RelaidInput,
)
from tracer.capture.inductor import PRIVATE_NAMES
from tracer.models.op_call import OpCall, TensorRef, TensorSpec
from tracer.target import SpyreTarget

R = TensorRef


def spec(*shape: int, dtype: str = "torch.float16") -> TensorSpec:
    return TensorSpec(shape, torch.empty(shape, device="meta").stride(), 0, dtype)


LINEAR = OpCall("torch.nn.functional.linear", (spec(1, 12, 4096), spec(14336, 4096)), (R(0), R(1), None))
SILU = OpCall("torch.nn.functional.silu", (spec(1, 12, 14336),), (R(0),))
INDEX_COPY = OpCall(
    "torch.Tensor.index_copy_",
    (spec(1, 8, 2048, 128), spec(1, dtype="torch.int64"), spec(1, 8, 1, 128)),
    (R(0), 2, R(1), R(2)),
)


def test_a_real_size_matmul_is_one_dot() -> None:
    captured = capture(LINEAR)
    (kernel,) = captured.kernels
    assert "tl.dot(" in kernel.source
    assert dict(kernel.arguments) == {
        "in_ptr0": "input",
        "in_ptr1": "weight",
        "out_ptr0": "out",
        "ynumel": 12,
        "xnumel": 14336,
        "r0_numel": 4096,
    }
    assert [(b.name, b.role) for b in captured.buffers] == [
        ("input", "input"),
        ("weight", "input"),
        ("out", "output"),
    ]
    assert captured.buffers[-1].spec == spec(1, 12, 14336)
    assert captured.outputs == ("out",)
    assert kernel.mutated == ("out_ptr0",)
    assert "aten.mm" in kernel.origins


def test_one_token_is_a_whole_sum_of_products() -> None:
    call = OpCall(LINEAR.name, (spec(1, 1, 4096), spec(1024, 4096)), LINEAR.args)
    (kernel,) = capture(call).kernels
    assert "tl.dot(" not in kernel.source
    assert "tl.sum(" in kernel.source
    assert "R0_BLOCK: tl.constexpr = 4096" in kernel.source


@pytest.mark.parametrize("extent", [1, 3, 12_345, 1 << 20])
def test_reductions_are_whole(extent: int) -> None:
    (kernel,) = capture(OpCall("torch.sum", (spec(extent, dtype="torch.float32"),), (R(0),))).kernels
    assert "for r0_offset" not in kernel.source


def test_in_place_ops_name_their_input() -> None:
    captured = capture(INDEX_COPY)
    (kernel,) = captured.kernels
    assert captured.outputs == ("input",)
    assert dict(kernel.arguments)["out_ptr0"] == "input"
    assert all(b.role == "input" for b in captured.buffers)


def test_setitem_returns_what_it_writes() -> None:
    call = OpCall("torch.Tensor.__setitem__", (spec(4, 6), spec(4)), (R(0), (slice(None), 2), R(1)))
    captured = capture(call)
    assert captured.outputs == ("input",)
    (kernel,) = captured.kernels
    assert kernel.mutated == tuple(p for p, b in kernel.arguments if b == "input")


def test_cat_writes_parts_of_one_buffer() -> None:
    call = OpCall("torch.cat", (spec(12, 64), spec(12, 32)), ((R(0), R(1)),), (("dim", -1),))
    captured = capture(call)
    assert [dict(k.arguments)["out_ptr0"] for k in captured.kernels] == ["out", "out"]
    assert captured.buffers[-1].spec.shape == (12, 96)
    assert "64 + " in captured.kernels[1].source


def test_several_outputs_keep_their_order() -> None:
    captured = capture(OpCall("torch.topk", (spec(3, 8, dtype="torch.float32"),), (R(0), 2)))
    assert captured.outputs == ("out0", "out1")
    specs = {b.name: b.spec for b in captured.buffers}
    assert specs["out0"].dtype == "torch.float32"
    assert specs["out1"].dtype == "torch.int64"


def test_outputs_that_share_memory_are_views() -> None:
    captured = capture(OpCall("torch.Tensor.chunk", (spec(4, 6),), (R(0), 2, -1)))
    assert captured.kernels == ()
    assert [b.base for b in captured.buffers] == [None, "input", "input"]
    assert captured.buffers[2].spec.offset == 3


def test_rank_0_tensors_are_pointers() -> None:
    (kernel,) = capture(OpCall("torch.add", (spec(8), spec()), (R(0), R(1)))).kernels
    assert dict(kernel.signature)["in_ptr1"] == "*fp16"


def test_nothing_to_do_gives_no_kernel() -> None:
    assert capture(OpCall("torch.Tensor.view", (spec(4, 6),), (R(0), 24))).kernels == ()
    assert capture(OpCall("torch.neg", (spec(0, 6),), (R(0),))).kernels == ()


def test_sources_are_python() -> None:
    for call in (LINEAR, SILU, INDEX_COPY):
        for kernel in capture(call).kernels:
            tree = ast.parse(kernel.source)
            function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel.name)
            parameters = [a.arg for a in function.args.args]
            assert parameters[: len(kernel.arguments)] == [name for name, _ in kernel.arguments]


def test_text_does_not_depend_on_the_host() -> None:
    first = capture(SILU)
    with mock.patch.object(multiprocessing, "cpu_count", return_value=77):
        assert capture(SILU) == first
    assert "multi_processor_count=32" in first.kernels[0].source
    assert "/" not in first.kernels[0].source.split("@triton.jit")[0].replace("_/", "")
    assert "multi_processor_count=4" in capture(SILU, SpyreTarget(cores=4)).kernels[0].source


def test_text_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from tests_spec import CALL; from tracer.capture import capture;"
        "print(''.join(k.source + str(k.arguments) + str(k.origins) for k in capture(CALL).kernels))"
    )
    program = program.replace(
        "from tests_spec import CALL",
        "from tracer.models.op_call import OpCall; CALL = OpCall.from_json(" + repr(LINEAR.to_json()) + ")",
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert "tl.dot" in texts.pop()


def test_library_calls_are_named() -> None:
    with pytest.raises(ExternKernel, match=r"aten\._linalg_svd") as caught:
        capture(OpCall("torch.linalg.svd", (spec(8, 8, dtype="torch.float32"),), (R(0),)))
    assert caught.value.code == "HV201"


def test_random_numbers_are_refused() -> None:
    with pytest.raises(RandomOp, match=r"aten\.bernoulli"):
        capture(OpCall("torch.nn.functional.dropout", (spec(8),), (R(0),)))
    with pytest.raises(RandomOp):
        capture(OpCall("torch.rand", (), (3,)))
    assert capture(OpCall("torch.nn.functional.dropout", (spec(8),), (R(0), 0.5, False))).kernels == ()


def test_tables_of_numbers_are_refused() -> None:
    with pytest.raises(HostData, match="20 numbers"):
        capture(OpCall("torch.tensor", (), (list(range(20)),)))
    assert len(capture(OpCall("torch.tensor", (), (list(range(8)),))).kernels) == 1


def test_data_dependent_shapes_are_refused() -> None:
    with pytest.raises(DataDependent):
        capture(OpCall("torch.nonzero", (spec(8),), (R(0),)))


def test_impossible_calls_are_one_error() -> None:
    with pytest.raises(CodegenFailure):
        capture(OpCall("torch.mm", (spec(8, 7), spec(8, 8)), (R(0), R(1))))


def test_no_name_is_missing() -> None:
    assert missing_names() == []


def test_a_moved_name_is_named() -> None:
    gone = "torch._inductor.graph:GraphLowering.gone"
    with mock.patch.dict(PRIVATE_NAMES, {gone: "a test"}):
        assert missing_names() == [gone]
        with pytest.raises(MovedNames, match=r"GraphLowering\.gone"):
            capture(SILU)


def test_patches_are_undone() -> None:
    from torch._inductor import config
    from torch._inductor.codegen.triton import TritonKernel
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen
    from torch._inductor.graph import GraphLowering
    from torch._inductor.kernel import mm
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._inductor.virtualized import V

    def state() -> tuple[object, ...]:
        return (
            mm.use_native_matmul,
            TritonKernel.load,
            TritonKernel.store,
            PythonWrapperCodegen.generate,
            GraphLowering.is_unspec_arg,
            vars(DeviceProperties)["create"],
            type(V.choices),
            config.cpu_backend,
            config.split_reductions,
        )

    before = state()
    capture(LINEAR)
    assert state() == before
    with pytest.raises(CodegenFailure):
        capture(OpCall("torch.mm", (spec(8, 7), spec(8, 8)), (R(0), R(1))))
    assert state() == before


def test_inductor_matches_an_index_once() -> None:
    from torch._inductor.codegen.block_analysis import BlockPatternMatcher

    match = BlockPatternMatcher.match_mod_div_block_expr
    asked = []

    def counted(*args):
        asked.append(args)
        return match(*args)

    tensors = (spec(2, 3, 8, 8), spec(2, 5, 4, 2))
    call = OpCall("torch.nn.functional.grid_sample", tensors, (R(0), R(1)), (("align_corners", False),))
    with mock.patch.object(BlockPatternMatcher, "match_mod_div_block_expr", counted):
        once = capture(call)
        assert BlockPatternMatcher.match_mod_div_block_expr is counted
    assert len(asked) == len(set(asked)) > 2
    assert [kernel.source for kernel in once.kernels] == [kernel.source for kernel in capture(call).kernels]


def test_outputs_are_what_is_returned_and_then_what_is_written() -> None:
    norm = OpCall(
        "torch.nn.functional.batch_norm",
        (spec(2, 6, 12), spec(6), spec(6)),
        (R(0), R(1), R(2)),
        (("training", True),),
    )
    captured = capture(norm)
    inputs = [buffer.name for buffer in captured.buffers if buffer.role == "input"]
    assert captured.returned == 1
    assert captured.outputs[1:] == tuple(inputs[1:])
    written = capture(INDEX_COPY)
    assert (written.returned, len(written.outputs)) == (1, 1)


@pytest.mark.parametrize(
    "call",
    [
        OpCall("torch.Tensor.t_", (spec(3, 4),), (R(0),)),
        OpCall("torch.Tensor.squeeze_", (spec(3, 1, 4),), (R(0),)),
        OpCall("torch.Tensor.resize_", (spec(12),), (R(0), 3, 4)),
        OpCall("torch.Tensor.resize_", (spec(12),), (R(0), 5)),
    ],
    ids=lambda call: call.name,
)
def test_another_layout_in_place_computes_nothing(call: OpCall) -> None:
    assert capture(call).kernels == ()


def test_more_memory_in_place_is_refused() -> None:
    with pytest.raises(RelaidInput, match="which takes more memory than it has") as caught:
        capture(OpCall("torch.Tensor.resize_", (spec(12),), (R(0), 3, 5)))
    assert caught.value.code == "HV210"
