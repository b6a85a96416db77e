"""Text of the named linalg ops that xDSL brings, as MLIR spells it: attributes in front of `ins`.

What a named op computes is in its name. Maps of its own would change that, and MLIR knows them for
contractions only; KTIR has `linalg.generic` for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.linalg.ops import GenericOp, NamedOperation
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tracer.ktir.dialect.extra_ops import parse_result_types, parse_typed_operands, print_typed_operands

_MAPS = "indexing_maps"
_IN_FRONT = re.compile(r'(?:\{[^{}"]*)?\bindexing_maps\s*=')
OWN_MAPS = "has its own indexing maps; write linalg.generic for others"
_UNARY = ("copy", "exp", "fill", "log", "sqrt")
_INPUTS = {f"linalg.{name}": 1 for name in _UNARY} | {"linalg.select": 3, "linalg.quantized_matmul": 4}
"""Of the named ops that take another number than two."""


def refuse_maps(parser: Parser, name: str) -> None:
    """Raise ParseError where `indexing_maps = [...]`, bare or in braces, stands between the name of an op and
    its operands.
    """
    named = name.startswith("linalg.") and name != GenericOp.name
    if named and _IN_FRONT.match(parser.lexer.input.content, parser.pos):
        parser.raise_error(f"{name} {OWN_MAPS}")


def named_violation(op: Operation) -> str | None:
    """What is wrong with a named op that xDSL takes: maps that nothing reads, operands too many or few."""
    if not op.name.startswith("linalg.") or isinstance(op, GenericOp):
        return None
    if op.get_attr_or_prop(_MAPS) is not None:
        return OWN_MAPS
    if isinstance(op, NamedOperation):
        takes = _INPUTS.get(op.name, 2)
        if len(op.inputs) != takes or len(op.outputs) != 1:
            inputs = "one input" if takes == 1 else f"{takes} inputs"
            return f"it takes {inputs} and one output, not {len(op.inputs)} and {len(op.outputs)}"
    return None


def parse_named(kind: type[NamedOperation], parser: Parser) -> Operation:
    """`{attributes} ins(%a : A) outs(%b : B) attrs = {attributes} -> B`; the region is the one that the name
    stands for. Raises ParseError.
    """
    start = parser.pos
    attributes = parser.parse_optional_attr_dict()
    inputs, outputs = parse_typed_operands(parser, "ins"), parse_typed_operands(parser, "outs")
    if parser.parse_optional_keyword("attrs"):
        parser.parse_punctuation("=")
        attributes |= parser.parse_optional_attr_dict()
    types = parse_result_types(parser)
    if _MAPS in attributes:
        parser.raise_error(f"{kind.name} {OWN_MAPS}", start)
    known = kind.get_irdl_definition().properties
    return kind.build(
        operands=[inputs, outputs],
        result_types=[types],
        properties={k: v for k, v in attributes.items() if k in known},
        attributes={k: v for k, v in attributes.items() if k not in known},
        regions=[_payload(kind, parser, inputs, outputs, start)],
    )


def _payload(
    kind: type[NamedOperation],
    parser: Parser,
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
    start: int,
) -> Any:
    try:
        return kind.get_hidden_region(inputs, outputs)
    except (LookupError, TypeError, ValueError, AssertionError):
        types = ", ".join(str(v.type) for v in (*inputs, *outputs))
        parser.raise_error(f"{kind.name} does not take operands of types {types}", start)


def print_named(printer: Printer, op: Operation) -> None:
    """What `parse_named` reads, behind the name."""
    assert isinstance(op, NamedOperation)
    shown = {**op.attributes, **op.properties}
    shown.pop("operandSegmentSizes", None)
    printer.print_op_attributes(shown)
    print_typed_operands(printer, " ins", op.inputs)
    print_typed_operands(printer, " outs", op.outputs)
    if op.results:
        printer.print_string(" -> ")
        printer.print_list(op.result_types, printer.print_attribute)
