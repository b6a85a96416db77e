"""From one op call to the Triton kernels that Inductor writes for it. Nothing is compiled or executed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._pytree import tree_leaves

from tracer.capture import inductor
from tracer.capture.decompositions import table
from tracer.capture.errors import (
    CodegenFailure,
    DataDependent,
    ExternKernel,
    HostData,
    LayoutMismatch,
    RandomOp,
    UnknownBuffer,
)
from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.errors import HarvestError
from tracer.models.op_call import OpCall, TensorSpec
from tracer.models.replay import empty_tensors, replay, tensor_names
from tracer.target import SPYRE, SpyreTarget


def capture(call: OpCall, target: SpyreTarget = SPYRE) -> CapturedOp:
    """The Triton kernels that Inductor generates for `call`, and the buffers between them.

    The text depends on `call` and `target` alone. A call that needs no kernel (its results are views, or
    hold no element) gives a CapturedOp without kernels.

    Raises:
        ExternKernel: Inductor would call a library.
        DataDependent: the result's shape depends on values.
        RandomOp: the op draws random numbers.
        HostData: the op copies numbers from Python that no kernel can hold.
        CodegenFailure: Inductor raised.
        MovedNames: the installed PyTorch is not the pinned one.
    """
    generated = inductor.Generated()
    with inductor.patched(target, generated):
        try:
            return _capture(call, generated)
        except HarvestError:
            raise
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise DataDependent(detail=str(error)) from error
        except Exception as error:
            raise CodegenFailure(detail=_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


@dataclasses.dataclass(frozen=True)
class _Result:
    """One tensor that the op returns: its layout, and the input whose memory it is, if any."""

    spec: TensorSpec
    source: int | None


def _capture(call: OpCall, generated: inductor.Generated) -> CapturedOp:
    mode = FakeTensorMode()
    with mode:
        results, written = _results(call)
        fresh = [index for index, result in enumerate(results) if result.source is None]
        inputs = empty_tensors(call.tensors)
        graph_module = _aten_graph(call, inputs, fresh)
    _refuse_random(graph_module)
    specs = [results[index].spec for index in fresh]
    output = graph_module.graph.output_node()
    output.meta["user_visible_output_idxs"] = list(range(len(fresh)))
    output.meta["original_output_strides"] = [spec.stride for spec in specs]
    lowered = _lower(graph_module, inputs, mode)
    return _collect(call, lowered, generated, results, written)


def _results(call: OpCall) -> tuple[list[_Result], list[int]]:
    """What the op returns and which inputs it writes, from one run on fake tensors."""
    inputs = empty_tensors(call.tensors)
    storages = {t.untyped_storage()._cdata: index for index, t in enumerate(inputs)}
    versions = [t._version for t in inputs]
    tensors = [leaf for leaf in tree_leaves(replay(call, inputs)) if isinstance(leaf, torch.Tensor)]
    results = []
    for tensor in tensors:
        storage = tensor.untyped_storage()._cdata
        spec = TensorSpec(
            tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), str(tensor.dtype)
        )
        results.append(_Result(spec, storages.get(storage)))
    written = [index for index, t in enumerate(inputs) if t._version != versions[index]]
    return results, written


def _aten_graph(call: OpCall, inputs: list[torch.Tensor], fresh: list[int]) -> torch.fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = [leaf for leaf in tree_leaves(replay(call, tensors)) if isinstance(leaf, torch.Tensor)]
        return [leaves[index] for index in fresh]

    functional: Callable[..., Any] = torch.func.functionalize(run, remove="mutations")
    with sdpa_kernel(SDPBackend.MATH):
        graph_module = make_fx(lambda *tensors: functional(*tensors), decomposition_table=table())(*inputs)
        if _mutates_intermediates(graph_module):
            # Some decompositions work in place themselves.
            functional = torch.func.functionalize(graph_module, remove="mutations")
            graph_module = make_fx(lambda *tensors: functional(*tensors))(*inputs)
    return graph_module


def _mutates_intermediates(graph_module: torch.fx.GraphModule) -> bool:
    return any(
        isinstance(node.target, torch._ops.OpOverload)
        and node.target._schema.is_mutable
        and node.target is not torch.ops.aten.copy_.default
        for node in graph_module.graph.nodes
    )


def _refuse_random(graph_module: torch.fx.GraphModule) -> None:
    random = sorted(
        {
            str(node.target)
            for node in graph_module.graph.nodes
            if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        }
    )
    if random:
        raise RandomOp(aten_ops=", ".join(random))


def _lower(graph_module: torch.fx.GraphModule, inputs: list[torch.Tensor], mode: FakeTensorMode) -> Any:
    from torch._inductor.fx_passes.post_grad import post_grad_passes
    from torch._inductor.graph import GraphLowering
    from torch._inductor.ir import ExternKernel as ExternNode
    from torch._inductor.ir import MultiOutput
    from torch._inductor.virtualized import V

    with V.set_fake_mode(mode):
        post_grad_passes(graph_module, is_inference=True)
        graph = GraphLowering(graph_module, example_inputs=inputs, is_inference=True)
        with V.set_graph_handler(graph):
            graph.run(*inputs)
            # MultiOutput nodes only pick results of the call before them.
            nodes = [
                node
                for node in graph.operations
                if isinstance(node, ExternNode) and not isinstance(node, MultiOutput)
            ]
            extern = sorted({_extern_name(node) for node in nodes})
            if extern:
                raise ExternKernel(aten_ops=", ".join(extern))
            graph.codegen()
    return graph


def _extern_name(node: Any) -> str:
    op = getattr(node, "op_overload", None)
    return (
        str(op) if op is not None else str(getattr(node, "python_kernel_name", None) or type(node).__name__)
    )


def _collect(
    call: OpCall, graph: Any, generated: inductor.Generated, results: list[_Result], written: list[int]
) -> CapturedOp:
    from torch._inductor.virtualized import V

    names = tensor_names(call)
    buffers = [Buffer(name, "input", spec) for name, spec in zip(names, call.tensors, strict=True)]
    renamed = dict(zip(graph.graph_inputs, names, strict=True))
    with V.set_graph_handler(graph):
        outputs, returned = _outputs(graph, results, call, names, renamed)
        kernels = []
        intermediates: list[Buffer] = []
        for launch in generated.launches:
            arguments: list[tuple[str, str | int]] = []
            for parameter, argument in zip(launch.signature, launch.arguments, strict=False):
                if isinstance(argument, str):
                    owner, _ = inductor.resolve_view(argument)
                    if owner not in renamed:
                        renamed[owner] = f"buf{len(intermediates)}"
                        intermediates.append(
                            Buffer(renamed[owner], "intermediate", _layout(graph, launch.kernel, owner))
                        )
                    argument = renamed[owner]
                arguments.append((parameter, argument))
            kernels.append(_kernel(launch, generated, tuple(arguments)))
    # A view of memory that only later turned out to be an intermediate learns its public name.
    returned = [dataclasses.replace(b, base=renamed.get(b.base, b.base)) if b.base else b for b in returned]
    return CapturedOp(
        call=call,
        buffers=(*buffers, *intermediates, *returned),
        kernels=tuple(kernels),
        outputs=outputs or tuple(names[index] for index in written),
    )


def _kernel(
    launch: inductor.Launch, generated: inductor.Generated, arguments: tuple[tuple[str, str | int], ...]
) -> CapturedKernel:
    types = []
    for parameter, value in arguments:
        kind = launch.signature[parameter]
        types.append((parameter, "i32" if kind == "constexpr" and isinstance(value, int) else kind))
    return CapturedKernel(
        name=launch.kernel,
        source=generated.sources[launch.kernel],
        arguments=arguments,
        signature=tuple(types),
        mutated=tuple(
            parameter for parameter, _ in arguments if parameter.startswith(("out_ptr", "in_out_ptr"))
        ),
        origins=generated.origins.get(launch.kernel, ()),
    )


def _layout(graph: Any, kernel: str, name: str) -> TensorSpec:
    if name in graph.constants:
        raise HostData(elements=graph.constants[name].numel())
    buffer = graph.try_get_buffer(name)
    if buffer is None:
        raise UnknownBuffer(kernel=kernel, argument=name)
    layout = buffer.get_layout()
    return _spec(layout, int(layout.offset))


def _outputs(
    graph: Any, results: list[_Result], call: OpCall, names: tuple[str, ...], renamed: dict[str, str]
) -> tuple[tuple[str, ...], list[Buffer]]:
    """The buffers that the op returns; `renamed` learns Inductor's names of those that kernels write."""
    nodes = iter(graph.graph_outputs)
    outputs: list[str] = []
    buffers: list[Buffer] = []
    for index, result in enumerate(results):
        name = "out" if len(results) == 1 else f"out{index}"
        if result.source is not None:
            source = call.tensors[result.source]
            if (result.spec.shape, result.spec.stride, result.spec.offset) == (
                source.shape,
                source.stride,
                0,
            ):
                outputs.append(names[result.source])
                continue
            buffer = Buffer(name, "output", result.spec, base=names[result.source])
        else:
            buffer = _fresh_output(graph, next(nodes), name, result.spec, renamed)
        outputs.append(buffer.name)
        buffers.append(buffer)
    return tuple(outputs), buffers


def _fresh_output(graph: Any, node: Any, name: str, spec: TensorSpec, renamed: dict[str, str]) -> Buffer:
    """An output in memory of its own: the whole of what kernels write, or a view of it."""
    layout = node.get_layout()
    owner, offset = inductor.resolve_view(node.get_name())
    found = _spec(layout, offset + int(layout.offset))
    expected = dataclasses.replace(spec, offset=found.offset)
    if not _same_layout(expected, found):
        raise LayoutMismatch(output=name, expected=str(expected), found=str(found))
    if owner not in renamed and _covers(expected, graph, owner):
        renamed[owner] = name
        return Buffer(name, "output", spec)
    return Buffer(name, "output", expected, base=renamed.get(owner, owner))


def _spec(layout: Any, offset: int) -> TensorSpec:
    return TensorSpec(
        tuple(int(n) for n in layout.size), tuple(int(n) for n in layout.stride), offset, str(layout.dtype)
    )


def _same_layout(left: TensorSpec, right: TensorSpec) -> bool:
    if (left.shape, left.dtype, left.offset) != (right.shape, right.dtype, right.offset):
        return False
    # The stride of an extent of one is never used.
    return all(
        a == b or n == 1 or 0 in left.shape
        for n, a, b in zip(left.shape, left.stride, right.stride, strict=True)
    )


def _covers(spec: TensorSpec, graph: Any, owner: str) -> bool:
    whole = math.prod(int(n) for n in graph.get_buffer(owner).get_layout().size)
    return spec.offset == 0 and math.prod(spec.shape) == whole and 0 not in spec.stride
