"""The reader of TTIR text: one operation a row, as Triton prints it.

Triton has verified what it prints, and defines values above their uses. So of the types that a row spells
only those of its results are read, which takes a quarter of the time of a parser of all of MLIR.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import ParseError, VerifyException

from tracer.ktir.dialect import arith_ops
from tracer.ktir.dialect.extra_ops import ARITH_OPS
from tracer.lower import tt_ops as tt
from tracer.lower.edit import element_type, integer_constant, splat_constant
from tracer.lower.errors import MalformedTtirError, UnsupportedOpsError
from tracer.lower.locations import rows_with_lines
from tracer.lower.spelling import (
    read_arguments,
    read_attributes,
    read_names,
    read_number,
    read_type,
    read_types,
)
from tracer.lower.tt_dialect import describe_offenders

_ROW = re.compile(r'(?:(%[^=]+) = )?"?(module|[a-z_]\w*\.[\w.]+)"?(.*)')
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_SETTING = re.compile(r"(\w+) = (\w+)(?![^{]*\})")
_CARRIED = re.compile(r"(%\S+) = (%[^\s,)]+)")
_FUNCTION = re.compile(r" (?:public |private )?@([\w$.-]+)\((.*)\)(?: attributes \{.*\})? \{")
_LOOP = re.compile(r" (%\S+) = (%\S+) to (%\S+) step (%\S+)(?: iter_args\((.*)\) -> \(.*\))? +: \w+ \{")
_BRANCH = re.compile(r" (%\S+)(?: -> \((.*)\))? \{")


def parse_ttir(text: str) -> ModuleOp:
    """The module that Triton printed, every operation with its source line.

    Raises UnsupportedOpsError for operations that have no reading, MalformedTtirError otherwise.
    """
    rows = rows_with_lines(text)
    _reject_unknown(rows)
    reader = _Reader(rows)
    try:
        module = reader.module()
        module.verify()
    except StopIteration as error:
        raise MalformedTtirError(reason="the text ends too early") from error
    except (ParseError, TypeError, ValueError) as error:
        raise MalformedTtirError(reason=f"{reader.row}: {_last_line(error)}") from error
    except VerifyException as error:
        raise MalformedTtirError(reason=_last_line(error)) from error
    return module


def _last_line(error: Exception) -> str:
    """What is wrong; xDSL writes the operation above it."""
    return str(error).strip().splitlines()[-1]


def _reject_unknown(rows: Sequence[tuple[str, int]]) -> None:
    unknown: dict[str, list[int]] = {}
    for code, line in rows:
        match = _ROW.fullmatch(code)
        if match and match[2] not in _KINDS:
            unknown.setdefault(match[2], []).append(line)
    if unknown:
        raise UnsupportedOpsError(ops=describe_offenders(unknown))


class _Row(NamedTuple):
    """The beginning of an operation: `results = kind text`."""

    results: list[str]
    kind: type[Operation]
    text: str


class _Values(dict[str, SSAValue]):
    def __missing__(self, name: str) -> SSAValue:
        raise ValueError(f"{name} is used before it is defined")


class _Reader:
    """Reads rows in order. `row` and `line` are the current one, `values` what is defined so far."""

    def __init__(self, rows: Sequence[tuple[str, int]]):
        self.rows = iter(rows)
        self.row, self.line = "", 0
        self.values = _Values()

    def module(self) -> ModuleOp:
        """The whole text."""
        self._advance()
        module = self._operation()
        if not isinstance(module, ModuleOp):
            raise ValueError("this is no module")
        return module

    def _advance(self) -> str:
        self.row, self.line = next(self.rows)
        return self.row

    def _operation(self) -> Operation:
        """The operation that begins in the current row; it ends there, or with its last region."""
        match = _ROW.fullmatch(self.row)
        if match is None:
            raise ValueError("this is no operation")
        row = _Row(read_names(match[1] or ""), _KINDS[match[2]], match[3])
        op = _READERS.get(row.kind, _Reader._plain)(self, row)
        op.location = _location(self.line)
        self._define(row.results, op.results)
        return op

    def _define(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        for name, value in zip(names, values, strict=True):
            self.values[name] = value
            hint = name[1:].partition("#")[0]
            if SSAValue.is_valid_name(hint):
                value.name_hint = hint

    def _operands(self, text: str) -> list[SSAValue]:
        return [self.values[name] for name in _VALUE.findall(text)]

    def _region(self, names: Sequence[str] = (), types: Sequence[Attribute] = ()) -> Region:
        """Operations up to the row that closes the region, which becomes the current one."""
        block = Block(arg_types=types)
        self._define(names, block.args)
        while not self._advance().startswith("}"):
            block.add_op(self._operation())
        return Region(block)

    def _plain(self, row: _Row) -> Operation:
        """`%a[%b], %c setting = word {attributes} : types`, what precedes the types in any order."""
        head, types = [*row.text.rsplit(" : ", 1), ""][:2]
        settings = {key: StringAttr(word) for key, word in _SETTING.findall(head)}
        return row.kind.create(
            operands=self._operands(head),
            result_types=read_types(types, len(row.results)),
            attributes=read_attributes(head) | settings,
        )

    def _module(self, row: _Row) -> Operation:
        return row.kind.create(regions=[self._region()])

    def _function(self, row: _Row) -> Operation:
        name, arguments = _groups(_FUNCTION, row.text)
        names, types = read_arguments(arguments)
        properties = {"sym_name": StringAttr(name), "function_type": FunctionType.from_lists(types, [])}
        return row.kind.create(properties=properties, regions=[self._region(names, types)])

    def _loop(self, row: _Row) -> Operation:
        induction, *bounds, carried = _groups(_LOOP, row.text)
        pairs = _CARRIED.findall(carried)
        operands = [self.values[name] for name in (*bounds, *(initial for _, initial in pairs))]
        types = [operand.type for operand in operands[2:]]
        region = _terminated(self._region([induction, *(name for name, _ in pairs)], types))
        return row.kind.create(operands=operands, result_types=types[1:], regions=[region])

    def _branch(self, row: _Row) -> Operation:
        condition, types = _groups(_BRANCH, row.text)
        operands = [self.values[condition]]
        regions = [_terminated(self._region()), Region()]
        if self.row == "} else {":
            regions[1] = _terminated(self._region())
        result_types = read_types(types, len(row.results))
        return row.kind.create(operands=operands, result_types=result_types, regions=regions)

    def _combination(self, row: _Row) -> Operation:
        """`(%a, %b) <{properties}> ({`, the row of the combiner's arguments, its body, `}) : types`."""
        operands, properties = self._operands(row.text), read_attributes(row.text.removesuffix("({"))
        names, types = read_arguments(self._advance().partition("(")[2].removesuffix("):"))
        regions = [self._region(names, types)]
        result_types = read_types(self.row, len(row.results))
        return row.kind.create(
            operands=operands, result_types=result_types, properties=properties, regions=regions
        )

    def _constant(self, row: _Row) -> Operation:
        """`5 : i32`, `dense<1.0> : T`, and `true`, whose type goes without saying."""
        text, type_text = [*row.text.strip().rsplit(" : ", 1), "i1"][:2]
        kind = read_type(type_text)
        number = read_number(text.removeprefix("dense<").removesuffix(">"), element_type(kind))
        if isinstance(kind, TensorType):
            return splat_constant(number, kind)
        if isinstance(kind, AnyFloat):
            return arith.ConstantOp(FloatAttr(number, kind))
        return integer_constant(int(number), kind)

    def _comparison(self, row: _Row) -> Operation:
        """`predicate, %a, %b : T`."""
        return cast(Any, row.kind)(*self._operands(row.text), row.text.strip().partition(",")[0])

    def _unsplat(self, row: _Row) -> Operation:
        (source,) = self._operands(row.text)
        return row.kind.create(operands=[source], result_types=[element_type(source.type)])

    def _program(self, row: _Row) -> Operation:
        """`x : i32`."""
        axis, kind = row.text.strip().split(" : ")
        return row.kind.create(result_types=[read_type(kind)], properties={"axis": StringAttr(axis)})


_READERS: dict[type[Operation], Callable[[_Reader, _Row], Operation]] = {
    ModuleOp: _Reader._module,
    tt.FuncOp: _Reader._function,
    scf.ForOp: _Reader._loop,
    scf.IfOp: _Reader._branch,
    tt.ReduceOp: _Reader._combination,
    tt.ScanOp: _Reader._combination,
    arith.ConstantOp: _Reader._constant,
    arith_ops.CmpiOp: _Reader._comparison,
    arith_ops.CmpfOp: _Reader._comparison,
    tt.UnsplatOp: _Reader._unsplat,
    tt.GetProgramIdOp: _Reader._program,
    tt.GetNumProgramsOp: _Reader._program,
}
_STRUCTURED = {"module": ModuleOp, "scf.for": scf.ForOp, "scf.if": scf.IfOp, "scf.yield": scf.YieldOp}
_OPS = cast(
    Iterable[type[Operation]],
    # Of two classes of one name the last is the one to use.
    (*arith.Arith.operations, *arith_ops.OPS, *ARITH_OPS, *math.Math.operations, *tt.OPS),
)
_KINDS = {op.name: op for op in _OPS} | cast(dict[str, type[Operation]], _STRUCTURED)


def _groups(pattern: re.Pattern[str], text: str) -> list[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError("the row is not spelled as Triton does")
    return [group or "" for group in match.groups()]


def _terminated(region: Region) -> Region:
    """A region of `scf` with the terminator that is not spelled where it has no operands."""
    last = region.block.last_op
    if last is None or not last.has_trait(IsTerminator):
        region.block.add_op(scf.YieldOp())
    return region


@functools.lru_cache(maxsize=1024)
def _location(line: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr("kernel"), IntAttr(line), IntAttr(0))
