"""Communication between cores, and arguments known at launch only."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from xdsl.dialects.builtin import AffineSetAttr, Attribute, IndexType, StringAttr, TensorType
from xdsl.ir import Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.attributes import RuntimeArgType, TileFutureType
from tracer.ktir.dialect.subscripts import ssa_name


@irdl_op_definition
class YieldPartialOp(IRDLOperation):
    """`YieldPartialOp(value)`: what this core contributes."""

    name = "ktdp.yield_partial"
    value = operand_def(TensorType)
    traits = traits_def(IsTerminator())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])


@irdl_op_definition
class YieldReducedOp(IRDLOperation):
    """`YieldReducedOp(value)`: the combination of two partials."""

    name = "ktdp.yield_reduced"
    value = operand_def(TensorType)
    traits = traits_def(IsTerminator())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])


@irdl_op_definition
class InterTileProduceOp(IRDLOperation):
    """Every core of a group contributes the tensor its region yields.

    `InterTileProduceOp(producers, future_type, region)`: `producers` is a set `(i)[g]` (core i is in
    group g); the region has one index argument, the group.
    """

    name = "ktdp.inter_tile_produce"
    producer_tiles_per_group = prop_def(AffineSetAttr)
    future = result_def(TileFutureType)
    body = region_def("single_block")

    def __init__(self, producers: AffineSetAttr, future_type: TileFutureType, body: Region):
        super().__init__(
            result_types=[future_type], properties={"producer_tiles_per_group": producers}, regions=[body]
        )

    def verify_(self) -> None:
        _family(self.producer_tiles_per_group, "producer_tiles_per_group")
        if [a.type for a in self.body.block.args] != [IndexType()]:
            raise VerifyException("the region of inter_tile_produce has one index argument, the group")
        last = self.body.block.last_op
        if not isinstance(last, YieldPartialOp):
            raise VerifyException("the region of inter_tile_produce ends with ktdp.yield_partial")
        if last.value.type != self.future.type.partial:
            raise VerifyException(f"yields {last.value.type} into a future of {self.future.type.partial}")

    @classmethod
    def parse(cls, parser: Parser) -> InterTileProduceOp:
        parser.parse_keyword("producer_tiles_per_group")
        parser.parse_punctuation("=")
        producers = parser.parse_attribute()
        partial = None
        parser.parse_optional_punctuation(",")
        if parser.parse_optional_punctuation(":"):
            partial = parser.parse_type()
        parser.parse_punctuation("->")
        future = _parse_future(parser)
        if partial is not None and isinstance(future, TileFutureType) and future.partial != partial:
            parser.raise_error(f"produces {partial} into a future of {future.partial}")
        body = parser.parse_region()
        return cls.build(
            result_types=[future], properties={"producer_tiles_per_group": producers}, regions=[body]
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" producer_tiles_per_group = ")
        printer.print_attribute(self.producer_tiles_per_group)
        printer.print_string(" : ")
        printer.print_attribute(self.future.type.partial)
        printer.print_string(" -> ")
        printer.print_attribute(self.future.type)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class InterTileReduceOp(IRDLOperation):
    """The partials of the executing core's group, folded by the region.

    `InterTileReduceOp(future, identity, consumers, result_type, region, dependency=None)`: with `dependency`,
    a set (producer)[consumer, group], a consumer waits for and folds those producers only.
    """

    name = "ktdp.inter_tile_reduce"
    future = operand_def(TileFutureType)
    identity = operand_def(TensorType)
    consumer_tiles_per_group = prop_def(AffineSetAttr)
    producer_dependency_per_consumer = opt_prop_def(AffineSetAttr)
    result = result_def(TensorType)
    body = region_def("single_block")

    def __init__(
        self,
        future: SSAValue | Operation,
        identity: SSAValue | Operation,
        consumers: AffineSetAttr,
        result_type: TensorType,
        body: Region,
        dependency: AffineSetAttr | None = None,
    ):
        super().__init__(
            operands=[future, identity],
            result_types=[result_type],
            properties={
                "consumer_tiles_per_group": consumers,
                "producer_dependency_per_consumer": dependency,
            },
            regions=[body],
        )

    def verify_(self) -> None:
        _family(self.consumer_tiles_per_group, "consumer_tiles_per_group")
        if (needed := self.producer_dependency_per_consumer) is not None and (
            needed.data.num_dims != 1 or needed.data.num_symbols not in (1, 2)
        ):
            raise VerifyException(
                "producer_dependency_per_consumer must be a set of the form (producer)[consumer, group] or "
                "(producer)[consumer]"
            )
        future = self.future.type
        assert isinstance(future, TileFutureType)
        partial = future.partial
        if [a.type for a in self.body.block.args] != [partial, partial]:
            raise VerifyException(f"the region of inter_tile_reduce has two arguments of type {partial}")
        last = self.body.block.last_op
        if not isinstance(last, YieldReducedOp):
            raise VerifyException("the region of inter_tile_reduce ends with ktdp.yield_reduced")
        if last.value.type != partial or self.identity.type != partial:
            raise VerifyException(f"identity and yielded value must be {partial}")
        result = self.result.type
        assert isinstance(partial, TensorType)
        if result.element_type != partial.element_type or _count(result) != _count(partial):
            raise VerifyException(f"{result} does not hold the elements of {partial}")

    @classmethod
    def parse(cls, parser: Parser) -> InterTileReduceOp:
        parser.parse_punctuation("(")
        future = parser.parse_unresolved_operand()
        parser.parse_punctuation(")")
        parser.parse_keyword("consumer_tiles_per_group")
        parser.parse_punctuation("=")
        properties: dict[str, Attribute] = {"consumer_tiles_per_group": parser.parse_attribute()}
        parser.parse_optional_punctuation(",")
        if parser.parse_optional_keyword("producer_dependency_per_consumer"):
            parser.parse_punctuation("=")
            properties["producer_dependency_per_consumer"] = parser.parse_attribute()
            parser.parse_optional_punctuation(",")
        parser.parse_keyword("identity")
        parser.parse_punctuation("(")
        identity = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        identity_type = parser.parse_type()
        parser.parse_punctuation(")")
        parser.parse_punctuation(":")
        future_type = _parse_future(parser)
        parser.parse_punctuation("->")
        result = parser.parse_type()
        body = parser.parse_region()
        return cls.build(
            operands=[
                parser.resolve_operand(future, future_type),
                parser.resolve_operand(identity, identity_type),
            ],
            result_types=[result],
            properties=properties,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f"({ssa_name(printer, self.future)}) consumer_tiles_per_group = ")
        printer.print_attribute(self.consumer_tiles_per_group)
        if self.producer_dependency_per_consumer is not None:
            printer.print_string(", producer_dependency_per_consumer = ")
            printer.print_attribute(self.producer_dependency_per_consumer)
        printer.print_string(f", identity({ssa_name(printer, self.identity)} : ")
        printer.print_attribute(self.identity.type)
        printer.print_string(") : ")
        printer.print_attribute(self.future.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
        printer.print_string(" ")
        printer.print_region(self.body)


def _parse_future(parser: Parser) -> Attribute:
    # The MLIR printer shortens the type in op position to `<(tensor<...>), groups = ...>`.
    if parser._current_token.text == "<":
        return TileFutureType(*TileFutureType.parse_parameters(parser))  # type: ignore[arg-type]
    return parser.parse_type()


def _family(value: AffineSetAttr, what: str) -> None:
    if value.data.num_dims != 1 or value.data.num_symbols != 1:
        raise VerifyException(f"{what} must be a set of the form (core)[group]")


def _count(value: TensorType) -> int:
    total = 1
    for extent in value.get_shape():
        total *= extent
    return total


@irdl_op_definition
class RuntimeArgExtractOp(IRDLOperation):
    """`RuntimeArgExtractOp("value" | "granularity" | "upperbound", arg, result_type)`."""

    name = "ktdp.runtime_arg_extract"
    arg = operand_def(RuntimeArgType)
    field = prop_def(StringAttr)
    result = result_def()

    def __init__(self, field: str, arg: SSAValue | Operation, result_type: Attribute):
        super().__init__(operands=[arg], result_types=[result_type], properties={"field": StringAttr(field)})

    def verify_(self) -> None:
        declared = self.arg.type
        assert isinstance(declared, RuntimeArgType)
        match self.field.data:
            case "value":
                if self.result.type != declared.value:
                    raise VerifyException(f"the value is {declared.value}, not {self.result.type}")
            case "granularity" | "upperbound" as field:
                if not getattr(declared, field).data:
                    raise VerifyException(f"the argument has no {field}")
                if self.result.type != IndexType():
                    raise VerifyException(f"{field} is an index")
            case other:
                raise VerifyException(f"unknown field {other}; expected value, granularity or upperbound")

    @classmethod
    def parse(cls, parser: Parser) -> RuntimeArgExtractOp:
        field = parser.parse_identifier()
        parser.parse_keyword("from")
        arg = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        arg_type = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.build(
            operands=[parser.resolve_operand(arg, arg_type)],
            result_types=[result],
            properties={"field": StringAttr(field)},
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.field.data} from {ssa_name(printer, self.arg)} : ")
        printer.print_attribute(self.arg.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
