"""`scf.while` and `scf.execute_region` as MLIR spells them where they have no arguments or no results."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.extra_ops import parse_assignments
from tracer.ktir.dialect.subscripts import ssa_name


class WhileOp(scf.WhileOp):
    """`scf.while (%i = %a) : (index) -> (index) {... scf.condition(%b) %i : index } do {... scf.yield }`,
    without the parentheses where nothing is carried.
    """

    name = "scf.while"

    def verify_(self) -> None:
        # Overridden, xDSL's own rule would check no region nor type.
        self.get_irdl_definition().verify(self)
        before, after = self.before_region.block, self.after_region.block
        carried, results = list(self.arguments.types), list(self.res.types)
        _same("the condition's region takes", _types(before), "the loop is given", carried)
        _same("the body takes", _types(after), "the loop returns", results)
        condition, end = before.last_op, after.last_op
        if not isinstance(condition, scf.ConditionOp) or not isinstance(end, scf.YieldOp):
            raise VerifyException("its condition must end with scf.condition, its body with scf.yield")
        _same("scf.condition passes on", list(condition.operand_types[1:]), "the loop returns", results)
        _same("scf.yield passes on", list(end.operand_types), "the loop is given", carried)

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        place = parser.pos
        given = parser._current_token.text == "("
        names, inits = parse_assignments(parser) if given else ([], [])
        parser.parse_punctuation(":")
        kind = parser.parse_function_type()
        types = kind.inputs.data
        if len(names) != len(types):
            parser.raise_error(f"{len(names)} values are carried but {len(types)} have types", place)
        values = parser.resolve_operands(inits, types, place)
        before = parser.parse_region([n.resolve(t) for n, t in zip(names, types, strict=True)])
        parser.parse_keyword("do")
        after = parser.parse_region()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(values, kind.outputs.data, before, after)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        pairs = zip(self.before_region.block.args, self.arguments, strict=True)
        carried = ", ".join(f"{ssa_name(printer, a)} = {ssa_name(printer, v)}" for a, v in pairs)
        printer.print_string(f" ({carried}) : " if carried else " : ")
        printer.print_operation_type(self)
        printer.print_string(" ")
        printer.print_region(self.before_region, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.after_region)
        printer.print_op_attributes(self.attributes, print_keyword=True)


class ExecuteRegionOp(scf.ExecuteRegionOp):
    """`scf.execute_region -> (f32) {... scf.yield %x : f32 }`; the terminator is always written."""

    name = "scf.execute_region"

    def verify_(self) -> None:
        if len(self.region.blocks) > 1:
            raise VerifyException("its region must be one block, as KTIR has no branches between blocks")

    def print(self, printer: Printer) -> None:
        if self.outs:
            printer.print_string(" -> (")
            printer.print_list(self.outs.types, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)


def _types(block: Block) -> list[Attribute]:
    return [a.type for a in block.args]


def _same(one: str, types: Sequence[Attribute], other: str, wanted: Sequence[Attribute]) -> None:
    """Raise VerifyException unless the types agree."""
    if list(types) != list(wanted):
        raise VerifyException(f"{one} {_listed(types)}, but {other} {_listed(wanted)}")


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "nothing"


BRANCHES = (scf.IfOp, scf.ExecuteRegionOp, scf.IndexSwitchOp)
"""Operations that run one of their regions, once, and whose results are what it yields."""

REGION_OPS = [WhileOp, ExecuteRegionOp]
