"""Parameters and descriptors of the emitted kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tracer.rewrite.access import Access, Dim
from tracer.rewrite.axes import Axis
from tracer.rewrite.kernel import Parameter
from tracer.rewrite.layout import call
from tracer.rewrite.split import LETTERS
from tracer.rewrite.types import POINTER

INT32_LIMIT = 2**31


@dataclass(frozen=True)
class Descriptor:
    """One `tl.make_tensor_descriptor` of the kernel, and the parameters that describe it."""

    name: str
    param: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    block: tuple[str, ...]
    starts: tuple[str, ...]
    lows: tuple[str, ...]
    sizes: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    parameters: tuple[Parameter, ...]

    def text(self, depth: int) -> list[str]:
        """The statement that makes it."""
        items = [
            self.param,
            f"shape=[{', '.join(self.shape)}]",
            f"strides=[{', '.join(self.strides)}]",
            f"block_shape=[{', '.join(self.block)}]",
        ]
        return call(f"{self.name} = tl.make_tensor_descriptor", items, "", depth)


def size_name(axis: Axis) -> str:
    """Runtime extent of an axis."""
    return f"{axis.name}_size"


def block_text(axis: Axis, blocks: dict[Axis, int]) -> str:
    """Block of an axis in the source: a constexpr, or the literal 1 where it is single by nature."""
    return f"{axis.name.upper()}_BLOCK" if blocks[axis] > 1 else "1"


def integer(name: str, value: int) -> Parameter:
    """A runtime integer parameter."""
    return Parameter(name, "i32" if abs(value) < INT32_LIMIT else "i64", value)


def descriptors_of(
    accesses: tuple[Access, ...], blocks: dict[Axis, int], count: dict[str, int]
) -> dict[Access, Descriptor]:
    """A descriptor for every access; accesses of one shape to one pointer share theirs.

    `count` holds how many descriptors each pointer has already, and is brought up to date.
    """
    shared: dict[tuple[str, tuple[Dim, ...]], Descriptor] = {}
    found: dict[Access, Descriptor] = {}
    for access in accesses:
        param = access.statement.param
        key = (param, tuple(_shape_of(dim) for dim in access.dims))
        if key not in shared:
            ordinal = count[param] = count.get(param, 0) + 1
            base = param.replace("_ptr", "")
            shared[key] = _descriptor(access, base if ordinal == 1 else f"{base}_{ordinal}", blocks)
        found[access] = shared[key]
    return found


def _shape_of(dim: Dim) -> Dim:
    return replace(dim, value="value" if dim.value else None)


def _descriptor(access: Access, name: str, blocks: dict[Axis, int]) -> Descriptor:
    parameters: list[Parameter] = []

    def runtime(suffix: str, value: int) -> str:
        parameters.append(integer(f"{name}_{suffix}", value))
        return parameters[-1].name

    shape, strides, block, starts, lows, sizes, steps = [], [], [], [], [], [], []
    lanes = access.lanes(blocks)
    extra = lanes and not access.open_last
    for position, dim in enumerate(access.dims):
        last = position == len(access.dims) - 1 and not extra
        label = dim.axis.name if dim.axis else f"d{position}"
        steps.append(tuple(runtime(f"step_{axis.name}", step) for axis, step in dim.steps))
        start = runtime(f"start_{label}", dim.start) if dim.start else ""
        lows.append(runtime(f"low_{label}", dim.low) if dim.low else "")
        if dim.axis is not None and dim.low is None:
            extent = size_name(dim.axis)
        elif dim.value is not None or dim.low is not None or dim.steps:
            extent = runtime(f"size_{label}", dim.extent)
        else:
            extent = "1"
        shape.append(f"{start} + {extent}" if start else extent)
        strides.append("1" if last else runtime(f"stride_{label}", dim.stride))
        sizes.append(extent)
        block.append(block_text(dim.axis, blocks) if dim.axis else "1")
        starts.append(start)
    if extra:
        shape.append("1")
        strides.append("1")
        block.append(str(lanes))
    elif lanes:
        block[-1] = str(lanes)
    return Descriptor(
        name,
        access.statement.param,
        tuple(shape),
        tuple(strides),
        tuple(block),
        tuple(starts),
        tuple(lows),
        tuple(sizes),
        tuple(steps),
        tuple(parameters),
    )


def parameters_of(
    params: dict[str, tuple[str, str]], descriptors: list[Descriptor], blocks: dict[Axis, int], cores: int
) -> tuple[Parameter, ...]:
    """All kernel parameters in kernel order.

    `params` maps a pointer to (buffer name, Triton dtype); `blocks` has every axis of every region.
    """
    used = {d.param for d in descriptors}
    pointers = [Parameter(p, POINTER[dtype], buffer) for p, (buffer, dtype) in params.items() if p in used]
    sizes = [integer(size_name(axis), axis.extent) for axis in blocks]
    layout = [p for d in descriptors for p in d.parameters]
    constexprs = [Parameter(block_text(a, blocks), "constexpr", b) for a, b in blocks.items() if b > 1]
    return (*pointers, *sizes, *layout, *constexprs, Parameter("CORES", "constexpr", cores))


def grouped(parameters: tuple[Parameter, ...], descriptors: list[Descriptor]) -> list[list[str]]:
    """The parameters as they are declared: pointers, extents of each region, layout of each descriptor,
    constexprs."""
    layout = {p.name: d.name for d in descriptors for p in d.parameters}
    found: dict[str, list[str]] = {}
    for p in parameters:
        if p.type == "constexpr":
            found.setdefault("constexpr", []).append(f"{p.name}: tl.constexpr")
        elif p.type.startswith("*"):
            found.setdefault("pointers", []).append(p.name)
        else:
            region = next(letters for letters in LETTERS if p.name[0] in letters or p.name in layout)
            found.setdefault(layout.get(p.name, region), []).append(p.name)
    return list(found.values())
