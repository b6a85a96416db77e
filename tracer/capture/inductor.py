"""Every private name of PyTorch that capture relies on, and the patches made with them.

Nothing else in the project imports `torch._inductor`. `PRIVATE_NAMES` is checked by `missing_names`;
`patched` applies the patches and undoes them, so that an ordinary `torch.compile` still works in this
process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

from tracer.capture.errors import MovedNames
from tracer.target import SpyreTarget

PRIVATE_NAMES: dict[str, str] = {
    "torch:ops.aten.alias.default._op_dk": "composite ops by their parts",
    "torch._C:_get_mkldnn_enabled": "an LSTM is no call into that library",
    "torch._C:_dispatch_get_registrations_for_dispatch_key": "composite ops by their parts",
    "torch._decomp:decomposition_table": "PyTorch's decompositions",
    "torch._inductor.choices:InductorChoices.reduction_split_factor": "reductions stay whole",
    "torch._inductor.choices:InductorChoices.should_use_cooperative_reduction": "reductions stay whole",
    "torch._inductor.choices:InductorChoices.should_use_persistent_reduction": "reductions stay whole",
    "torch._inductor.codegen.block_analysis:BlockPatternMatcher.match_mod_div_block_expr": "found once",
    "torch._inductor.codegen.triton:TritonKernel.load": "views of a buffer become offsets into it",
    "torch._inductor.codegen.triton:TritonKernel.store": "views of a buffer become offsets into it",
    "torch._inductor.codegen.triton:TritonKernel.store_reduction": "views of a buffer become offsets into it",
    "torch._inductor.codegen.triton:TritonScheduling.create_tiling": "reductions over three dims",
    "torch._inductor.codegen.triton:TritonScheduling.define_kernel": "the ATen ops of a kernel",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.define_kernel": "a kernel's source",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.generate": "no wrapper text is generated",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.generate_kernel_call": "a kernel's launch",
    "torch._inductor.config:cpu_backend": "Triton for CPU tensors",
    "torch._inductor.config:triton.native_matmul": "matmul as tl.dot",
    "torch._inductor.debug:DebugContext": "a debug handler is required",
    "torch._inductor.decomposition:select_decomp_table": "Inductor's decompositions",
    "torch._inductor.fx_passes.post_grad:post_grad_passes": "in-place updates without a copy",
    "torch._inductor.graph:GraphLowering.codegen": "code generation",
    "torch._inductor.graph:GraphLowering.is_unspec_arg": "tensors of rank 0 are pointers",
    "torch._inductor.graph:GraphLowering.run": "lowering",
    "torch._inductor.graph:get_wrapper_codegen_for_device": "the recording wrapper",
    "torch._inductor.ir:ExternKernel": "calls into libraries",
    "torch._inductor.ir:MultiOutput": "calls into libraries",
    "torch._inductor.ir:NonOwningLayout": "views of a buffer",
    "torch._inductor.kernel.bmm:use_native_matmul": "matmul as tl.dot on CPU",
    "torch._inductor.kernel.mm:use_native_matmul": "matmul as tl.dot on CPU",
    "torch._inductor.lowering:lowerings": "which ops Inductor compiles as they are",
    "torch._inductor.runtime.hints:DeviceProperties.create": "the host's core count stays out",
    "torch._inductor.virtualized:V.set_choices_handler": "reductions stay whole",
    "torch._inductor.virtualized:V.set_graph_handler": "lowering",
    "torch.fx.experimental.proxy_tensor:make_fx": "the ATen graph of a call",
    "torch.fx.traceback:preserve_node_meta": "kernel names",
    "torch.utils._triton:triton_hash_with_backend": "no Triton driver is needed",
}
"""`module:attribute` -> what it is needed for."""


def missing_names() -> list[str]:
    """The entries of PRIVATE_NAMES that this PyTorch does not have, sorted."""
    return sorted(name for name in PRIVATE_NAMES if not _exists(name))


def _exists(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


@dataclass(frozen=True)
class Launch:
    """One kernel call as Inductor would make it: names of buffers and numbers, in order."""

    kernel: str
    arguments: tuple[str | int, ...]
    signature: dict[str, str]


@dataclass
class Generated:
    """What code generation produced: sources by kernel name, launches in order, ATen ops by kernel name."""

    sources: dict[str, str] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)


_DOT_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def can_dot(left: torch.dtype, right: torch.dtype, m: int, n: int, k: int) -> bool:
    """Whether Inductor's native matmul takes this problem. A unit extent has no range of its own there."""
    return left == right and left in _DOT_DTYPES and min(m, n, k) > 1


@contextlib.contextmanager
def patched(target: SpyreTarget, generated: Generated) -> Iterator[None]:
    """Inductor set up to write Triton for CPU tensors and to record it in `generated`; undone on exit.

    Raises:
        MovedNames: this PyTorch is not the one that the patches were written for.
    """
    if missing := missing_names():
        raise MovedNames(names=", ".join(missing))
    from torch._inductor import config
    from torch._inductor.codegen import triton as triton_codegen
    from torch._inductor.codegen.block_analysis import BlockPatternMatcher
    from torch._inductor.debug import DebugContext
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._inductor.virtualized import V

    # Neither the host's cores nor its device may leak into the text.
    nowhere: dict[str, Any] = {"index": None, "cc": ""}
    properties = DeviceProperties(
        type="cpu", multi_processor_count=target.cores, max_threads_per_block=1024, **nowhere
    )
    wrapper = _recording_wrapper(generated)
    kernel, scheduling = triton_codegen.TritonKernel, triton_codegen.TritonScheduling
    with contextlib.ExitStack() as stack:
        for patch in (
            mock.patch("torch.utils._triton.triton_hash_with_backend", return_value="0"),
            mock.patch("torch._C._get_mkldnn_enabled", return_value=False),
            mock.patch("torch._inductor.kernel.mm.use_native_matmul", _use_native_matmul),
            mock.patch("torch._inductor.kernel.bmm.use_native_matmul", _use_native_matmul),
            mock.patch("torch._inductor.graph.get_wrapper_codegen_for_device", return_value=wrapper),
            mock.patch("torch._inductor.graph.GraphLowering.is_unspec_arg", return_value=False),
            mock.patch.object(DeviceProperties, "create", staticmethod(lambda _: properties)),
            # SymPy takes up to seconds for one of these, and each is asked for again and again.
            mock.patch.object(
                BlockPatternMatcher,
                "match_mod_div_block_expr",
                functools.cache(BlockPatternMatcher.match_mod_div_block_expr),
            ),
            mock.patch.object(kernel, "load", _with_base(kernel.load)),
            mock.patch.object(kernel, "store", _with_base(kernel.store)),
            mock.patch.object(kernel, "store_reduction", _with_base(kernel.store_reduction)),
            mock.patch.object(scheduling, "create_tiling", _with_two_reduced(scheduling.create_tiling)),
            mock.patch.object(
                scheduling, "define_kernel", _with_origins(scheduling.define_kernel, generated)
            ),
            config.patch(_CONFIG),
            V.set_choices_handler(_choices()),
            V.set_debug_handler(DebugContext()),
            V.set_extern_kernel_nodes([]),
            torch.fx.traceback.preserve_node_meta(),
            torch.no_grad(),
        ):
            stack.enter_context(patch)
        yield


_CONFIG: dict[str, Any] = {
    "cpu_backend": "triton",
    "compile_threads": 1,
    "force_disable_caches": True,
    "split_reductions": False,
    "inplace_buffers": False,
    "allow_buffer_reuse": False,
    "combo_kernels": False,
    "comprehensive_padding": False,
    "triton.native_matmul": True,
    # One range per loop axis wherever three suffice: indices come out affine instead of full of `//` and `%`.
    "triton.prefer_nd_tiling": True,
    "triton.max_tiles": 3,
    "triton.tile_reductions": True,
    "triton.cooperative_reductions": False,
    "triton.mix_order_reduction": False,
    "triton.unique_kernel_names": True,
}


def _choices() -> Any:
    from torch._inductor.choices import InductorChoices

    class WholeReductions(InductorChoices):
        """Every reduction in one piece: its plan is ours to make."""

        @staticmethod
        def should_use_cooperative_reduction(*_: Any, **__: Any) -> bool:
            return False

        @staticmethod
        def should_use_persistent_reduction(*_: Any, **__: Any) -> bool:
            return True

        @staticmethod
        def reduction_split_factor(*_: Any, **__: Any) -> int:
            return 1

    return WholeReductions()


def _use_native_matmul(left: Any, right: Any) -> bool:
    m, k, n = left.get_size()[-2], left.get_size()[-1], right.get_size()[-1]
    return can_dot(left.get_dtype(), right.get_dtype(), int(m), int(n), int(k))


def _recording_wrapper(generated: Generated) -> type:
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    class RecordingWrapper(PythonWrapperCodegen):
        """Keeps kernels and launches, and writes no wrapper."""

        @staticmethod
        def create(*_: Any, **__: Any) -> RecordingWrapper:
            return RecordingWrapper()

        def define_kernel(self, kernel_name: str, kernel_body: str, *_: Any, **__: Any) -> None:
            generated.sources[kernel_name] = _module_text(kernel_body)

        def generate_kernel_call(self, kernel_name: str, call_args: Any, **kwargs: Any) -> None:
            arguments = tuple(arg if isinstance(arg, str) else int(arg) for arg in call_args)
            signature = {name: str(kind) for name, kind in kwargs["triton_meta"]["signature"].items()}
            generated.launches.append(Launch(kernel_name, arguments, signature))

        def generate(self, is_inference: bool) -> tuple[None, None]:
            return None, None

    return RecordingWrapper


def _module_text(body: str) -> str:
    """The kernel's module out of `async_compile.triton('name', '''...''', device_str='cpu')`."""
    _, _, rest = body.partition("'''")
    text, _, _ = rest.rpartition("'''")
    return text.strip("\n") + "\n"


def _with_origins(define: Callable[..., str], generated: Generated) -> Callable[..., str]:
    def define_kernel(self: Any, src_code: str, node_schedule: Any, kernel: Any) -> str:
        name = define(self, src_code, node_schedule, kernel)
        found = set()
        for node in node_schedule:
            for origin in getattr(getattr(node, "node", None), "origins", ()):
                op = origin.meta.get("original_aten") or origin.target
                found.add(str(getattr(op, "_overloadpacket", op)))
        generated.origins.setdefault(name, tuple(sorted(found)))
        return name

    return define_kernel


def _with_two_reduced(create: Callable[..., Any]) -> Callable[..., Any]:
    """A tiling with no more reduced dims than Inductor has names for: it asserts so, and does not see to
    it."""

    def create_tiling(parallel: Sequence[Any], reduced: Sequence[Any]) -> Any:
        if len(reduced) > 2:
            reduced = (math.prod(reduced[:-1]), reduced[-1])
        return create(parallel, reduced)

    return create_tiling


def _with_base(access: Callable[..., Any]) -> Callable[..., Any]:
    """A load or store of a view of another buffer, as one of that buffer at an offset."""

    def method(self: Any, name: str, index: Any, *args: Any, **kwargs: Any) -> Any:
        base, offset = resolve_view(name)
        return access(self, base, index + offset, *args, **kwargs)

    return method


def resolve_view(name: str) -> tuple[str, int]:
    """The buffer that owns the memory of Inductor's `name`, and the element of it at which `name` starts."""
    from torch._inductor.ir import NonOwningLayout
    from torch._inductor.virtualized import V

    offset = 0
    while True:
        buffer = V.graph.try_get_buffer(name)
        layout = buffer.maybe_get_layout() if buffer is not None else None
        if not isinstance(layout, NonOwningLayout):
            return name, offset
        offset += int(layout.view.get_layout().offset)
        name = layout.view.get_name()
