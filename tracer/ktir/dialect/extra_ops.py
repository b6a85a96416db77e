"""Upstream MLIR ops that xDSL does not have: named linalg ops, `arith.remf`, `tensor.generate` and the like.

Constructors: `BatchMatmulOp(inputs, outputs)` and every class of `ELEMENTWISE` (`DivOp`, `NegFOp` ...)
take the input values and the output value, both as sequences; results have the types of the outputs.
"""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    Attribute,
    DenseArrayBase,
    IndexType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, Region, SSAValue
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
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.subscripts import ssa_name


class NamedLinalgOp(IRDLOperation):
    """A linalg op of the form `ins(%a, %b : A, B) outs(%c : C) -> C`."""

    inputs = var_operand_def()
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    ARITY: ClassVar[int] = 2

    def __init__(self, inputs: Sequence[SSAValue | Operation], outputs: Sequence[SSAValue | Operation]):
        outs = [SSAValue.get(o) for o in outputs]
        super().__init__(operands=[inputs, outs], result_types=[[o.type for o in outs]])

    def verify_(self) -> None:
        if len(self.inputs) != self.ARITY or len(self.outputs) != 1:
            raise VerifyException(f"{self.name} has {self.ARITY} inputs and one output")
        if [r.type for r in self.res] != [o.type for o in self.outputs]:
            raise VerifyException("the result has the type of the output")
        self.verify_shapes()

    def verify_shapes(self) -> None:
        """Elementwise unless overridden: every operand has the output's shape."""
        for value in self.inputs:
            if not compatible(_shape(value), _shape(self.outputs[0])):
                raise VerifyException(f"{value.type} differs in shape from {self.outputs[0].type}")

    @classmethod
    def parse(cls, parser: Parser) -> NamedLinalgOp:
        attributes = parser.parse_optional_attr_dict()
        inputs = parse_typed_operands(parser, "ins")
        outputs = parse_typed_operands(parser, "outs")
        types = parse_result_types(parser) or [o.type for o in outputs]
        return cls.build(operands=[inputs, outputs], result_types=[types], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        print_typed_operands(printer, " ins", self.inputs)
        print_typed_operands(printer, " outs", self.outputs)
        printer.print_string(" -> ")
        printer.print_list(self.result_types, printer.print_attribute)


def parse_typed_operands(parser: Parser, keyword: str) -> list[SSAValue]:
    """`ins(%a, %b : A, B)`."""
    parser.parse_keyword(keyword)
    pos = parser.pos
    parser.parse_punctuation("(")
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(operands, types, pos))


def parse_result_types(parser: Parser) -> list[Attribute]:
    """The optional `-> T` or `-> (T, U)`."""
    if not parser.parse_optional_punctuation("->"):
        return []
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if types is None else list(types)


def parse_assignments(parser: Parser) -> tuple[list[Any], list[Any]]:
    """`(%a = %x, ...)` behind `iter_args` or `shared_outs`: unresolved arguments and operands."""
    names: list[Any] = []
    values: list[Any] = []

    def assignment() -> None:
        names.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        values.append(parser.parse_unresolved_operand())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, assignment)
    return names, values


def print_typed_operands(printer: Printer, keyword: str, values: Sequence[SSAValue]) -> None:
    """Print `ins(%a, %b : A, B)`."""
    printer.print_string(f"{keyword}({', '.join(ssa_name(printer, v) for v in values)} : ")
    printer.print_list([v.type for v in values], printer.print_attribute)
    printer.print_string(")")


def compatible(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes may be the same at run time: a dynamic extent is compatible with any."""
    return len(one) == len(other) and all(
        DYNAMIC_INDEX in (a, b) or a == b for a, b in zip(one, other, strict=True)
    )


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType | MemRefType)
    return tuple(value.type.get_shape())


def _contraction(name: str, a: str, b: str, c: str) -> type[NamedLinalgOp]:
    """A named contraction whose operands have the dims spelled by the letters of `a`, `b` and `c`."""

    def verify_shapes(self: NamedLinalgOp) -> None:
        extents: dict[str, int] = {}
        for letters, value in zip((a, b, c), (*self.inputs, *self.outputs), strict=True):
            shape = _shape(value) if isinstance(value.type, TensorType) else None
            if shape is None or len(shape) != len(letters):
                raise VerifyException(f"{name}: {value.type} must be a tensor of rank {len(letters)}")
            for letter, extent in zip(letters, shape, strict=True):
                if extent != DYNAMIC_INDEX and extents.setdefault(letter, extent) != extent:
                    raise VerifyException(
                        f"{name}: extent {extent} of {value.type} does not fit {extents[letter]}"
                    )

    return irdl_op_definition(
        type(
            name.removeprefix("linalg.").title().replace("_", "") + "Op",
            (NamedLinalgOp,),
            {
                "name": name,
                "verify_shapes": verify_shapes,
                "__module__": __name__,
                "__doc__": f"`{name}`: {a} x {b} -> {c}, added to the output.",
            },
        )
    )


CONTRACTIONS: dict[str, tuple[str, str, str]] = {
    # xDSL's own matmul cannot accumulate in a wider type than its operands have.
    "linalg.matmul": ("mk", "kn", "mn"),
    "linalg.batch_matmul": ("bmk", "bkn", "bmn"),
    "linalg.batch_matmul_transpose_a": ("bkm", "bkn", "bmn"),
    "linalg.batch_matmul_transpose_b": ("bmk", "bnk", "bmn"),
    "linalg.matmul_transpose_a": ("km", "kn", "mn"),
    "linalg.matmul_transpose_b": ("mk", "nk", "mn"),
    "linalg.matvec": ("mk", "k", "m"),
    "linalg.vecmat": ("k", "kn", "n"),
    "linalg.dot": ("k", "k", ""),
}
_CONTRACTION_OPS = {name: _contraction(name, *letters) for name, letters in CONTRACTIONS.items()}
MatmulOp: Any = _CONTRACTION_OPS["linalg.matmul"]
BatchMatmulOp: Any = _CONTRACTION_OPS["linalg.batch_matmul"]


def _elementwise(name: str, arity: int) -> type[NamedLinalgOp]:
    return irdl_op_definition(
        type(
            name.title().replace("_", "") + "Op",
            (NamedLinalgOp,),
            {
                "name": f"linalg.{name}",
                "ARITY": arity,
                "__annotations__": {"ARITY": ClassVar[int]},
                "__module__": __name__,
                "__doc__": f"`linalg.{name}`.",
            },
        )
    )


ELEMENTWISE: dict[str, type[NamedLinalgOp]] = {
    f"linalg.{name}": _elementwise(name, arity)
    for name, arity in {
        "div": 2,
        "div_unsigned": 2,
        "powf": 2,
        "negf": 1,
        "abs": 1,
        "ceil": 1,
        "floor": 1,
        "square": 1,
        "rsqrt": 1,
        "reciprocal": 1,
        "tanh": 1,
        "erf": 1,
        "round": 1,
    }.items()
}
DivOp: Any = ELEMENTWISE["linalg.div"]


class ReduceOp(linalg.ReduceOp):
    """`linalg.reduce` of one input, as xDSL's, where an extent may also be `?` beside a number."""

    def verify_(self) -> None:
        _well_formed(self, "init")
        _verify_reduced(self.input, self.init, self.dimensions.get_values())


class BroadcastOp(linalg.BroadcastOp):
    """`linalg.broadcast`, as xDSL's, where an extent may also be `?` beside a number."""

    def verify_(self) -> None:
        _well_formed(self, "init")
        _verify_reduced(self.init, self.input, self.dimensions.get_values())


class TransposeOp(linalg.TransposeOp):
    """`linalg.transpose`, as xDSL's, where an extent may also be `?` beside a number."""

    def verify_(self) -> None:
        _well_formed(self, "outputs")
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            raise VerifyException("it takes one input and one output")
        value, init, order = self.inputs[0], self.outputs[0], self.permutation.get_values()
        _one_element_type(value, init)
        if sorted(order) != list(range(len(_shape(value)))):
            raise VerifyException(f"{list(order)} does not permute the axes of {value.type}")
        if not compatible([_shape(value)[axis] for axis in order], _shape(init)):
            raise VerifyException(
                f"{init.type} doesn't match {value.type} with its axes in the order {list(order)}"
            )


def _well_formed(op: IRDLOperation, named: str) -> None:
    """Raise VerifyException unless operands, properties and regions are those that the op has, and the
    results have the types of the operands that are `named`. A class that overrides xDSL's verifier has to
    ask for it.
    """
    op.get_irdl_definition().verify(op)
    # Only now: the name of an operand that is not given stands for nothing.
    held = getattr(op, named)
    outputs = [held] if isinstance(held, SSAValue) else held
    if op.results and list(op.result_types) != [o.type for o in outputs]:
        raise VerifyException("the result has the type of the output")


def _one_element_type(value: SSAValue, other: SSAValue) -> None:
    held = [v.type.get_element_type() for v in (value, other) if isinstance(v.type, TensorType | MemRefType)]
    if held[0] != held[1]:
        raise VerifyException(f"{value.type} and {other.type} differ in element type")


def _verify_reduced(whole: SSAValue, kept: SSAValue, dims: Sequence[int]) -> None:
    """Raise VerifyException unless `kept` may be `whole` without `dims`."""
    _one_element_type(whole, kept)
    rank = len(_shape(whole))
    if len(set(dims)) != len(dims) or not all(0 <= dim < rank for dim in dims):
        raise VerifyException(f"dimensions {list(dims)} are not distinct axes of {whole.type}")
    if not compatible([n for axis, n in enumerate(_shape(whole)) if axis not in dims], _shape(kept)):
        raise VerifyException(f"{kept.type} is not {whole.type} without dimensions {list(dims)}")


@irdl_op_definition
class ReduceManyOp(IRDLOperation):
    """`linalg.reduce` over several inputs at once (argmax and the like): `ReduceManyOp(inputs, inits, dims,
    region)`.
    """

    name = "linalg.reduce"
    inputs = var_operand_def(TensorType)
    inits = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    dimensions = prop_def(DenseArrayBase.constr(i64))
    region = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, inputs: Sequence[SSAValue], inits: Sequence[SSAValue], dimensions: Sequence[int], region: Region
    ):
        super().__init__(
            operands=[inputs, inits],
            result_types=[[i.type for i in inits]],
            properties={"dimensions": DenseArrayBase.from_list(i64, list(dimensions))},
            regions=[region],
        )

    def verify_(self) -> None:
        dims = self.dimensions.get_values()
        if len(self.inputs) != len(self.inits):
            raise VerifyException("as many inits as inputs are needed")
        _well_formed(self, "inits")
        for value, init in zip(self.inputs, self.inits, strict=True):
            if not compatible(_shape(value), _shape(self.inputs[0])):
                raise VerifyException(f"{value.type} differs in shape from {self.inputs[0].type}")
            _verify_reduced(value, init, dims)


@irdl_op_definition
class MapOp(IRDLOperation):
    """`linalg.map`: the region applied elementwise to the inputs. `MapOp(inputs, init, region)`."""

    name = "linalg.map"
    inputs = var_operand_def(TensorType)
    init = operand_def(TensorType)
    res = var_result_def(TensorType)
    mapper = region_def("single_block")

    def __init__(self, inputs: Sequence[SSAValue], init: SSAValue, mapper: Region):
        super().__init__(operands=[inputs, init], result_types=[[init.type]], regions=[mapper])

    def verify_(self) -> None:
        _well_formed(self, "init")
        for value in self.inputs:
            if not compatible(_shape(value), _shape(self.init)):
                raise VerifyException(f"{value.type} differs in shape from {self.init.type}")


@irdl_op_definition
class RemfOp(IRDLOperation):
    """`arith.remf`: the remainder with the sign of the dividend. `RemfOp(lhs, rhs)`."""

    name = "arith.remf"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type:
            raise VerifyException("operands and result of arith.remf have one type")
        kind = self.lhs.type
        if not isinstance(kind.element_type if isinstance(kind, TensorType) else kind, AnyFloat):
            raise VerifyException(f"takes floats, not {kind}; did you mean arith.remsi?")

    @classmethod
    def parse(cls, parser: Parser) -> RemfOp:
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath"):
            parser.parse_punctuation("<")
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_identifier)
            parser.parse_punctuation(">")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.build(
            operands=[parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_)],
            result_types=[type_],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.lhs)}, {ssa_name(printer, self.rhs)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """`tensor.generate`: a tensor whose element at each index is what the region yields. `GenerateOp(type,
    region)`.
    """

    name = "tensor.generate"
    extents = var_operand_def(IndexType)
    result = result_def(TensorType)
    body = region_def("single_block")

    def __init__(self, result_type: TensorType, body: Region, extents: Sequence[SSAValue] = ()):
        super().__init__(operands=[extents], result_types=[result_type], regions=[body])

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.result.type.get_shape()):
            raise VerifyException("the region of tensor.generate has one index argument for each dimension")

    @classmethod
    def parse(cls, parser: Parser) -> GenerateOp:
        extents: list[SSAValue] = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            extents.append(parser.resolve_operand(operand, IndexType()))
            if not parser.parse_optional_punctuation(","):
                break
        body = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(
            operands=[extents], result_types=[parser.parse_type()], regions=[body], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        for i, extent in enumerate(self.extents):
            printer.print_string(f"{', ' if i else ' '}{ssa_name(printer, extent)}")
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class RankOp(IRDLOperation):
    """`tensor.rank`: the rank of a tensor. `RankOp(tensor)`."""

    name = "tensor.rank"
    tensor = operand_def(TensorType)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict $tensor `:` type($tensor)"

    def __init__(self, tensor: SSAValue | Operation):
        super().__init__(operands=[tensor], result_types=[IndexType()])


LINALG_OPS = [*_CONTRACTION_OPS.values(), *ELEMENTWISE.values(), MapOp, ReduceOp, BroadcastOp, TransposeOp]
ARITH_OPS = [RemfOp]
TENSOR_OPS = [GenerateOp, RankOp]
