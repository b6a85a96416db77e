"""Structured IR + plan -> readable Triton source.

Every value is a tile over the axes along which it varies, in axis order; a value whose axes all have block
1 is a scalar. Operands of lower rank are widened where they are used (`tmp2[:, None]`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import sympy

from tracer.rewrite.access import Access, Dim
from tracer.rewrite.axes import Axis
from tracer.rewrite.contract import Contraction, contraction
from tracer.rewrite.functions import OPS, REDUCTIONS
from tracer.rewrite.ir import Compute, Const, FloorDiv, Index, Kernel, Load, Modulo, Operand, Reduce, Scan, Statement, Store
from tracer.rewrite.layout import INDENT, assign
from tracer.rewrite.padding import zero_padded
from tracer.rewrite.signature import Descriptor, block_text, size_name
from tracer.rewrite.types import is_float, memory_dtype


@dataclass
class Emitter:
    """Writes the body of one kernel. `blocks` are the plan's; `looped` says that reductions run in blocks."""

    kernel: Kernel
    axes: tuple[Axis, ...]
    accesses: tuple[Access, ...]
    varies: dict[str, frozenset[Axis]]
    blocks: dict[Axis, int]
    looped: bool
    descriptors: dict[Access, Descriptor]
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    written: set[str] = field(default_factory=set)
    masked: set[Axis] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.access_of = {id(a.statement): a for a in self.accesses}
        self.reduced = tuple(a for a in self.axes if a.reduced)
        self.parallel = tuple(a for a in self.axes if not a.reduced)
        self.uses: dict[str, int] = {}
        for statement in self.kernel.body:
            for operand in statement.operands:
                if isinstance(operand, str):
                    self.uses[operand] = self.uses.get(operand, 0) + 1
        self.zero = zero_padded(self.kernel, self.accesses)
        self.defined = {s.name: s for s in self.kernel.body if s.name}

    # Tiles

    def tile(self, axes: frozenset[Axis]) -> tuple[Axis, ...]:
        """Axes of the dims of a value's tile; none where the value is a scalar."""
        if all(self.blocks[a] == 1 for a in axes):
            return ()
        return tuple(a for a in self.axes if a in axes)

    def shape(self, axes: tuple[Axis, ...]) -> str:
        """Block shape over `axes` as a list literal."""
        return f"[{', '.join(block_text(a, self.blocks) for a in axes)}]"

    def widen(self, text: str, have: tuple[Axis, ...], want: tuple[Axis, ...]) -> str:
        """`text`, a tile over `have`, indexed so that it broadcasts over `want`."""
        if not have or have == want:
            return text
        return f"{text}[{', '.join(':' if a in have else 'None' for a in want)}]"

    def text(self, operand: Operand, want: tuple[Axis, ...]) -> str:
        """An operand widened to broadcast over `want`."""
        if isinstance(operand, Const):
            return literal(operand)
        return self.widen(operand, self.tile(self.varies[operand]), want)

    # Lines

    def line(self, text: str) -> None:
        self.lines.append(f"{INDENT * self.depth}{text}" if text else "")

    def let(self, name: str, value: str) -> None:
        self.lines += assign(name, value, self.depth)

    # The kernel

    def body(self) -> list[str]:
        """All lines below the descriptors."""
        counts = []
        for axis in self.parallel:
            if self.blocks[axis] == 1:
                counts.append(size_name(axis))
            elif len(self.parallel) == 1:
                counts.append(f"tl.cdiv({size_name(axis)}, {block_text(axis, self.blocks)})")
            else:
                self.line(f"{axis.name}_tiles = tl.cdiv({size_name(axis)}, {block_text(axis, self.blocks)})")
                counts.append(f"{axis.name}_tiles")
        self.line(f"tiles = {' * '.join(counts)}")
        self.line("for tile in tl.range(tl.program_id(0), tiles, CORES):")
        self.depth += 1
        self.coordinates(counts)
        self.indices()
        if self.looped and self.reduced:
            self.passes()
        else:
            for statement in self.kernel.body:
                self.statement(statement)
        self.depth -= 1
        return self.lines

    def coordinates(self, counts: list[str]) -> None:
        """First element of the tile along every parallel axis; the last axis runs fastest."""
        remaining = "tile"
        for position in reversed(range(len(self.parallel))):
            axis = self.parallel[position]
            digit = remaining if position == 0 else f"{remaining} % {counts[position]}"
            self.line(f"{axis.name} = {self.scaled(digit, axis)}")
            remaining = f"{remaining} // {counts[position]}"

    def scaled(self, digit: str, axis: Axis) -> str:
        return digit if self.blocks[axis] == 1 else f"{digit} * {block_text(axis, self.blocks)}"

    def indices(self) -> None:
        """Element indices of the parallel axes that some value reads as numbers."""
        for axis in self.parallel:
            if self.blocks[axis] > 1 and self.read_as_value(axis):
                self.line(f"{axis.name}_index = {axis.name} + tl.arange(0, {block_text(axis, self.blocks)})")
        if not (self.looped and self.reduced):
            for axis in self.reduced:
                self.reduced_index(axis, "")

    def reduced_index(self, axis: Axis, start: str) -> None:
        index = f"tl.arange(0, {block_text(axis, self.blocks)})"
        index = f"{start} + {index}" if start else index
        masked = self.needs_mask(axis)
        if self.read_as_value(axis):
            self.line(f"{axis.name}_index = {index}")
            index = f"{axis.name}_index"
        if masked:
            self.line(f"{axis.name}_mask = {index} < {size_name(axis)}")

    def read_as_value(self, axis: Axis) -> bool:
        return any(isinstance(s, Index) and s.index.has(axis.symbol) for s in self.kernel.body)

    def needs_mask(self, axis: Axis) -> bool:
        return any(axis in self.unsafe(s) for s in self.kernel.body if isinstance(s, Reduce))

    def unsafe(self, statement: Reduce) -> tuple[Axis, ...]:
        """Reduced axes along which the padding of the reduced value is not the reduction's identity."""
        arg = statement.args[0]
        if not isinstance(arg, str):
            return self.reduced
        axes = tuple(a for a in self.reduced if self.blocks[a] > 1)
        if statement.kind == "dot":
            other = statement.args[1]
            return tuple(a for a in axes if not (a in self.zero[arg] and a in self.zero[str(other)]))
        if statement.kind in ("sum", "any"):
            return tuple(a for a in axes if a not in self.zero[arg])
        return axes

    # Reductions in blocks

    def passes(self) -> None:
        """One loop over the reduced axes for each level of reductions, recomputing what varies along them."""
        level = self.levels()
        last = max(level.values(), default=0)
        for current in range(last + 1):
            for statement in self.kernel.body:
                if not self.in_loop(statement) and self.level_of(statement, level) == current:
                    if not isinstance(statement, Reduce):
                        self.statement(statement)
            reductions = [s for s in self.kernel.body if isinstance(s, Reduce) and level[s.name] == current + 1]
            stores = [
                s for s in self.kernel.body
                if isinstance(s, Store) and self.in_loop(s) and self.level_of(s, level) == current
            ]  # fmt: skip
            if reductions or stores:
                self.loop(reductions, stores)

    def levels(self) -> dict[str, int]:
        """How many reductions in sequence stand before each value."""
        level: dict[str, int] = {}
        for s in self.kernel.body:
            if s.name:
                below = max((level[o] for o in s.operands if isinstance(o, str)), default=0)
                level[s.name] = below + isinstance(s, Reduce)
        return level

    def level_of(self, statement: Statement, level: dict[str, int]) -> int:
        if statement.name:
            return level[statement.name]
        return max((level[o] for o in statement.operands if isinstance(o, str)), default=0)

    def in_loop(self, statement: Statement) -> bool:
        if isinstance(statement, Reduce):
            return False
        if isinstance(statement, Store):
            return any(statement.index.has(a.symbol) for a in self.reduced)
        return bool(self.varies[statement.name] & set(self.reduced))

    def loop(self, reductions: list[Reduce], stores: list[Statement]) -> None:
        for reduction in reductions:
            self.line(f"{reduction.name} = {self.identity(reduction)}")
        for axis in self.reduced:
            self.line(f"for {axis.name} in tl.range(0, {size_name(axis)}, {block_text(axis, self.blocks)}):")
            self.depth += 1
            self.reduced_index(axis, axis.name)
        needed = self.cone([*reductions, *stores])  # values of earlier passes are computed again
        for statement in self.kernel.body:
            if statement.name in needed and self.in_loop(statement):
                self.statement(statement)
        for reduction in reductions:
            self.accumulate(reduction)
        for store in stores:
            self.statement(store)
        self.depth -= len(self.reduced)
        for reduction in reductions:
            self.finish(reduction)

    def cone(self, roots: list[Statement]) -> set[str]:
        needed: set[str] = set()
        pending = [o for root in roots for o in root.operands if isinstance(o, str)]
        while pending:
            name = pending.pop()
            if name not in needed:
                needed.add(name)
                statement = self.defined[name]
                if self.in_loop(statement):
                    pending += [o for o in statement.operands if isinstance(o, str)]
        return needed

    def identity(self, reduction: Reduce) -> str:
        if reduction.kind == "dot":
            return f"tl.zeros({self.dot_shape(self.roles(reduction))}, tl.float32)"
        shape = self.shape(self.tile(self.varies[reduction.name]))
        start = REDUCTIONS[reduction.kind].identity
        if not is_float(reduction.dtype):
            start = 0 if start == 0 else int(start) if math.isfinite(start) else _integer_limit(reduction.dtype, start)
        return f"tl.full({shape}, {literal(Const(start, reduction.dtype))}, tl.{reduction.dtype})"

    def accumulate(self, reduction: Reduce) -> None:
        if reduction.kind == "dot":
            a, b = self.dot_operands(reduction)
            self.let(reduction.name, f'tl.dot({a}, {b}, {reduction.name}, input_precision="ieee")')
            return
        rule = REDUCTIONS[reduction.kind]
        partial = self.reduced_text(reduction)
        self.let(reduction.name, OPS[rule.combine].text.format(reduction.name, partial))

    def finish(self, reduction: Reduce) -> None:
        """A dot's accumulator takes the shape of its value's tile."""
        if reduction.kind != "dot":
            return
        roles = self.roles(reduction)
        natural = (*self.role_axes(roles.batch), *self.role_axes(roles.m), *self.role_axes(roles.n))
        want = self.tile(self.varies[reduction.name])
        have_rank = (1 if roles.batch else 0) + 2
        text = reduction.name
        if not want:
            self.let(text, f"tl.sum({text})")
            return
        wide = tuple(a for a in natural if self.blocks[a] > 1)
        target = tuple(a for a in want if self.blocks[a] > 1)
        if wide != target:
            order = [wide.index(a) for a in target]
            if len(wide) == have_rank == len(want):
                self.let(text, f"tl.permute({text}, {order})")
                return
            self.let(text, f"tl.reshape({text}, {self.shape(wide)})")
            self.let(text, f"tl.permute({text}, {order})")
            if wide and len(want) != len(target):
                self.let(text, f"tl.reshape({text}, {self.shape(want)})")
            return
        if len(want) != have_rank or len(natural) != len(want):
            self.let(text, f"tl.reshape({text}, {self.shape(want)})")

    # Contractions

    def roles(self, reduction: Reduce) -> Contraction:
        return contraction(reduction, self.varies, self.axes)

    def role_axes(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """The one axis of a role that has a block above 1 (the others add nothing to the tile)."""
        wide = tuple(a for a in axes if self.blocks[a] > 1)
        return wide or axes[:1]

    def role_block(self, axes: tuple[Axis, ...]) -> str:
        chosen = self.role_axes(axes)
        return block_text(chosen[0], self.blocks) if chosen else "1"

    def dot_shape(self, roles: Contraction) -> str:
        batch = [self.role_block(roles.batch)] if roles.batch else []
        return f"[{', '.join([*batch, self.role_block(roles.m), self.role_block(roles.n)])}]"

    def dot_operands(self, reduction: Reduce) -> tuple[str, str]:
        roles = self.roles(reduction)
        batch = bool(roles.batch)
        a = self.dot_operand(reduction.args[0], (roles.batch, roles.m, roles.k) if batch else (roles.m, roles.k))
        b = self.dot_operand(reduction.args[1], (roles.batch, roles.n, roles.k) if batch else (roles.n, roles.k))
        unsafe = self.unsafe(reduction)
        if unsafe:
            a = self.mask_dot(a, roles, unsafe)
        b = f"tl.permute({b}, [0, 2, 1])" if batch else f"tl.trans({b})"
        return a, b

    def mask_dot(self, text: str, roles: Contraction, unsafe: tuple[Axis, ...]) -> str:
        axis = self.role_axes(roles.k)[0]
        index = "[None, None, :]" if roles.batch else "[None, :]"
        return f"tl.where({axis.name}_mask{index}, {text}, 0.0)"

    def dot_operand(self, operand: Operand, roles: tuple[tuple[Axis, ...], ...]) -> str:
        """An operand as a tile whose dims are the roles (batch, row, k), one dim each."""
        name = str(operand)
        have = self.tile(self.varies[name])
        if all(len(role) == 1 for role in roles) and have == tuple(axis for role in roles for axis in role):
            return name
        wide_have = tuple(a for a in have if self.blocks[a] > 1)
        wide_want = tuple(a for role in roles for a in role if self.blocks[a] > 1)
        text = name
        if wide_have != wide_want:
            if len(wide_have) != len(have):
                text = f"tl.reshape({text}, {self.shape(wide_have)})"
            text = f"tl.permute({text}, {[wide_have.index(a) for a in wide_want]})"
            have = wide_want
        if len(roles) == len(have) + 1 and not roles[-2] and have == wide_want:
            return f"{text}[{', '.join('None' if not role else ':' for role in roles)}]"
        return f"tl.reshape({text}, [{', '.join(self.role_block(role) for role in roles)}])"

    # Statements

    def statement(self, statement: Statement) -> None:
        match statement:
            case Load():
                self.load(statement)
            case Store():
                self.store(statement)
            case Index():
                self.let(statement.name, self.index_value(statement))
            case Compute() if not self.stored_cast(statement.name):
                self.compute(statement)
            case Reduce():
                self.let(statement.name, self.reduced_text(statement))
            case Scan():
                have = self.tile(self.varies[str(statement.args[0])])
                axis = have.index(self.reduced[0])
                function = {"add": "tl.cumsum", "mul": "tl.cumprod"}[statement.kind]
                self.let(statement.name, f"{function}({statement.args[0]}, axis={axis})")

    def compute(self, statement: Compute) -> None:
        name = statement.name
        if statement.op == "cast":
            source = str(statement.args[0])
            if self.inlined(source):
                load = self.defined[source]
                assert isinstance(load, Load)
                self.let(name, f"{self.load_text(load)}.to(tl.{statement.dtype})")
                return
            self.let(name, f"{source}.to(tl.{statement.dtype})")
            return
        want = self.tile(self.varies[name])
        args = [self.text(arg, want) for arg in statement.args]
        if all(isinstance(arg, Const) for arg in statement.args):
            args[0] = f"tl.full([], {args[0]}, tl.{statement.dtype})"
        if statement.op == "div" and (extent := self.mean_extent(statement)):
            args[1] = extent
        self.let(name, OPS[statement.op].text.format(*args))

    def mean_extent(self, statement: Compute) -> str | None:
        """A sum divided by the number of its terms divides by the runtime extents instead of a literal."""
        source, divisor = statement.args
        if isinstance(source, str) and isinstance(divisor, Const):
            total = math.prod(a.extent for a in self.reduced)
            origin = self.defined[source]
            if isinstance(origin, Reduce) and origin.kind == "sum" and divisor.value == total:
                sizes = [size_name(a) for a in self.reduced]
                return sizes[0] if len(sizes) == 1 else f"({' * '.join(sizes)})"
        return None

    def inlined(self, name: str) -> bool:
        """A load whose one use is a cast is written in one line with it."""
        statement = self.defined[name]
        return isinstance(statement, Load) and self.uses[name] == 1 and not statement.mask and not self.wanted_name(name)

    def wanted_name(self, name: str) -> bool:
        users = [s for s in self.kernel.body if name in s.operands]
        return not (len(users) == 1 and isinstance(users[0], Compute) and users[0].op == "cast")

    def reduced_text(self, reduction: Reduce) -> str:
        arg = reduction.args[0]
        axes = self.varies[arg] if isinstance(arg, str) else frozenset()
        have = self.tile(axes | set(self.reduced)) if reduction.kind != "dot" else self.tile(axes)
        text = self.text(arg, have)
        rule = REDUCTIONS[reduction.kind]
        missing = not isinstance(arg, str) or not set(self.reduced) <= axes
        if missing:
            dtype = reduction.dtype if isinstance(arg, Const) else self.defined[arg].dtype  # type: ignore[union-attr]
            base = f"tl.full({self.shape(have)}, {text}, tl.{dtype})" if isinstance(arg, Const) else text
            text = base if isinstance(arg, Const) else f"tl.broadcast_to({base}, {self.shape(have)})"
        unsafe = self.reduced if missing else self.unsafe(reduction)
        unsafe = tuple(a for a in unsafe if self.blocks[a] > 1)
        if unsafe:
            masks = " & ".join(self.widen(f"{a.name}_mask", (a,), have) for a in unsafe)
            dtype = reduction.dtype
            if isinstance(arg, str):
                dtype = self.defined[arg].dtype  # type: ignore[union-attr]
            start: float | int = float(rule.identity)
            if not is_float(dtype):
                start = _integer_limit(dtype, start) if not math.isfinite(start) else int(start)
            text = f"tl.where({masks}, {text}, {literal(Const(start, dtype))})"
        want = self.tile(self.varies[reduction.name])
        if reduction.kind == "prod":
            self.helpers.add("multiply")
        if not want and reduction.kind not in ("argmax", "argmin", "prod"):
            return rule.text.format(text, axis="None").replace(", axis=None", "")
        for axis in reversed(self.reduced):
            if have:
                text = rule.text.format(text, axis=have.index(axis))
        if not want and len(have) > len(self.reduced):
            text = f"tl.sum({text})"
        return f"{text}.to(tl.{reduction.dtype})" if reduction.kind in ("argmax", "argmin") else text

    def index_value(self, statement: Index) -> str:
        want = self.tile(self.varies[statement.name])
        text = self.index_text(statement.index, want)
        if statement.dtype == "int32":
            return text
        simple = text.isidentifier()
        return f"{text}.to(tl.{statement.dtype})" if simple else f"({text}).to(tl.{statement.dtype})"

    def index_text(self, expression: sympy.Expr, want: tuple[Axis, ...]) -> str:
        """An index expression over axes and values as Triton text, a tile over `want`."""
        if expression.is_Integer:
            return str(int(expression))
        if expression.is_Symbol:
            axis = next((a for a in self.axes if a.symbol == expression), None)
            if axis is None:
                return self.text(expression.name, want)
            if self.blocks[axis] == 1:
                return axis.name
            return self.widen(f"{axis.name}_index", (axis,), want)
        parts = [self.index_text(arg, want) for arg in expression.args]
        if isinstance(expression, FloorDiv | Modulo):
            sign = "//" if isinstance(expression, FloorDiv) else "%"
            return f"({parts[0]}) {sign} {parts[1]}" if not parts[0].isidentifier() else f"{parts[0]} {sign} {parts[1]}"
        if expression.is_Mul:
            return " * ".join(p if p.isidentifier() or p.isdigit() or p.endswith("]") else f"({p})" for p in parts)
        return " + ".join(parts)

    # Memory

    def coordinate(self, dim: Dim, start: str) -> str:
        if dim.value is not None:
            text = dim.value
            if self.tile(self.varies[dim.value]):
                text = f"tl.sum({text})"
            if self.defined[dim.value].dtype != "int32":  # type: ignore[union-attr]
                text = f"{text}.to(tl.int32)"
        elif dim.axis is None:
            return start or "0"
        elif dim.axis.reduced and not self.looped:
            text = "0"
        else:
            text = dim.axis.name
        if dim.reverse:
            assert dim.axis is not None
            text = f"{size_name(dim.axis)} - 1 - {text}"
        if start:
            return start if text == "0" else f"{start} + {text}"
        return text

    def coordinates_of(self, access: Access) -> str:
        starts = self.descriptors[access].starts
        texts = [self.coordinate(dim, start) for dim, start in zip(access.dims, starts, strict=False)]
        texts += ["0"] * access_lanes_dims(access, self.blocks)
        return f"[{', '.join(texts)}]"

    def load(self, statement: Load) -> None:
        if self.inlined(statement.name):
            return
        self.let(statement.name, self.load_text(statement))

    def load_text(self, statement: Load) -> str:
        access = self.access_of[id(statement)]
        text = f"{self.descriptors[access].name}.load({self.coordinates_of(access)})"
        want = self.tile(self.varies[statement.name])
        lanes = access.lanes(self.blocks)
        if not want:
            text = f"tl.sum({self.summable(text, access)})"
        else:
            have: list[Axis | None] = [self.dim_axis(dim, statement) for dim in access.dims]
            if lanes:
                text = f"tl.sum({self.summable(text, access)}, axis={len(have)})"
            if None in have or len(have) != len(want):
                kept = tuple(a for a in have if a is not None and a in want)
                wide = tuple(a for a in kept if self.blocks[a] > 1)
                ordered = tuple(a for a in want if self.blocks[a] > 1)
                if wide != ordered:
                    text = f"tl.reshape({text}, {self.shape(wide)})"
                    text = f"tl.permute({text}, {[wide.index(a) for a in ordered]})"
                text = f"tl.reshape({text}, {self.shape(want)})" if wide == ordered or ordered != want else text
            elif tuple(have) != want:
                order = [have.index(a) for a in want]
                text = f"tl.trans({text})" if order == [1, 0] else f"tl.permute({text}, {order})"
        if access.dtype == "int1":
            text = f"{text}.to(tl.int1)"
        if statement.mask and statement.other is not None:
            text = f"tl.where({self.text(statement.mask, want)}, {text}, {literal(statement.other)})"
        return text

    def summable(self, text: str, access: Access) -> str:
        """The one valid lane of a padded tile is the sum of the lanes; bfloat16 has no exact sum in Triton."""
        return f"{text}.to(tl.float32)" if access.dtype == "bfloat16" else text

    def dim_axis(self, dim: Dim, statement: Load | Store) -> Axis | None:
        """The axis that a descriptor dim stands for in the value's tile, None where it stands for none."""
        if dim.axis is not None:
            return dim.axis
        if dim.value is not None:
            others = {d.axis for d in self.access_of[id(statement)].dims}
            along = self.varies[dim.value]
            if len(along) == 1 and not along & others:
                return next(iter(along))
        return None

    def store(self, statement: Store) -> None:
        access = self.access_of[id(statement)]
        descriptor = self.descriptors[access]
        block = f"[{', '.join(descriptor.block)}]"
        lanes = access.lanes(self.blocks)
        dtype = memory_dtype(access.dtype)
        value, narrow = self.narrowed(statement.value)
        if isinstance(value, Const):
            text = f"tl.full({block}, {literal(value)}, tl.{dtype})"
        else:
            have = self.tile(self.varies[value])
            text = value
            cast = narrow or (f".to(tl.{dtype})" if access.dtype == "int1" else "")
            dims = [self.dim_axis(dim, statement) for dim in access.dims]
            order = tuple(a for a in dims if a in have)
            if have and order != have:
                indices = [have.index(a) for a in order]
                text = f"tl.trans({text})" if indices == [1, 0] else f"tl.permute({text}, {indices})"
            text += cast
            covered = bool(have) and not lanes and all(a in have for a in dims if a is not None)
            if have and (None in dims or lanes or len(order) != len(dims)):
                text = self.index_dims(text, dims, order, bool(lanes))
            full = covered or all(
                b == "1" or (a is not None and a in have) for b, a in zip(descriptor.block, [*dims, None], strict=False)
            )
            if not have or not full:
                text = f"tl.broadcast_to({text}, {block})"
        self.lines += assign("", f"{descriptor.name}.store({self.coordinates_of(access)}, {text})", self.depth)

    def narrowed(self, value: Operand) -> tuple[Operand, str]:
        """A cast that only one store reads is written in the store."""
        if isinstance(value, str) and self.stored_cast(value):
            cast = self.defined[value]
            assert isinstance(cast, Compute)
            return cast.args[0], f".to(tl.{memory_dtype(cast.dtype)})"
        return value, ""

    def stored_cast(self, name: str) -> bool:
        """Whether a value is a cast whose one use is a store."""
        statement = self.defined[name]
        if not (isinstance(statement, Compute) and statement.op == "cast" and isinstance(statement.args[0], str)):
            return False
        if self.inlined(statement.args[0]):
            return False
        users = [s for s in self.kernel.body if name in s.operands]
        return len(users) == 1 and isinstance(users[0], Store)

    def index_dims(self, text: str, dims: list[Axis | None], order: tuple[Axis, ...], lanes: bool) -> str:
        parts = [":" if a is not None and a in order else "None" for a in dims] + (["None"] if lanes else [])
        return f"{text}[{', '.join(parts)}]"


def access_lanes_dims(access: Access, blocks: dict[Axis, int]) -> int:
    """Number of extra trailing dims (0 or 1)."""
    return 1 if access.lanes(blocks) else 0


def literal(constant: Const) -> str:
    """A constant in Triton source."""
    value = constant.value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _integer_limit(dtype: str, start: float) -> int:
    bits = 8 if dtype == "int1" else int("".join(c for c in dtype if c.isdigit()))
    return -(2 ** (bits - 1)) if start < 0 else 2 ** (bits - 1) - 1
