"""KTIR functions to Python functions, one line of Python per operation.

SSA values become local variables, loops become Python loops, and every operation with work to do becomes
a call of a closure built once. A function that communicates between cores becomes a generator. The line
of generated code an exception passes through tells which operation failed.

This module is the compiler without the operations it knows: modules that emit operations register
themselves here, and `compile` brings both together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import Block, Operation, Region, SSAValue

from tracer.ktir.diagnostics import KtirError, at
from tracer.ktir.dialect.region_ops import BRANCHES
from tracer.ktir.simulator.compat import two_step_rsqrt
from tracer.ktir.simulator.dtypes import Element, UnsupportedTypeError, element, is_tensor, rounder, wrap
from tracer.ktir.simulator.dynamic import alike, elements, is_dynamic, shapes_of
from tracer.ktir.simulator.liveness import Held, element_bytes
from tracer.ktir.simulator.per_element import differing_results
from tracer.ktir.simulator.scalar_ops import CMPI, predicate_of, scalar_function
from tracer.ktir.simulator.tensor_ops import tile_function

_COUNTER = iter(range(1 << 62))


class Unsupported(Exception):
    """An operation, or a use of one, that the simulator does not run."""


@dataclass
class Program:
    """A compiled function: `run(session, x, y, z, *args)`, a generator where `collective`."""

    name: str
    run: Callable[..., Any]
    filename: str
    ops: dict[int, Operation]
    collective: bool
    source: str


Emitter = Callable[["Compiler", Operation], None]
EMITTERS: dict[str, Emitter] = {}


def emits(*names: str) -> Callable[[Emitter], Emitter]:
    """Register the emitter of operations."""

    def register(emitter: Emitter) -> Emitter:
        for name in names:
            EMITTERS[name] = emitter
        return emitter

    return register


@dataclass
class Compiler:
    """State of compiling one function. `keep`, where given, is the set of operations whose values are
    needed.
    """

    module: ModuleOp
    keep: set[Operation] | None = None
    probe: Callable[[Operation], Callable[[Any], None]] | None = None
    counts: bool = False
    compat: bool = False
    marks: Set[Operation] = frozenset()
    lines: list[str] = field(default_factory=list)
    ops: dict[int, Operation] = field(default_factory=dict)
    names: dict[SSAValue, str] = field(default_factory=dict)
    space: dict[str, Any] = field(default_factory=dict)
    indent: int = 1
    vector: bool = False
    collective: bool = False
    current: Operation | None = None
    extents: dict[Operation, str] = field(default_factory=dict)
    """Local variables that hold the extents of the loops of generics over dynamic tiles."""
    shaped: Set[Operation] = frozenset()
    """Operations whose executions are counted by core and by the shapes of their operands and results."""
    held: dict[Operation, Held] = field(default_factory=dict)
    """What cores hold at operations, in functions where only a run can tell how much that is."""

    def line(self, text: str) -> None:
        """Append one line of Python that belongs to the current operation."""
        self.lines.append("    " * self.indent + text)
        if self.current is not None:
            self.ops[len(self.lines)] = self.current

    def bind(self, value: Any, prefix: str = "k") -> str:
        """A global name for a constant or closure."""
        name = f"{prefix}{len(self.space)}"
        self.space[name] = value
        return name

    def define(self, value: SSAValue) -> str:
        """The local variable of a value, created on first use."""
        if value not in self.names:
            self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def use(self, value: SSAValue) -> str:
        """The expression for an operand; in a vectorised region outer scalars become 0-d tiles."""
        name = self.names[value]
        if self.vector and value not in self.tiles and not is_tensor(value.type):
            return f"{self.bind(_as_tile(element(value.type)), 't')}({name})"
        return name

    tiles: set[SSAValue] = field(default_factory=set)
    """Scalars of vectorised regions that are held as tiles."""
    differing: set[SSAValue] = field(default_factory=set)
    """Those of them that are not the same for all elements."""

    def uses(self, values: Sequence[SSAValue]) -> str:
        """Comma-separated operands."""
        return ", ".join(self.use(v) for v in values)

    def call(
        self, op: Operation, function: Callable[..., Any], operands: Sequence[SSAValue] | None = None
    ) -> None:
        """Emit `result = function(operands)`."""
        arguments = self.uses(op.operands if operands is None else operands)
        target = ", ".join(self.define(r) for r in op.results)
        self.line(
            f"{target} = {self.bind(function, 'f')}({arguments})"
            if target
            else f"{self.bind(function, 'f')}({arguments})"
        )

    def block(self, block: Block) -> None:
        """Emit every operation of a block but its terminator."""
        start = len(self.lines)
        for op in block.ops:
            self.op(op)
        if len(self.lines) == start:
            self.line("pass")

    def op(self, op: Operation) -> None:
        """Emit one operation. Raises KtirError KT117 where it is not supported."""
        outer, self.current = self.current, op
        try:
            if self.vector and not differing_results(op, self.differing):
                raise Unsupported(f"{op.name} on a scalar that differs from element to element")
            if op in self.marks:
                self.line(f"session.marked({self.bind(op, 'op')})")
            if self.counts and not self.vector and op.name not in _CONTROL:
                self.line(f"counts[{self.bind(op, 'op')}] += 1")
            if self.keep is not None and op not in self.keep and op.name not in _ALWAYS:
                for result in op.results:
                    self.line(f"{self.define(result)} = None")
                if not op.results:
                    self.line("pass")
                return
            held = self.held.get(op)
            after = held is not None and not held.values.isdisjoint(op.results)
            if held is not None and not after:
                self.measure(held)
            emitter = EMITTERS.get(op.name)
            if emitter is not None:
                emitter(self, op)
            else:
                self.plain(op)
            if held is not None and after:
                self.measure(held)
            if op in self.shaped and not self.vector:
                shapes = f"{self.bind(shapes_of, 'f')}({self.uses([*op.operands, *op.results])})"
                self.line(f"counts[session.core, {self.bind(op, 'op')}, {shapes}] += 1")
            if self.probe is not None and not self.vector and op.results:
                self.line(f"{self.bind(self.probe(op), 'p')}({self.uses(op.results)},)")
        except (UnsupportedTypeError, Unsupported) as error:
            raise KtirError([at(op, "KT117", str(error))]) from None
        finally:
            self.current = outer

    def measure(self, held: Held) -> None:
        """Tell the session how many bytes of tiles the core holds, where some have unknown extents."""
        count = self.bind(elements, "f")
        parts = [f"{element_bytes(v)} * {count}({self.use(v)})" for v in held.unknown]
        if parts:
            self.line(f"session.hold({self.bind(held.op, 'op')}, {' + '.join([str(held.known), *parts])})")

    def plain(self, op: Operation) -> None:
        """An arith or math op, on tiles or on scalars."""
        if self.vector or any(is_tensor(v.type) for v in (*op.operands, *op.results)):
            function: Any = tile_function(op)
            if self.compat and op.name == "math.rsqrt":
                function = two_step_rsqrt
        else:
            function = scalar_function(op)
            if self.compat and len(op.operands) == 2 and op.name in _HALF:
                function = _in_half(function)
        if function is None:
            raise Unsupported(f"{op.name} is not supported by the simulator")
        if is_dynamic(op):
            function = alike(function)
        if self.vector:
            self.tiles.update(op.results)
        elif (inline := _inline(op, self)) is not None:
            name = self.define(op.results[0])
            self.line(f"{name} = {inline}")
            if op.name in _INLINE_INT:
                # An index has 64 bits; the sum of a pointer and an index is a pointer.
                wrapped = f"{self.bind(wrap, 'f')}({name}, 64)"
                self.line(
                    f"if {name}.__class__ is int and not {-1 << 63} <= {name} < {1 << 63}: {name} = {wrapped}"
                )
            return
        self.call(op, function)

    def vectorised(self, region: Region, tiles: Sequence[SSAValue], stop: Operation | None = None) -> str:
        """A local Python function that runs a scalar region on whole tiles; returns its name.

        `stop` ends the body before that operation, whose non-argument operand is returned.
        """
        name = f"body{next(_COUNTER)}"
        block = region.block
        self.line(f"def {name}({', '.join(self.define(a) for a in block.args)}):")
        outer_vector, self.vector = self.vector, True
        self.tiles.update(tiles)
        self.differing.update(tiles)
        self.indent += 1
        returned: Sequence[SSAValue] = ()
        for op in block.ops:
            if op is stop:
                break
            if op.next_op is None:
                returned = op.operands
                break
            self.op(op)
        if stop is not None:
            returned = [v for v in stop.operands if v not in block.args[-1:]]
        self.line(f"return {self.uses(returned)}")
        self.indent -= 1
        self.vector = outer_vector
        return name


def weight(*blocks: Block) -> int:
    """Operations that one pass over blocks executes; nested loops count for themselves."""
    total = 0
    for block in blocks:
        for op in block.ops:
            total += 1
            if isinstance(op, BRANCHES):
                total += weight(*(b for region in op.regions for b in region.blocks))
    return total


_HALF = {f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "remf")}


def _in_half(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    half = rounder(element(f16))
    return lambda a, b: half(function(half(a), half(b)))


_CONTROL = {
    "scf.for", "scf.if", "scf.execute_region", "scf.index_switch", "scf.while", "scf.yield", "scf.condition",
    "scf.forall", "scf.forall.in_parallel", "scf.parallel", "scf.reduce", "func.return",
}  # fmt: skip
_ALWAYS = _CONTROL | {
    "ktdp.load",
    "ktdp.store",
    "ktdp.inter_tile_produce",
    "ktdp.inter_tile_reduce",
    "func.call",
}


def _as_tile(el: Element) -> Callable[[Any], torch.Tensor]:
    def convert(value: Any) -> torch.Tensor:
        return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=el.dtype)

    return convert


_INLINE_INT = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}
_INLINE_CMP = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}


def _inline(op: Operation, compiler: Compiler) -> str | None:
    """A Python expression for cheap scalar ops, so that index arithmetic costs no call."""
    names = [compiler.use(v) for v in op.operands]
    # One condition for whole tiles takes one of them.
    if op.name == "arith.select" and not is_tensor(op.operands[0].type):
        return f"{names[1]} if {names[0]} else {names[2]}"
    if any(is_tensor(v.type) for v in (*op.operands, *op.results)):
        return None
    if op.name in _INLINE_INT and element(op.results[0].type).name == "index":
        return f"{names[0]} {_INLINE_INT[op.name]} {names[1]}"
    if op.name == "arith.cmpi" and element(op.operands[0].type).bits > 1:
        sign = _INLINE_CMP.get(CMPI[predicate_of(op)])
        return f"{names[0]} {sign} {names[1]}" if sign else None
    if op.name == "arith.index_cast":
        source, result = element(op.operands[0].type), element(op.results[0].type)
        return names[0] if result.bits == 64 and source.bits > 1 else None
    return None


def finish_program(compiler: Compiler, function: func.FuncOp, *, collective: bool) -> Program:
    """Turn the emitted lines into a Python function."""
    source = "\n".join(compiler.lines) + "\n"
    name = function.sym_name.data
    filename = f"<ktir {name} {next(_COUNTER)}>"
    space = compiler.space
    exec(compile(source, filename, "exec"), space)
    return Program(name, space["program"], filename, compiler.ops, collective, source)
