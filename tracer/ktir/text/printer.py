"""xDSL IR to KTIR text that MLIR's dialect and the public regex parser both accept.

One operation per line, names from name hints, integers for booleans, no locations. Where the public
parser needs a blank line to see that an operation has ended, there is one.
"""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

import math
import re
from collections.abc import Callable
from io import StringIO
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from tracer.ktir.affine import format_map, format_set
from tracer.ktir.dialect.extra_ops import MapOp, ReduceManyOp, print_typed_operands
from tracer.ktir.dialect.named_ops import print_named
from tracer.ktir.dialect.subscripts import ssa_name

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class KtirPrinter(Printer):
    """Printer of the plain profile."""

    def __init__(self, stream: StringIO):
        super().__init__(stream)
        self._taken: set[str] = set()

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._fresh(value)
        self.print_string(f"%{name}")
        return name

    def _fresh(self, value: SSAValue) -> str:
        hint = value.name_hint
        if hint is None:
            base, name = "v", "v0"
        else:
            base = re.sub(r"[^A-Za-z0-9_]", "_", hint)
            base = name = base if _IDENTIFIER.fullmatch(base) else f"v{base}"
        count = 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}" if hint is not None else f"{base}{count}"
        self._taken.add(name)
        return name

    def print_op(self, op: Operation) -> None:
        if isinstance(op, func.FuncOp):
            self._taken = set()
        custom = _FORMATS.get(op.name)
        if isinstance(op, linalg.NamedOperation):
            custom = print_named
        if custom is None or isinstance(op, ModuleOp):
            super().print_op(op)
            return
        self._print_results(op)
        self.print_string(op.name)
        custom(self, op)

    def print_block(
        self, block: Block, print_block_args: bool = True, print_block_terminator: bool = True
    ) -> None:
        if print_block_args:
            self._print_new_line()
            if block not in self._blocks:
                self._populate_block_name(block)
            self.print_block_name(block)
            if block.args:
                with self.in_parens():
                    self.print_list(block.args, self.print_block_argument)
            self.print_string(":")
        with self.indented():
            untyped = False
            for op in block.ops:
                if not print_block_terminator and op.has_trait(IsTerminator):
                    continue
                if untyped and not op.results:
                    self.print_string("\n")
                self._print_new_line()
                self.print_op(op)
                untyped = bool(op.regions) or op.name in ("linalg.transpose", "linalg.broadcast")

    def print_attribute(self, attribute: Attribute) -> None:
        match attribute:
            case AffineMapAttr():
                self.print_string(f"affine_map<{format_map(attribute.data)}>")
            case AffineSetAttr():
                self.print_string(f"affine_set<{format_set(attribute.data)}>")
            case IntegerAttr() if attribute.type == IntegerType(1):
                self.print_string(f"{int(bool(attribute.value.data))} : i1")
            case DenseIntOrFPElementsAttr():
                self._print_dense(attribute)
            case ArrayAttr() if all(isinstance(v, IntegerAttr) and v.type == i64 for v in attribute):
                # An integer without a type is an i64.
                with self.in_square_brackets():
                    self.print_list(attribute, lambda v: self.print_string(str(v.value.data)))
            case _:
                super().print_attribute(attribute)

    def _print_dense(self, attribute: DenseIntOrFPElementsAttr) -> None:
        element = attribute.get_element_type()
        self.print_string("dense<")
        if len(attribute) and attribute.is_splat():
            self._print_element(next(iter(attribute.iter_values())), element)
        elif len(attribute):
            values: list[Any] = list(attribute.iter_values())
            self._print_nested(values, list(attribute.get_shape()), element)
        self.print_string("> : ")
        self.print_attribute(attribute.type)

    def _print_nested(self, values: list[float], shape: list[int], element: Attribute) -> None:
        with self.in_square_brackets():
            if len(shape) <= 1:
                self.print_list(values, lambda v: self._print_element(v, element))
                return
            step = len(values) // shape[0]
            parts = [values[i : i + step] for i in range(0, len(values), step)]
            self.print_list(parts, lambda part: self._print_nested(part, shape[1:], element))

    def _print_element(self, value: object, element: Attribute) -> None:
        if isinstance(element, AnyFloat):
            self.print_float(value, element)  # type: ignore[arg-type]
        elif element == IntegerType(1):
            self.print_string(str(int(bool(value))))
        else:
            self.print_string(str(value))

    def print_float(self, value: float, type: AnyFloat) -> None:  # noqa: A002 - as the base class spells it
        if math.isnan(value) or math.isinf(value):
            self.print_string(f"0x{type.pack((value,))[::-1].hex().upper()}")
            return
        short = f"{value:.6e}"
        if float(short) != value and type.unpack(type.pack([float(short)]), 1)[0] != value:
            short = repr(float(value))
            if "." not in short:
                mantissa, _, exponent = short.partition("e")
                short = f"{mantissa}.0e{exponent}" if exponent else f"{mantissa}.0"
        self.print_string(short)


def _print_types(printer: Printer, types: tuple[Attribute, ...] | list[Attribute]) -> None:
    printer.print_string("(")
    printer.print_list(types, printer.print_attribute)
    printer.print_string(")")


def _func(printer: Printer, op: Operation) -> None:
    assert isinstance(op, func.FuncOp)
    if op.sym_visibility:
        printer.print_string(f" {op.sym_visibility.data}")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    printer.print_string("(")
    if op.body.blocks:
        printer.print_list(op.body.blocks.first.args, printer.print_block_argument)  # type: ignore[union-attr]
    else:
        printer.print_list(op.function_type.inputs, printer.print_attribute)
    printer.print_string(")")
    if op.function_type.outputs:
        printer.print_string(" -> ")
        _print_types(printer, list(op.function_type.outputs))
    attributes = {k: v for k, v in op.attributes.items() if k not in ("sym_name", "function_type")}
    if attributes:
        printer.print_string(" attributes {")
        printer.print_list(attributes.items(), lambda item: _print_function_attribute(printer, *item))
        printer.print_string("}")
    if op.body.blocks:
        printer.print_string(" ")
        printer.print_region(op.body, print_entry_block_args=False, print_empty_block=False)


def _print_function_attribute(printer: Printer, name: str, value: Attribute) -> None:
    if name == "grid" and isinstance(value, ArrayAttr) and all(isinstance(v, IntegerAttr) for v in value):
        # Untyped integers are i64 in MLIR, and the only form that the public parser reads.
        printer.print_string(f"grid = [{', '.join(str(v.value.data) for v in value)}]")
    else:
        printer.print_attr_dict({name: value}) if False else _plain(printer, name, value)


def _plain(printer: Printer, name: str, value: Attribute) -> None:
    printer._print_attr_string((name, value))


def _return(printer: Printer, op: Operation) -> None:
    if op.operands:
        printer.print_string(" ")
        printer.print_list(op.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list(op.operand_types, printer.print_attribute)


def _for(printer: Printer, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    induction, *args = op.body.block.args
    lower, upper, step = (ssa_name(printer, v) for v in (op.lb, op.ub, op.step))
    printer.print_string(f" {ssa_name(printer, induction)} = {lower} to {upper} step {step}")
    if args:
        pairs = (
            f"{ssa_name(printer, a)} = {ssa_name(printer, v)}"
            for a, v in zip(args, op.iter_args, strict=True)
        )
        printer.print_string(f" iter_args({', '.join(pairs)}) -> ")
        _print_types(printer, [a.type for a in args])
    if str(induction.type) != "index":
        printer.print_string(" : ")
        printer.print_attribute(induction.type)
    printer.print_string(" ")
    # The public parser tells a region from an attribute dictionary by the operations in it.
    printer.print_region(op.body, print_entry_block_args=False, print_empty_block=False)
    printer.print_op_attributes(op.attributes)


def _if(printer: Printer, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    printer.print_string(f" {ssa_name(printer, op.cond)}")
    results = bool(op.results)
    if results:
        printer.print_string(" -> ")
        _print_types(printer, list(op.result_types))
    printer.print_string(" ")
    printer.print_region(op.true_region, print_entry_block_args=False, print_block_terminators=results)
    if op.false_region.blocks:
        printer.print_string(" else ")
        printer.print_region(op.false_region, print_entry_block_args=False, print_block_terminators=results)
    printer.print_op_attributes(op.attributes)


def _print_dims(printer: Printer, keyword: str, values: Any) -> None:
    printer.print_string(f" {keyword} = [{', '.join(map(str, values.get_values()))}]")


def _transpose(printer: Printer, op: Operation) -> None:
    assert isinstance(op, linalg.TransposeOp)
    print_typed_operands(printer, " ins", op.inputs)
    print_typed_operands(printer, " outs", op.outputs)
    _print_dims(printer, "permutation", op.permutation)


def _broadcast(printer: Printer, op: Operation) -> None:
    assert isinstance(op, linalg.BroadcastOp)
    print_typed_operands(printer, " ins", [op.input])
    print_typed_operands(printer, " outs", [op.init])
    _print_dims(printer, "dimensions", op.dimensions)


def _region_with_args(printer: Printer, region: Region) -> None:
    printer.print_string(" (")
    printer.print_list(region.block.args, printer.print_block_argument)
    printer.print_string(") ")
    printer.print_region(region, print_entry_block_args=False)


def _reduce(printer: Printer, op: Operation) -> None:
    assert isinstance(op, linalg.ReduceOp | ReduceManyOp)
    half = len(op.operands) // 2
    print_typed_operands(printer, " ins", op.operands[:half])
    print_typed_operands(printer, " outs", op.operands[half:])
    _print_dims(printer, "dimensions", op.dimensions)
    _region_with_args(printer, op.region)


def _map(printer: Printer, op: Operation) -> None:
    assert isinstance(op, MapOp)
    if op.inputs:
        print_typed_operands(printer, " ins", op.inputs)
    print_typed_operands(printer, " outs", [op.init])
    _region_with_args(printer, op.mapper)


def _constant(printer: Printer, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" ")
    value = op.value
    if isinstance(value, FloatAttr):
        printer.print_float(value.value.data, value.type)
        printer.print_string(" : ")
        printer.print_attribute(value.type)
    else:
        printer.print_attribute(value)


_FORMATS: dict[str, Callable[[Printer, Operation], None]] = {
    "func.func": _func,
    "func.return": _return,
    "scf.for": _for,
    "scf.if": _if,
    "scf.yield": _return,
    "linalg.transpose": _transpose,
    "linalg.broadcast": _broadcast,
    "linalg.reduce": _reduce,
    "linalg.map": _map,
    "linalg.yield": _return,
    "arith.constant": _constant,
}


def print_text(module: ModuleOp) -> str:
    """The text of `module`, ending in a newline."""
    stream = StringIO()
    printer = KtirPrinter(stream)
    printer.print_op(module)
    text = "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
    return text.replace("builtin.module", "module", 1).replace("func.return", "return") + "\n"


__all__ = ["KtirPrinter", "TensorType", "print_text"]
