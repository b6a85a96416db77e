"""Indirect access tiles: coordinates that are themselves read from memory."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    BoolAttr,
    IndexType,
    MemRefType,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.affine import format_expr
from tracer.ktir.dialect.attributes import AccessTileType
from tracer.ktir.dialect.memory_ops import parse_symbols, parse_type_or_short, print_symbols
from tracer.ktir.dialect.subscripts import Operands, parse_expr, ssa_name


@irdl_op_definition
class RegionTerminatorOp(IRDLOperation):
    """Ends the hidden region of an indirect access tile."""

    name = "ktdp.region_terminator"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class ConstructIndirectAccessTileOp(IRDLOperation):
    """Coordinates computed from intermediate variables, directly or through index tensors.

    `ConstructIndirectAccessTileOp(base, subscripts, shape, *, index_views, captured=(), variables_space_set,
    variables_space_order=None, symbols=(), names=())`. `subscripts` has one entry per axis of the base:
    `(False, map)` with one result, or `(True, map)` whose results subscript the next index view. Every
    map ranges over (captured values, intermediate variables), all as dimensions.
    """

    name = "ktdp.construct_indirect_access_tile"
    base = operand_def(MemRefType)
    captured = var_operand_def(IndexType)
    index_views = var_operand_def(MemRefType)
    symbols = var_operand_def(IndexType)
    per_dim_subscript_kinds = prop_def(ArrayAttr[BoolAttr])
    per_dim_subscript_maps = prop_def(ArrayAttr[AffineMapAttr])
    variables_space_set = prop_def(AffineSetAttr)
    variables_space_order = prop_def(AffineMapAttr)
    tile = result_def(AccessTileType)
    variables = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        base: SSAValue | Operation,
        subscripts: Sequence[tuple[bool, AffineMap]],
        shape: Sequence[int],
        *,
        index_views: Sequence[SSAValue],
        captured: Sequence[SSAValue] = (),
        variables_space_set: AffineSet,
        variables_space_order: AffineMap | None = None,
        symbols: Sequence[SSAValue] = (),
        names: Sequence[str] = (),
    ):
        count = variables_space_set.num_dims
        super().__init__(
            operands=[base, captured, index_views, symbols],
            result_types=[AccessTileType(shape)],
            properties={
                "per_dim_subscript_kinds": ArrayAttr(BoolAttr.from_bool(kind) for kind, _ in subscripts),
                "per_dim_subscript_maps": ArrayAttr(AffineMapAttr(m) for _, m in subscripts),
                "variables_space_set": AffineSetAttr(variables_space_set),
                "variables_space_order": AffineMapAttr(variables_space_order or AffineMap.identity(count)),
            },
            regions=[variables_region(names or [f"v{i}" for i in range(count)])],
        )

    def subscripts(self) -> list[tuple[bool, AffineMap]]:
        """`(is indirect, map over captured values and variables)` for every axis of the base."""
        kinds = [bool(k.value.data) for k in self.per_dim_subscript_kinds]
        return list(zip(kinds, (m.data for m in self.per_dim_subscript_maps), strict=False))

    def verify_(self) -> None:
        points, order = self.variables_space_set.data, self.variables_space_order.data
        variables = len(self.variables.block.args)
        if order.num_symbols or order.num_dims != points.num_dims or len(order.results) != points.num_dims:
            raise VerifyException("variables_space_order must be square, of the rank of variables_space_set")
        if variables != points.num_dims:
            raise VerifyException(
                f"{variables} intermediate variables but variables_space_set has {points.num_dims} dims"
            )
        if points.num_symbols != len(self.symbols):
            raise VerifyException(
                f"variables_space_set has {points.num_symbols} symbols but {len(self.symbols)} are given"
            )
        subscripts = self.subscripts()
        if not len(self.per_dim_subscript_kinds) == len(self.per_dim_subscript_maps) == len(subscripts):
            raise VerifyException("per_dim_subscript_kinds and per_dim_subscript_maps differ in length")
        base = self.base.type
        assert isinstance(base, MemRefType)
        if len(subscripts) != len(base.get_shape()):
            raise VerifyException(f"{len(subscripts)} subscripts for a base of rank {len(base.get_shape())}")
        if sum(kind for kind, _ in subscripts) != len(self.index_views):
            raise VerifyException("the number of indirect subscripts differs from the number of index views")
        if len(self.tile.type.get_shape()) != points.num_dims:
            raise VerifyException(
                f"the tile has rank {len(self.tile.type.get_shape())}, the set {points.num_dims} dims"
            )
        views = iter(self.index_views)
        for axis, (indirect, map_) in enumerate(subscripts):
            if map_.num_symbols or map_.num_dims != len(self.captured) + variables:
                raise VerifyException(
                    f"the map of subscript {axis} must range over captured values and variables"
                )
            rank = 1
            if indirect:
                view_type = next(views).type
                assert isinstance(view_type, MemRefType)
                rank = len(view_type.get_shape())
            if len(map_.results) != rank:
                raise VerifyException(
                    f"subscript {axis} has {len(map_.results)} expressions instead of {rank}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> ConstructIndirectAccessTileOp:
        parser.parse_keyword("intermediate_variables")
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_unresolved_operand().operand_name
        )
        if len(set(names)) != len(names):
            parser.raise_error("an intermediate variable is named twice")
        base = parser.parse_unresolved_operand()
        operands = Operands(names)
        views = []
        results: list[tuple[bool, list[AffineExpr]]] = []

        def subscript() -> None:
            if parser.parse_optional_keyword("ind"):
                parser.parse_punctuation("(")
                views.append(parser.parse_unresolved_operand())
                exprs = parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: parse_expr(parser, operands)
                )
                parser.parse_punctuation(")")
                if parser._current_token.text not in (",", "]"):
                    parser.raise_error(
                        "an indirect index must stand alone; put the arithmetic into its tensor"
                    )
                results.append((True, exprs))
            else:
                results.append((False, [parse_expr(parser, operands)]))

        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, subscript)
        symbols = parse_symbols(parser)
        pos = parser.pos
        attributes = parser.parse_optional_attr_dict()
        if "variables_space_set" not in attributes:
            parser.raise_error("construct_indirect_access_tile needs variables_space_set", pos, parser.pos)
        order = attributes.pop("variables_space_order", AffineMapAttr(AffineMap.identity(len(names))))
        parser.parse_punctuation(":")
        types_pos = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(types) != 1 + len(views):
            parser.raise_error(
                f"expected {1 + len(views)} memref types (the base and one per ind()), got {len(types)}",
                types_pos,
                parser.pos,
            )
        parser.parse_punctuation("->")
        tile = parse_type_or_short(parser)
        return cls.build(
            operands=[
                parser.resolve_operand(base, types[0]),
                operands.values,
                [parser.resolve_operand(v, t) for v, t in zip(views, types[1:], strict=True)],
                symbols,
            ],
            result_types=[tile],
            properties={
                "per_dim_subscript_kinds": ArrayAttr(BoolAttr.from_bool(kind) for kind, _ in results),
                "per_dim_subscript_maps": ArrayAttr(
                    AffineMapAttr(_as_dims(exprs, len(operands.values), len(names))) for _, exprs in results
                ),
                "variables_space_set": attributes.pop("variables_space_set"),
                "variables_space_order": order,
            },
            attributes=attributes,
            regions=[variables_region(names)],
        )

    def print(self, printer: Printer) -> None:
        names = [ssa_name(printer, a) for a in self.variables.block.args]
        dims = [ssa_name(printer, v) for v in self.captured] + names
        printer.print_string(f" intermediate_variables({', '.join(names)}) {ssa_name(printer, self.base)}[")
        views = iter(self.index_views)
        shown = []
        for indirect, map_ in self.subscripts():
            exprs = ", ".join(format_expr(e, dims.__getitem__) for e in map_.results)
            shown.append(f"ind({ssa_name(printer, next(views))}[{exprs}])" if indirect else f"({exprs})")
        printer.print_string(f"{', '.join(shown)}]")
        print_symbols(printer, self.symbols)
        printer.print_string(" ")
        printer.print_attr_dict(
            {
                "variables_space_order": self.variables_space_order,
                "variables_space_set": self.variables_space_set,
                **self.attributes,
            }
        )
        printer.print_string(" : ")
        printer.print_list([self.base.type, *self.index_views.types], printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.tile.type)


def variables_region(names: Sequence[str]) -> Region:
    """The hidden region whose block arguments are the intermediate variables."""
    block = Block([RegionTerminatorOp()], arg_types=[IndexType()] * len(names))
    for arg, name in zip(block.args, names, strict=True):
        arg._name = name
    return Region(block)


def _as_dims(exprs: Sequence[AffineExpr], captured: int, variables: int) -> AffineMap:
    dims = [AffineExpr.dimension(i) for i in range(captured)]
    locals_: list[AffineExpr] = [AffineExpr.dimension(captured + i) for i in range(variables)]
    return AffineMap(captured + variables, 0, tuple(e.replace_dims_and_symbols(dims, locals_) for e in exprs))
