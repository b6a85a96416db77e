"""Names and layouts of the buffers that an op's kernels share."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tracer.capture import inductor
from tracer.capture.errors import HostData, LayoutMismatch, UnknownBuffer
from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.models.op_call import OpCall, TensorSpec
from tracer.models.replay import tensor_names


@dataclasses.dataclass(frozen=True)
class Result:
    """One tensor that the op returns: its layout, and the input whose memory it is, if any."""

    spec: TensorSpec
    source: int | None


def collect(
    call: OpCall, graph: Any, generated: inductor.Generated, results: list[Result], written: list[int]
) -> CapturedOp:
    """The captured op: launches with their buffers under public names.

    `graph` is Inductor's lowered graph, `results` what the op returns, `written` the inputs it changes.
    """
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
    changed = tuple(names[index] for index in written if names[index] not in outputs)
    return CapturedOp(
        call=call,
        buffers=(*buffers, *intermediates, *returned),
        kernels=tuple(kernels),
        outputs=outputs + changed,
        returned=len(outputs or changed),
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
    graph: Any, results: list[Result], call: OpCall, names: tuple[str, ...], renamed: dict[str, str]
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
