"""The loops of one region: over its tiles, and over reduction blocks where the reduction is looped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracer.rewrite.axes import Axis
from tracer.rewrite.emit.comments import comments_of
from tracer.rewrite.emit.contraction import accumulator_name, accumulator_text, dot_text, result_text
from tracer.rewrite.emit.memory import clamped_coordinates, load_text, store_text
from tracer.rewrite.emit.tiles import Tiles, identity_of, literal
from tracer.rewrite.emit.values import compute_text, index_text, reduce_text, scan_text
from tracer.rewrite.functions import OPS, REDUCTIONS
from tracer.rewrite.ir import Compute, Index, Load, Reduce, Scan, Statement, Store, value_symbols
from tracer.rewrite.layout import INDENT, assign, without_parentheses
from tracer.rewrite.signature import block_text, size_name


def region_lines(tiles: Tiles) -> list[str]:
    """All lines of a region below its descriptors, indented as the body of a function."""
    writer = _Writer(tiles)
    writer.region()
    return writer.lines


@dataclass
class _Writer:
    tiles: Tiles
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    clamped: set[str] = field(default_factory=set)

    def line(self, text: str) -> None:
        self.lines.append(f"{INDENT * self.depth}{text}")

    def let(self, name: str, value: str) -> None:
        self.lines += assign(name, value, self.depth)

    def region(self) -> None:
        tiles = self.tiles
        counts = []
        for axis in tiles.parallel:
            if tiles.blocks[axis] == 1:
                counts.append(size_name(axis))
                continue
            count = f"tl.cdiv({size_name(axis)}, {block_text(axis, tiles.blocks)})"
            if len(tiles.parallel) > 1:
                self.let(f"{axis.name}_tiles", count)
                count = f"{axis.name}_tiles"
            counts.append(count)
        if len(counts) == 1 and tiles.blocks[tiles.parallel[0]] == 1:
            self.tile_loop(tiles.parallel[0].name, counts[0])
        else:
            self.let("tiles", " * ".join(counts))
            self.tile_loop("tile", "tiles")
            self.coordinates(counts)
        self.indices()
        if tiles.looped and tiles.reduced:
            self.passes()
        else:
            for statement in tiles.kernel.body:
                self.statement(statement)
        self.depth -= 1

    def tile_loop(self, name: str, count: str) -> None:
        """The loop over the tiles of this program."""
        if self.tiles.neighbours:
            self.line(
                "# Neighbouring tiles: what one core reaches of a buffer stays within its address span."
            )
            self.let("core_tiles", f"tl.cdiv({count}, CORES)")
            self.let("first", "tl.program_id(0) * core_tiles")
            tiles = f"first, tl.minimum(first + core_tiles, {count})"
        else:
            tiles = f"tl.program_id(0), {count}, CORES"
        self.line(f"for {name} in tl.range({tiles}):")
        self.depth += 1

    def coordinates(self, counts: list[str]) -> None:
        """First element of the tile along every parallel axis; the last axis runs fastest.

        With three axes or more, `outer_x2` is the tile's number over the axes outside of x2.
        """
        parallel = self.tiles.parallel
        outer = "tile"
        for position in reversed(range(len(counts))):
            axis, count = parallel[position], counts[position]
            digit = outer if position == 0 else f"{outer} % {count}"
            if self.tiles.blocks[axis] > 1:
                digit = digit if digit.isidentifier() else f"({digit})"
                digit = f"{digit} * {block_text(axis, self.tiles.blocks)}"
            self.let(axis.name, digit)
            outer = f"{outer} // {count}"
            if position > 1:
                self.let(f"outer_{axis.name}", outer)
                outer = f"outer_{axis.name}"

    def indices(self) -> None:
        """Element indices of the axes that some value reads as numbers, and masks of padded reductions."""
        tiles = self.tiles
        for axis in tiles.parallel:
            if tiles.blocks[axis] > 1 and self.read_as_value(axis):
                self.let(
                    f"{axis.name}_index", f"{axis.name} + tl.arange(0, {block_text(axis, tiles.blocks)})"
                )
        if not tiles.looped:
            reductions = [s for s in tiles.kernel.body if isinstance(s, Reduce)]
            for axis in tiles.reduced:
                self.reduced_index(axis, f"tl.arange(0, {block_text(axis, tiles.blocks)})", reductions)

    def reduced_index(self, axis: Axis, index: str, reductions: Sequence[Reduce]) -> None:
        if self.read_as_value(axis):
            self.let(f"{axis.name}_index", index)
            index = f"{axis.name}_index"
        if any(axis in self.tiles.unsafe(r) for r in reductions):
            self.let(f"{axis.name}_mask", f"{index} < {size_name(axis)}")

    def read_as_value(self, axis: Axis) -> bool:
        return any(isinstance(s, Index) and s.index.has(axis.symbol) for s in self.tiles.kernel.body)

    # Reductions in blocks

    def passes(self) -> None:
        """One loop over the reduced axes per level of reductions; each computes anew what it needs."""
        body = self.tiles.kernel.body
        level = self.levels()
        for current in range(max(level.values(), default=0) + 1):
            for statement in body:
                outside = not isinstance(statement, Reduce) and not self.in_loop(statement)
                if outside and level[id(statement)] == current:
                    self.statement(statement)
            reductions = [s for s in body if isinstance(s, Reduce) and level[id(s)] == current + 1]
            stores = [s for s in body if isinstance(s, Store) and self.in_loop(s) and level[id(s)] == current]
            if reductions or stores:
                self.loop(reductions, stores)

    def levels(self) -> dict[int, int]:
        """By identity of the statement: how many reductions in sequence stand before its value."""
        level: dict[int, int] = {}
        named: dict[str, int] = {}
        for s in self.tiles.kernel.body:
            below = max((named[o] for o in s.operands if isinstance(o, str)), default=0)
            level[id(s)] = named[s.name] = below + isinstance(s, Reduce)
        return level

    def in_loop(self, statement: Statement) -> bool:
        reduced = self.tiles.reduced
        if isinstance(statement, Reduce):
            return False
        if isinstance(statement, Store):
            indirect = {a for value in value_symbols(statement.index) for a in self.tiles.varies[value]}
            return bool(indirect & set(reduced)) or any(statement.index.has(a.symbol) for a in reduced)
        return bool(self.tiles.varies[statement.name] & set(reduced))

    def loop(self, reductions: Sequence[Reduce], stores: Sequence[Store]) -> None:
        tiles = self.tiles
        for reduction in reductions:
            is_dot = reduction.kind == "dot"
            self.let(accumulator_name(tiles, reduction) if is_dot else reduction.name, self.start(reduction))
        for axis in tiles.reduced:
            block = block_text(axis, tiles.blocks)
            self.line(f"for {axis.name} in tl.range(0, {size_name(axis)}, {block}):")
            self.depth += 1
            first = axis.name if block == "1" else f"{axis.name} + tl.arange(0, {block})"
            self.reduced_index(axis, first, reductions)
        outside = set(self.clamped)
        needed = self.cone([*reductions, *stores])
        for statement in tiles.kernel.body:
            if statement.name in needed and self.in_loop(statement):
                self.statement(statement)
        for reduction in reductions:
            if reduction.kind == "dot":
                self.let(accumulator_name(tiles, reduction), dot_text(tiles, reduction))
            else:
                combine = OPS[REDUCTIONS[reduction.kind].combine].text
                self.let(reduction.name, combine.format(reduction.name, reduce_text(tiles, reduction)))
        for store in stores:
            self.statement(store)
        self.clamped = outside
        self.depth -= len(tiles.reduced)
        for reduction in reductions:
            if reduction.kind == "dot" and (text := result_text(tiles, reduction)) != reduction.name:
                self.let(reduction.name, text)

    def start(self, reduction: Reduce) -> str:
        if reduction.kind == "dot":
            return accumulator_text(self.tiles, reduction)
        shape = self.tiles.shape(self.tiles.tile_of(reduction.name))
        start = identity_of(REDUCTIONS[reduction.kind].identity, reduction.dtype)
        return f"tl.full({shape}, {literal(start)}, tl.{reduction.dtype})"

    def cone(self, roots: Sequence[Statement]) -> set[str]:
        """Values that the loop needs to compute for `roots`."""
        needed: set[str] = set()
        pending = [o for root in roots for o in root.operands if isinstance(o, str)]
        while pending:
            name = pending.pop()
            if name not in needed:
                needed.add(name)
                statement = self.tiles.defined[name]
                if self.in_loop(statement):
                    pending += [o for o in statement.operands if isinstance(o, str)]
        return needed

    # Statements

    def statement(self, statement: Statement) -> None:
        tiles = self.tiles
        if not self.printed(statement):
            return
        for comment in comments_of(tiles, statement):
            self.line(f"# {comment}")
        for name, text in clamped_coordinates(tiles, statement):
            if name not in self.clamped:
                self.clamped.add(name)
                self.let(name, text)
        match statement:
            case Load():
                self.let(statement.name, load_text(tiles, statement))
            case Store():
                self.lines += assign("", store_text(tiles, statement), self.depth)
            case Index():
                self.let(statement.name, index_text(tiles, statement))
            case Compute():
                self.let(statement.name, compute_text(tiles, statement))
            case Reduce():
                self.let(statement.name, without_parentheses(reduce_text(tiles, statement)))
            case Scan():
                self.let(statement.name, scan_text(tiles, statement))

    def printed(self, statement: Statement) -> bool:
        """Whether a statement has a line of its own: some are written where they are used."""
        tiles = self.tiles
        match statement:
            case Load():
                return not tiles.inlined_load(statement.name)
            case Index():
                return tiles.inlined_index(statement.name) is None
            case Compute():
                return not tiles.stored_cast(statement.name)
        return True
