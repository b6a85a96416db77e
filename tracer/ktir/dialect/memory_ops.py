"""Views, access tiles, loads and stores of the `ktdp` dialect."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AffineSetAttr,
    Attribute,
    DenseArrayBase,
    IndexType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.affine import box_set
from tracer.ktir.dialect.attributes import AccessTileType, MemorySpace, MemorySpaceAttr
from tracer.ktir.dialect.subscripts import parse_subscripts, print_subscripts, ssa_name

Extents = Sequence["int | SSAValue"]


@irdl_op_definition
class GetComputeTileIdOp(IRDLOperation):
    """`%x, %y = ktdp.get_compute_tile_id : index, index`: coordinates of the executing core in the grid."""

    name = "ktdp.get_compute_tile_id"
    ids = var_result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, dims: int = 1):
        super().__init__(result_types=[[IndexType()] * dims])

    def verify_(self) -> None:
        if not 1 <= len(self.ids) <= 3:
            raise VerifyException("get_compute_tile_id has one to three results")

    @classmethod
    def parse(cls, parser: Parser) -> GetComputeTileIdOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.build(result_types=[types], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" : ")
        printer.print_list(self.result_types, printer.print_attribute)


def parse_type_or_short(parser: Parser) -> Attribute:
    """An access tile type, also in its short form `<32x64xindex>`."""
    if parser.parse_optional_punctuation("<"):
        dims, element = parser.parse_ranked_shape()
        parser.parse_punctuation(">")
        return AccessTileType(dims, element)
    return parser.parse_type()


def _split(values: Extents) -> tuple[list[int], list[SSAValue]]:
    static = [v if isinstance(v, int) else DYNAMIC_INDEX for v in values]
    return static, [v for v in values if not isinstance(v, int)]


def _parse_extents(parser: Parser) -> tuple[list[int], list[SSAValue]]:
    def item() -> int | SSAValue:
        operand = parser.parse_optional_unresolved_operand()
        if operand is not None:
            return parser.resolve_operand(operand, IndexType())
        return parser.parse_integer(allow_boolean=False)

    values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, item)
    return _split(values)


def _print_extents(printer: Printer, static: Sequence[int], dynamic: Sequence[SSAValue]) -> None:
    values = iter(dynamic)
    printer.print_string("[")
    for i, extent in enumerate(static):
        printer.print_string(", " if i else "")
        printer.print_string(ssa_name(printer, next(values)) if extent == DYNAMIC_INDEX else str(extent))
    printer.print_string("]")


@irdl_op_definition
class ConstructMemoryViewOp(IRDLOperation):
    """A strided view of memory that starts at element `pointer`; nothing is allocated.

    `ConstructMemoryViewOp(pointer, sizes, strides, result_type, memory_space=None, coordinate_set=None)`;
    sizes and strides are ints or index values, in elements. Defaults: global memory, and the box of the
    static sizes (each dynamic size a symbol).
    """

    name = "ktdp.construct_memory_view"
    pointer = operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    coordinate_set = prop_def(AffineSetAttr)
    memory_space = prop_def(MemorySpace)
    view = result_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        pointer: SSAValue | Operation,
        sizes: Extents,
        strides: Extents,
        result_type: MemRefType,
        memory_space: MemorySpace | None = None,
        coordinate_set: AffineSetAttr | AffineSet | None = None,
    ):
        static_sizes, dynamic_sizes = _split(sizes)
        static_strides, dynamic_strides = _split(strides)
        if coordinate_set is None:
            coordinate_set = default_coordinate_set(static_sizes)
        if isinstance(coordinate_set, AffineSet):
            coordinate_set = AffineSetAttr(coordinate_set)
        super().__init__(
            operands=[pointer, dynamic_sizes, dynamic_strides],
            result_types=[result_type],
            properties={
                "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
                "static_strides": DenseArrayBase.from_list(i64, static_strides),
                "coordinate_set": coordinate_set,
                "memory_space": memory_space or MemorySpaceAttr("global"),
            },
        )

    def verify_(self) -> None:
        sizes, strides = self.static_sizes.get_values(), self.static_strides.get_values()
        if len(sizes) != len(strides):
            raise VerifyException(f"{len(sizes)} sizes but {len(strides)} strides")
        if sizes.count(DYNAMIC_INDEX) != len(self.sizes):
            raise VerifyException("the number of dynamic sizes does not match the operands")
        if strides.count(DYNAMIC_INDEX) < len(self.strides):
            raise VerifyException("the number of dynamic strides does not match the operands")
        shape = self.view.type.get_shape()
        if len(shape) != len(sizes):
            raise VerifyException(f"the memref has rank {len(shape)} but there are {len(sizes)} sizes")
        for axis, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
            if size != DYNAMIC_INDEX and size != extent:
                shown = "?" if extent == DYNAMIC_INDEX else extent
                raise VerifyException(f"size {size} of axis {axis} differs from extent {shown} of the memref")
        points = self.coordinate_set.data
        if points.num_dims != len(sizes):
            raise VerifyException(
                f"coordinate_set has {points.num_dims} dims but the view has rank {len(sizes)}"
            )
        if points.num_symbols != len(self.sizes) and points.num_symbols:
            raise VerifyException(
                f"coordinate_set has {points.num_symbols} symbols for {len(self.sizes)} dynamic sizes"
            )

    @classmethod
    def parse(cls, parser: Parser) -> ConstructMemoryViewOp:
        pointer = parser.parse_operand(IndexType())
        parser.parse_punctuation(",")
        parser.parse_keyword("sizes")
        parser.parse_punctuation(":")
        static_sizes, sizes = _parse_extents(parser)
        parser.parse_punctuation(",")
        parser.parse_keyword("strides")
        parser.parse_punctuation(":")
        static_strides, strides = _parse_extents(parser)
        pos = parser.pos
        attributes = parser.parse_optional_attr_dict()
        properties: dict[str, Attribute] = {
            "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
            "static_strides": DenseArrayBase.from_list(i64, static_strides),
        }
        # Both are mandatory in the dialect; the public parser and its examples leave them out.
        properties["coordinate_set"] = attributes.pop(
            "coordinate_set", AffineSetAttr(default_coordinate_set(static_sizes))
        )
        properties["memory_space"] = attributes.pop("memory_space", MemorySpaceAttr("global"))
        if not isinstance(properties["memory_space"], MemorySpace):
            parser.raise_error(
                "memory_space must be #ktdp.memory_space<...> or #ktdp.spyre_memory_space<...>",
                pos,
                parser.pos,
            )
        if not isinstance(properties["coordinate_set"], AffineSetAttr):
            parser.raise_error("coordinate_set must be an affine_set", pos, parser.pos)
        parser.parse_punctuation(":")
        view = parser.parse_type()
        if isinstance(view, IndexType) and parser.parse_optional_punctuation("->"):
            view = parser.parse_type()
        return cls.build(
            operands=[pointer, sizes, strides],
            result_types=[view],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.pointer)}, sizes: ")
        _print_extents(printer, self.static_sizes.get_values(), self.sizes)
        printer.print_string(", strides: ")
        _print_extents(printer, self.static_strides.get_values(), self.strides)
        printer.print_string(" ")
        printer.print_attr_dict(
            {"coordinate_set": self.coordinate_set, "memory_space": self.memory_space, **self.attributes}
        )
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)


def default_coordinate_set(static_sizes: Sequence[int]) -> AffineSet:
    """`0 <= d_i < size_i`, with one symbol for each dynamic size, left to right."""
    from xdsl.ir.affine import AffineConstraintExpr, AffineExpr

    points = box_set(static_sizes)
    constraints = list(points.constraints)
    symbols = 0
    for axis, size in enumerate(static_sizes):
        if size == DYNAMIC_INDEX:
            upper = -AffineExpr.dimension(axis) + AffineExpr.symbol(symbols) + (-1)
            constraints[2 * axis + 1] = AffineConstraintExpr(
                constraints[2 * axis + 1].kind, upper, AffineExpr.constant(0), canonicalize=False
            )
            symbols += 1
    return AffineSet(len(static_sizes), symbols, tuple(constraints))


@irdl_op_definition
class ConstructDistributedMemoryViewOp(IRDLOperation):
    """One logical view over several, each of which holds the global coordinates of its `coordinate_set`.

    `ConstructDistributedMemoryViewOp(views, result_type)`.
    """

    name = "ktdp.construct_distributed_memory_view"
    views = var_operand_def(MemRefType)
    view = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, views: Sequence[SSAValue], result_type: MemRefType):
        super().__init__(operands=[views], result_types=[result_type])

    def verify_(self) -> None:
        result = self.view.type
        if not self.views:
            raise VerifyException("a distributed view needs at least one view")
        for value in self.views:
            part = value.type
            assert isinstance(part, MemRefType)
            if part.element_type != result.element_type:
                raise VerifyException(f"element type {part.element_type} differs from {result.element_type}")
            if len(part.get_shape()) != len(result.get_shape()):
                raise VerifyException("every view must have the rank of the result")

    @classmethod
    def parse(cls, parser: Parser) -> ConstructDistributedMemoryViewOp:
        pos = parser.pos
        parser.parse_punctuation("(")
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        result = parser.parse_type()
        views = parser.resolve_operands(operands, types, pos)
        return cls.build(operands=[views], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")
        printer.print_list(self.views, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list(self.views.types, printer.print_attribute)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)


_KINDS: dict[str, tuple[type[Attribute], str]] = {
    "base_map": (AffineMapAttr, "affine_map"),
    "access_tile_set": (AffineSetAttr, "affine_set"),
    "access_tile_order": (AffineMapAttr, "affine_map"),
}


@irdl_op_definition
class ConstructAccessTileOp(IRDLOperation):
    """The coordinates `subscripts + point` for every point of `access_tile_set`.

    `ConstructAccessTileOp(view, indices, shape, *, base_map=None, access_tile_set=None,
    access_tile_order=None, symbols=())`: `indices` are index values, one per axis unless `base_map`
    combines them; `shape` gives the box of the tile (and its type) unless a set is given.
    """

    name = "ktdp.construct_access_tile"
    base = operand_def(MemRefType.constr() | TensorType.constr())
    indices = var_operand_def(IndexType)
    symbols = var_operand_def(IndexType)
    base_map = prop_def(AffineMapAttr)
    access_tile_set = prop_def(AffineSetAttr)
    access_tile_order = prop_def(AffineMapAttr)
    tile = result_def(AccessTileType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    RESERVED: ClassVar[tuple[str, ...]] = ("base_map", "access_tile_set", "access_tile_order")

    def __init__(
        self,
        base: SSAValue | Operation,
        indices: Sequence[SSAValue],
        shape: Sequence[int],
        *,
        base_map: AffineMap | None = None,
        access_tile_set: AffineSet | None = None,
        access_tile_order: AffineMap | None = None,
        symbols: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[base, indices, symbols],
            result_types=[AccessTileType(shape)],
            properties={
                "base_map": AffineMapAttr(base_map or AffineMap.identity(len(indices))),
                "access_tile_set": AffineSetAttr(access_tile_set or box_set(shape)),
                "access_tile_order": AffineMapAttr(access_tile_order or AffineMap.identity(len(shape))),
            },
        )

    def verify_(self) -> None:
        base_type = self.base.type
        assert isinstance(base_type, MemRefType | TensorType)
        points, order, base_map = self.access_tile_set.data, self.access_tile_order.data, self.base_map.data
        if base_map.num_dims != len(self.indices):
            raise VerifyException(
                f"base_map has {base_map.num_dims} dims but there are {len(self.indices)} indices"
            )
        if len(base_map.results) != len(base_type.get_shape()):
            raise VerifyException(
                f"{len(base_map.results)} subscripts for a base of rank {len(base_type.get_shape())}"
            )
        if points.num_dims != len(base_map.results):
            raise VerifyException(
                f"access_tile_set has {points.num_dims} dims but there are {len(base_map.results)} subscripts"
            )
        if points.num_symbols != len(self.symbols):
            raise VerifyException(
                f"access_tile_set has {points.num_symbols} symbols but {len(self.symbols)} are given"
            )
        if order.num_symbols or order.num_dims != points.num_dims or len(order.results) != points.num_dims:
            raise VerifyException("access_tile_order must be square, of the rank of access_tile_set")
        if len(self.tile.type.get_shape()) != points.num_dims:
            raise VerifyException(
                f"the tile has rank {len(self.tile.type.get_shape())}, the set {points.num_dims} dims"
            )

    @classmethod
    def parse(cls, parser: Parser) -> ConstructAccessTileOp:
        base = parser.parse_unresolved_operand()
        base_map, indices = parse_subscripts(parser)
        symbols = parse_symbols(parser)
        pos = parser.pos
        attributes = parser.parse_optional_attr_dict()
        if "access_tile_set" not in attributes:
            parser.raise_error("construct_access_tile needs access_tile_set", pos, parser.pos)
        for key, (kind, spelt) in _KINDS.items():
            if not isinstance(attributes.get(key), kind | None):
                parser.raise_error(f"{key} must be an {spelt}", pos, parser.pos)
        explicit = attributes.pop("base_map", None)
        if isinstance(explicit, AffineMapAttr):
            base_map = explicit.data
        order = attributes.pop("access_tile_order", AffineMapAttr(AffineMap.identity(len(base_map.results))))
        parser.parse_punctuation(":")
        base_type = parser.parse_type()
        parser.parse_punctuation("->")
        tile = parse_type_or_short(parser)
        return cls.build(
            operands=[parser.resolve_operand(base, base_type), indices, symbols],
            result_types=[tile],
            properties={
                "base_map": AffineMapAttr(base_map),
                "access_tile_set": attributes.pop("access_tile_set"),
                "access_tile_order": order,
            },
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        names = [ssa_name(printer, v) for v in self.indices]
        printer.print_string(f" {ssa_name(printer, self.base)}[")
        print_subscripts(printer, self.base_map.data.results, names)
        printer.print_string("]")
        print_symbols(printer, self.symbols)
        printer.print_string(" ")
        printer.print_attr_dict(
            {
                "access_tile_order": self.access_tile_order,
                "access_tile_set": self.access_tile_set,
                **self.attributes,
            }
        )
        printer.print_string(" : ")
        printer.print_attribute(self.base.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.tile.type)


def parse_symbols(parser: Parser) -> list[SSAValue]:
    """The optional `symbols(%n, ...)` clause."""
    if not parser.parse_optional_keyword("symbols"):
        return []
    return parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_operand(IndexType())
    )


def print_symbols(printer: Printer, symbols: Sequence[SSAValue]) -> None:
    """Print `symbols(%n, ...)` where there are any."""
    if symbols:
        printer.print_string(" symbols(")
        printer.print_list(symbols, printer.print_ssa_value)
        printer.print_string(")")
