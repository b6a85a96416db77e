"""KTIR text in and out: `parse` and `print_module`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, ModuleOp
from xdsl.dialects.tensor import ExpandShapeOp, ReshapeOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError, PyRDLError, VerifyException

from tracer.ktir.diagnostics import Diagnostic, KtirError, at
from tracer.ktir.dialect.ktdp import context
from tracer.ktir.dialect.named_ops import named_violation
from tracer.ktir.rules.linalg import linalg_findings
from tracer.ktir.rules.regions import region_findings
from tracer.ktir.rules.scope import out_of_scope
from tracer.ktir.rules.tensors import tensor_findings
from tracer.ktir.text.explain import explain, missing_terminator, undefined_hint
from tracer.ktir.text.parser import KtirParser
from tracer.ktir.text.printer import print_text
from tracer.ktir.text.wording import reworded

# What xDSL's builders and parsers raise on malformed input besides ParseError.
_MALFORMED = (
    DiagnosticException,
    PyRDLError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    NotImplementedError,
    MemoryError,
    RecursionError,
    StopIteration,
)


def parse(text: str, filename: str = "<ktir>", *, verify: bool = True) -> ModuleOp:
    """The module that `text` spells, pretty or generic form, every operation stamped with its source
    location.

    Raises KtirError with one diagnostic for a syntax error (KT101), an undefined value (KT103), or, with
    `verify`, one for every operation that violates a rule of its own (KT102).
    """
    return read(text, filename, verify=verify)[0]


def read(
    text: str, filename: str = "<ktir>", *, verify: bool = True
) -> tuple[ModuleOp, tuple[Diagnostic, ...]]:
    """As `parse`, with warnings about what the text says and the module no longer shows: decimal floats too
    large for their type (KT124).
    """
    lines = text.splitlines()
    if not any(line.partition("//")[0].strip() for line in lines):
        raise KtirError(
            [_syntax("there is no operation; KTIR is a module of functions", filename, 1, 1, lines)]
        )
    if (open_string := _unterminated(lines)) is not None:
        raise KtirError([_syntax("the string is not closed", filename, *open_string, lines)])
    if (wide := _too_wide(lines)) is not None:
        raise KtirError([_syntax(f"no integer type has more than {_MAX_BITS} bits", filename, *wide, lines)])
    try:
        parser = KtirParser(context(), text, filename)
    except ParseError as error:
        place = error.span.get_location()
        said = reworded(error.msg, text, error.span.start)
        raise KtirError([_syntax(said, filename, place.line, place.col, lines)]) from None
    try:
        module = parser.parse_module()
    except ParseError as error:
        if error.msg.startswith("values used but not defined"):
            names = re.findall(r"%[^\s,\]]+", error.msg)
            raise KtirError([_undefined(name, text, parser, filename, lines) for name in names]) from None
        raise KtirError([_explained(error.msg, error.span.start, parser, text, lines)]) from None
    except _MALFORMED as error:
        position = parser._current_token.span.start
        raise KtirError([_explained(_first_line(error), position, parser, text, lines)]) from None
    if verify and (violations := op_violations(module, lines)):
        raise KtirError(violations)
    if verify and (strangers := [with_source(d, lines) for d in out_of_scope(module)]):
        raise KtirError(strangers)
    return module, tuple(_too_large(parser, lines))


def _too_large(parser: KtirParser, lines: list[str]) -> Iterator[Diagnostic]:
    for position, kind in parser.too_large:
        text = f"the number is too large for {kind}; write its bits where infinity or NaN is meant"
        found = Diagnostic("KT124", text, "warning", parser.filename, *parser.place(position))
        yield with_source(found, lines)


def print_module(module: ModuleOp) -> str:
    """Plain text of `module`; `parse` gives back an equal module with equal names."""
    return print_text(module)


def op_violations(module: ModuleOp, lines: list[str] | None = None) -> list[Diagnostic]:
    """Diagnostics for every operation whose own verifier rejects it, or whose types, regions or terminators
    do not fit.
    """
    found: dict[tuple[int, int, str], Diagnostic] = {}
    for op in module.walk():
        try:
            _verify_alone(op)
            findings = [*tensor_findings(op), *linalg_findings(op)] or list(region_findings(op))
        except _MALFORMED as error:
            findings = [_violation(op, _first_line(error))]
        for finding in findings:
            key = finding.line, finding.column, finding.message
            found.setdefault(key, with_source(finding, lines))
    return list(found.values())


def _violation(op: Operation, message: str) -> Diagnostic:
    message = message.removeprefix(f"{op.name}: ")
    if match := re.fullmatch(r'Redefinition of symbol "(.*)"', message):
        return at(_twice(op), "KT116", f"{match.group(1)} is defined twice")
    if message.endswith("index out of range"):
        message = "an axis that it names is not there; check dimensions and permutation against the ranks"
    if match := re.fullmatch(
        r"Region '(\w+)' .*but got 0 blocks|.*needs to have at least one block", message
    ):
        end = "scf.condition" if match.group(1) == "before_region" else missing_terminator(op.name)
        return at(op, "KT119", f"a region of {op.name} is empty; it must end with {end}")
    last = None
    if "terminates with operation" in message and op.regions and op.regions[0].blocks.last is not None:
        last = op.regions[0].blocks.last.last_op
    elif message.endswith("but is not a terminator"):
        last = op
    if last is not None and (parent := last.parent_op()) is not None:
        end = missing_terminator(parent.name)
        return at(last, "KT119", f"the body of {parent.name} must end with {end}, not with {last.name}")
    return at(op, "KT102", message)


def _twice(table: Operation) -> Operation:
    """The first operation whose symbol another one before it has."""
    seen: set[Attribute] = set()
    for op in table.walk():
        name = op.get_attr_or_prop("sym_name")
        if name in seen:
            return op
        if name is not None:
            seen.add(name)
    return table


_DYNAMIC = {"static_output_shape": "dynamic_output_shape"}


def _verify_alone(op: Operation) -> None:
    if (wrong := named_violation(op)) is not None:
        # Before xDSL's own rules, which speak of shapes that other maps or operands would have.
        raise VerifyException(wrong)
    if isinstance(op, ExpandShapeOp | ReshapeOp):
        # xDSL's own rules refuse rank 0, and multiply extents that are not known; ours are whole.
        op.get_irdl_definition().verify(op)
    else:
        op.verify(verify_nested_ops=False)
    for name, static in op.properties.items():
        if name.startswith("static_") and isinstance(static, DenseArrayBase):
            values = getattr(op, _DYNAMIC.get(name, name.removeprefix("static_")))
            marked = list(static.get_values()).count(DYNAMIC_INDEX)
            if marked != len(values):
                raise VerifyException(
                    f"{name} has {marked} dynamic entries, but {len(values)} values are given"
                )


def with_source(diagnostic: Diagnostic, lines: list[str] | None) -> Diagnostic:
    """The diagnostic with the source line it points at, where `lines` has it."""
    from dataclasses import replace

    if lines and 1 <= diagnostic.line <= len(lines):
        return replace(diagnostic, source=lines[diagnostic.line - 1])
    return diagnostic


def _first_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "the constant has more elements than memory can hold"
    text = str(error).strip().splitlines()
    # xDSL renders the operation under a verification error; the last line that is not IR says what is wrong.
    notes = [line.strip(" ^-\t") for line in text if line.strip(" ^-\t")]
    for line in notes:
        if line.startswith("Operation does not verify:"):
            return line.removeprefix("Operation does not verify:").strip()
    if len(notes) > 1 and notes[0].endswith("does not verify:"):
        return f"{notes[0]} {notes[1]}"
    return cast(str, notes[0]) if notes else type(error).__name__


def _syntax(message: str, filename: str, line: int, column: int, lines: list[str]) -> Diagnostic:
    return with_source(Diagnostic("KT101", message.strip(), "error", filename, line, column), lines)


def _explained(message: str, position: int, parser: KtirParser, text: str, lines: list[str]) -> Diagnostic:
    code, said, where, op = explain(message, position, parser, text)
    return with_source(Diagnostic(code, said, "error", parser.filename, *parser.place(where), op), lines)


_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+("?)|//.*')


def _unterminated(lines: list[str]) -> tuple[int, int] | None:
    """Place of a string that its line does not close; xDSL's lexer would take exponential time over it."""
    for number, line in enumerate(lines, 1):
        for match in _STRING_OR_COMMENT.finditer(line):
            if match.group().startswith('"') and not match.group(1):
                return number, match.start() + 1
    return None


_MAX_BITS = (1 << 24) - 1  # as in MLIR; xDSL would raise 2 to any width
_INTEGER_TYPE = re.compile(r"(?<![%@#^\w.$-])(?:[\d?]+x)*[su]?i(\d{8,})(?!\w)")


def _too_wide(lines: list[str]) -> tuple[int, int] | None:
    """Place of an integer type of a width that no number of its range could be computed for."""
    for number, line in enumerate(lines, 1):
        code = _STRING_OR_COMMENT.sub(lambda match: " " * len(match.group()), line)
        for match in _INTEGER_TYPE.finditer(code):
            if int(match.group(1)[:9]) > _MAX_BITS:
                return number, match.start() + 1
    return None


def _undefined(name: str, text: str, parser: KtirParser, filename: str, lines: list[str]) -> Diagnostic:
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)
    position = parser.unbound[name[1:]]
    line, column = parser.place(position)
    message = f"{name} is not defined{undefined_hint(name, code, position)}"
    if (elsewhere := parser.bound.get(name[1:])) is not None:
        message = f"{name} is not defined here; that of line {parser.place(elsewhere)[0]} is in another block"
    return with_source(Diagnostic("KT103", message, "error", filename, line, column), lines)
