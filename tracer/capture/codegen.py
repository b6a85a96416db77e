"""From one op call to the Triton kernels that Inductor writes for it. Nothing is compiled or executed."""

from __future__ import annotations

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
from tracer.capture.buffers import Result, collect
from tracer.capture.decompositions import table
from tracer.capture.errors import (
    CodegenFailure,
    DataDependent,
    ExternKernel,
    RandomOp,
)
from tracer.capture.kernel import CapturedOp
from tracer.capture.recurrent import FunctionalLayers
from tracer.capture.relaid import Operations
from tracer.errors import HarvestError
from tracer.models.op_call import OpCall, TensorSpec
from tracer.models.replay import empty_tensors, replay
from tracer.target import SPYRE, SpyreTarget


def capture(call: OpCall, target: SpyreTarget = SPYRE) -> CapturedOp:
    """The Triton kernels that Inductor generates for `call`, and the buffers between them.

    The text depends on `call` and `target` alone. A call that needs no kernel (its results are views, or
    hold no element) gives a CapturedOp without kernels.

    Raises:
        ExternKernel: Inductor would call a library.
        DataDependent: the result's shape depends on values.
        RandomOp: the op draws random numbers.
        RelaidInput: the op computes, and gives an input another layout in place.
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


def _capture(call: OpCall, generated: inductor.Generated) -> CapturedOp:
    mode = FakeTensorMode()
    with mode:
        results, written, relaid = _results(call)
        fresh = [index for index, result in enumerate(results) if result.source is None]
        inputs = empty_tensors(call.tensors)
        graph_module = _nothing(inputs) if relaid else _aten_graph(call, inputs, fresh)
    written = sorted({*written, *_copied_to(graph_module)})
    _refuse_random(graph_module)
    specs = [results[index].spec for index in fresh]
    _own_memory(graph_module, specs)
    output = graph_module.graph.output_node()
    output.meta["user_visible_output_idxs"] = list(range(len(fresh)))
    output.meta["original_output_strides"] = [spec.stride for spec in specs]
    lowered = _lower(graph_module, inputs, mode)
    return collect(call, lowered, generated, results, written)


def _results(call: OpCall) -> tuple[list[Result], list[int], bool]:
    """What the op returns, which inputs it says that it writes, and whether it only gives them other layouts.

    From one run on fake tensors.
    """
    inputs = empty_tensors(call.tensors)
    storages = {t.untyped_storage()._cdata: index for index, t in enumerate(inputs)}
    versions = [t._version for t in inputs]
    with Operations() as operations:
        tensors = [leaf for leaf in tree_leaves(replay(call, inputs)) if isinstance(leaf, torch.Tensor)]
    results = []
    for tensor in tensors:
        storage = tensor.untyped_storage()._cdata
        spec = TensorSpec(
            tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), str(tensor.dtype)
        )
        results.append(Result(spec, storages.get(storage)))
    if operations.relay(call.tensors, inputs):
        return results, [], True
    return results, [index for index, t in enumerate(inputs) if t._version != versions[index]], False


def _nothing(inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(lambda *_: [])(*inputs)


def _copied_to(graph_module: torch.fx.GraphModule) -> list[int]:
    """Inputs that the graph writes: some ops (batch_norm) do not say that they do."""
    inputs = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    return [index for index, node in enumerate(inputs) if any(_writes(user, node) for user in node.users)]


def _writes(node: torch.fx.Node, target: torch.fx.Node) -> bool:
    return node.target is torch.ops.aten.copy_.default and node.args[0] is target


def _aten_graph(call: OpCall, inputs: list[torch.Tensor], fresh: list[int]) -> torch.fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = [leaf for leaf in tree_leaves(replay(call, tensors)) if isinstance(leaf, torch.Tensor)]
        return [leaves[index] for index in fresh]

    functional: Callable[..., Any] = torch.func.functionalize(run, remove="mutations")
    with sdpa_kernel(SDPBackend.MATH), FunctionalLayers():
        graph_module = make_fx(lambda *tensors: functional(*tensors), decomposition_table=table())(*inputs)
        if _mutates_intermediates(graph_module):
            # Some decompositions work in place themselves.
            functional = torch.func.functionalize(graph_module, remove="mutations")
            graph_module = make_fx(lambda *tensors: functional(*tensors))(*inputs)
    return graph_module


def _own_memory(graph_module: torch.fx.GraphModule, specs: list[TensorSpec]) -> None:
    """Copy what the op returns as a whole and its decomposition as a part of something larger."""
    output = graph_module.graph.output_node()
    returned: Any = output.args[0]
    copies = []
    for node, spec in zip(returned, specs, strict=True):
        value = node.meta["val"]
        is_part = value.untyped_storage().nbytes() > value.numel() * value.element_size() > 0
        if is_part and value.stride() != spec.stride and spec.stride == _contiguous(spec.shape):
            with graph_module.graph.inserting_before(output), value.fake_mode:
                clone = torch.ops.aten.clone.default
                options: Any = {"memory_format": torch.contiguous_format}
                node = graph_module.graph.call_function(clone, (node,), options)
                node.meta["val"] = clone(value, **options)
        copies.append(node)
    output.args = (copies,)
    graph_module.recompile()


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return torch.empty(shape, device="meta").stride()


def _mutates_intermediates(graph_module: torch.fx.GraphModule) -> bool:
    return any(
        isinstance(node.target, torch._ops.OpOverload)
        and node.target._schema.is_mutable
        and not (node.target is torch.ops.aten.copy_.default and _is_input(node.args[0]))
        for node in graph_module.graph.nodes
    )


def _is_input(value: Any) -> bool:
    """Whether a copy into this node is how an op ends that writes to its input."""
    return isinstance(value, torch.fx.Node) and value.op == "placeholder"


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
