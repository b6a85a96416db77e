"""Literals that are extents of what the kernel accesses become the runtime parameters that hold them.

Inductor writes the traced extents into its kernels as numbers: it wraps a negative index by adding the
extent of the dim, clamps one to the last element, and guards a padded read by the ends of the buffer. The
extent is a parameter of the descriptor as well, and a kernel that is called at another extent needs one
truth, not two.

Equal numbers prove nothing. A literal is tied to an extent only by the access that it serves: the value
that it makes is the coordinate along that very dim, or the mask that holds it is the one from which the
bounds of that dim were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import sympy

from tracer.rewrite.access import Access, Dim
from tracer.rewrite.axes import Axis
from tracer.rewrite.guards import comparison
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Load, Modulo, Operand, Statement
from tracer.rewrite.signature import Descriptor
from tracer.rewrite.simplify import drop_dead


def name_extents(
    kernel: Kernel,
    axes: tuple[Axis, ...],
    descriptors: Mapping[Access, Descriptor],
    numel: Mapping[str, int],
) -> Kernel:
    """The kernel of one region with every literal that is surely an extent named after its parameter.

    `numel` is how many elements lie behind each pointer.
    """
    found = _Extents(kernel, axes)
    for access, descriptor in descriptors.items():
        for position, dim in enumerate(access.dims):
            if dim.value is not None and not dim.start and found.fills(access, dim, numel):
                found.coordinate(dim.value, dim.extent, descriptor.sizes[position])
            if dim.low is not None and dim.axis is not None and isinstance(access.statement, Load):
                found.mask(access.statement.mask, dim, descriptor.lows[position], descriptor.sizes[position])
    return kernel.with_body(tuple(drop_dead(found.body())))


@dataclass
class _Extents:
    kernel: Kernel
    axes: tuple[Axis, ...]
    changed: dict[str, Statement] = field(default_factory=dict)
    added: dict[str, Index] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.defined = {s.name: s for s in self.kernel.body if s.name}
        self.asserted = dict(self.kernel.bounds)

    def body(self) -> list[Statement]:
        """The statements with their literals named."""
        return [*self.added.values(), *(self.changed.get(s.name, s) for s in self.kernel.body)]

    def fills(self, access: Access, dim: Dim, numel: Mapping[str, int]) -> bool:
        """Whether the extent is that of the buffer, not only what bounds the values that occur."""
        if self.asserted.get(dim.value or "") == dim.extent:
            return True
        wider = min((d.stride for d in access.dims if d.stride > dim.stride), default=None)
        if wider is None:
            return dim.extent == (numel[access.statement.param] - 1) // dim.stride + 1
        return dim.extent * dim.stride == wider

    def coordinate(self, operand: Operand, extent: int, name: str) -> None:
        """Name `extent` in the wrap-around, the clamp or the modulo that makes the coordinate `operand`."""
        statement = self.defined.get(operand) if isinstance(operand, str) else None
        if isinstance(statement, Index):
            self.wrapped_index(statement, extent, name)
        if not isinstance(statement, Compute) or statement.name in self.changed:
            return
        match statement.op, statement.args:
            case "cast", (inner,):
                self.coordinate(inner, extent, name)
            case "maximum", (inner, Const(value=0)) | (Const(value=0), inner):
                self.coordinate(inner, extent, name)
            case "minimum", _:
                self.put(statement, extent - 1, f"{name} - 1")
            case "mod", (_, Const()):
                self.put(statement, extent, name)
            case "where", (_, first, second):
                for one, other in ((first, second), (second, first)):
                    self.wrap(one, other, extent, name)
                    self.coordinate(one, extent, name)

    def wrap(self, one: Operand, other: Operand, extent: int, name: str) -> None:
        """`one` is `other + extent`: the wrap-around of a negative coordinate."""
        statement = self.defined.get(one) if isinstance(one, str) else None
        if isinstance(statement, Compute) and statement.op == "add" and other in statement.args:
            self.put(statement, extent, name)

    def wrapped_index(self, statement: Index, extent: int, name: str) -> None:
        """`(x0 + 11) % 14` as a coordinate below 14."""
        if isinstance(statement.index, Modulo) and statement.index.args[1] == extent:
            period = sympy.Symbol(name, integer=True, positive=True)
            index = Modulo(statement.index.args[0], period)
            self.changed[statement.name] = replace(statement, index=index)

    def put(self, statement: Compute, value: int, name: str) -> None:
        """Name the literal `value` among the arguments of `statement`, unless an earlier dim named it."""
        args = tuple(
            replace(arg, text=name) if isinstance(arg, Const) and arg.value == value else arg
            for arg in statement.args
        )
        if args != statement.args:
            self.changed.setdefault(statement.name, replace(statement, args=args))

    def mask(self, mask: Operand | None, dim: Dim, low: str, size: str) -> None:
        """Compare the axis itself with the ends of the dim, where the mask does so by way of literals."""
        statement = self.defined.get(mask) if isinstance(mask, str) else None
        if not isinstance(statement, Compute) or dim.axis is None or dim.low is None:
            return
        if statement.op == "and":
            for operand in statement.args:
                self.mask(operand, dim, low, size)
            return
        found = comparison(statement, self.defined, self.axes)
        if found is None or found[0] != dim.axis or statement.name in self.changed:
            return
        interval, high = found[1], dim.low + dim.extent
        index = Index(f"tmp_{dim.axis.name}", dim.axis.symbol, "int32", statement.line)
        if (interval.low, interval.high) == (dim.low, dim.axis.extent) and dim.low:
            limit, op = Const(dim.low, "int32", low), "ge"
        elif (interval.low, interval.high) == (0, high) and high < dim.axis.extent:
            limit, op = Const(high, "int32", f"{low} + {size}" if low else size), "lt"
        else:
            return
        self.added[index.name] = index
        self.changed[statement.name] = replace(statement, op=op, args=(index.name, limit))
