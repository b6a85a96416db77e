"""A compiler whose tiles that differ between lanes get a leading dimension.

As with `compiler`, modules that emit operations register themselves here; `lanes_compile` brings both
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.simulator.compiler import Compiler, Unsupported
from tracer.ktir.simulator.dtypes import UnsupportedTypeError, element, is_tensor
from tracer.ktir.simulator.lanes import spread, take
from tracer.ktir.simulator.lanes_analysis import captured, inputs
from tracer.ktir.simulator.tensor_ops import tile_function

LaneEmitter = Callable[["LaneCompiler", Operation], None]
LANE_EMITTERS: dict[str, LaneEmitter] = {}


def lane_emits(*names: str) -> Callable[[LaneEmitter], LaneEmitter]:
    """Register how operations with varying operands are compiled."""

    def register(emitter: LaneEmitter) -> LaneEmitter:
        for name in names:
            LANE_EMITTERS[name] = emitter
        return emitter

    return register


@dataclass
class LaneCompiler(Compiler):
    """A compiler whose emitters know which values vary. `lanes` names the local variable that holds the
    lanes.
    """

    varying: set[SSAValue] = field(default_factory=set)
    lanes: str = "lanes"

    def op(self, op: Operation) -> None:
        """Emit with the base emitter where nothing varies. Raises Unsupported for what lanes cannot do."""
        if self.vector or not (op.name in _BY_LANE or self.varies(op)):
            super().op(op)
            return
        outer, self.current = self.current, op
        try:
            emitter = LANE_EMITTERS.get(op.name)
            if emitter is not None:
                emitter(self, op)
            elif op.name.startswith(("arith.", "math.")):
                self.elementwise(op)
            else:
                raise Unsupported(f"{op.name} on lanes")
        finally:
            self.current = outer

    def varies(self, op: Operation) -> bool:
        """Whether lanes may differ in an operand or result."""
        return (
            any(v in self.varying for v in (*inputs(op), *op.results))
            or op.name == "ktdp.get_compute_tile_id"
        )

    def elementwise(self, op: Operation) -> None:
        """arith and math: tiles broadcast over lanes by themselves, scalars become one-dimensional tiles."""
        if op.name in _POINTER_ARITHMETIC and element(op.results[0].type).name == "index":
            sign = _POINTER_ARITHMETIC[op.name]
            left, right = (self.use(v) for v in op.operands)
            self.line(f"{self.define(op.results[0])} = {left} {sign} {right}")
            return
        function = tile_function(op)
        if function is None:
            raise Unsupported(f"{op.name} on lanes")
        rank = max((len(v.type.get_shape()) for v in op.operands if is_tensor(v.type)), default=0)  # type: ignore[attr-defined]
        arguments = [self.aligned(v, rank) for v in op.operands]
        results = ", ".join(self.define(r) for r in op.results)
        self.line(f"{results} = {self.bind(function, 'f')}({', '.join(arguments)})")

    def aligned(self, value: SSAValue, rank: int) -> str:
        """An operand that broadcasts against tiles of that rank with a lane dimension in front."""
        name = self.use(value)
        if is_tensor(value.type):
            return name
        if value not in self.varying:
            dtype = element(value.type).dtype
            return f"{self.bind(lambda v, d=dtype: torch.tensor(v, dtype=d), 't')}({name})"
        return f"{name}.reshape({', '.join(['-1', *['1'] * rank])})" if rank else name

    def spread(self, value: SSAValue) -> str:
        """A value with a lane dimension in any case."""
        if value in self.varying:
            return self.use(value)
        if not is_tensor(value.type) and not hasattr(value.type, "width") and not is_number(value):
            raise Unsupported("a view cannot become one per lane")
        shape = tuple(value.type.get_shape()) if is_tensor(value.type) else None  # type: ignore[attr-defined]
        dtype = element(value.type).dtype
        return f"{self.bind(spread, 'f')}({self.use(value)}, {self.lanes}, {self.bind(dtype)}, {shape!r})"

    def selected(self, blocks: Sequence[Block], op: Operation, index: str) -> dict[SSAValue, str]:
        """Rebind the varying values that the regions of `op` use to the lanes at `index`; returns the old
        names.
        """
        old: dict[SSAValue, str] = {}
        taker = self.bind(take, "f")
        for value in captured(op):
            if value in self.varying and value in self.names:
                old[value] = self.names[value]
                fresh = f"s{len(self.lines)}_{len(old)}"
                self.line(f"{fresh} = {taker}({old[value]}, {index})")
                self.names[value] = fresh
        return old

    def inner(self, block: Block) -> None:
        """Emit the operations of a nested block."""
        start = len(self.lines)
        for op in block.ops:
            if op.next_op is not None or op.results or op.name.startswith("ktdp."):
                self.op(op)
        if len(self.lines) == start:
            self.line("pass")


# Where nothing varies, these still say which lanes take part.
_BY_LANE = {"scf.for", "scf.if", "ktdp.load", "ktdp.store", "ktdp.construct_indirect_access_tile"}
_POINTER_ARITHMETIC = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}


def is_number(value: SSAValue) -> bool:
    """Whether a scalar is a number, and no view or tile of coordinates."""
    try:
        element(value.type)
    except UnsupportedTypeError:
        return False
    return "memref" not in str(value.type) and "ktdp" not in str(value.type)
