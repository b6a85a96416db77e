"""What a person needs to hear about a text that does not parse: the value, the operation, the line at
fault, and a near name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from xdsl.ir import Block
from xdsl.irdl import IRDLOperation, VarResultDef

from tracer.ktir.diagnostics import location
from tracer.ktir.dialect.ktdp import DIALECTS, context
from tracer.ktir.dialect.named_ops import OWN_MAPS
from tracer.ktir.text.parser import KtirParser
from tracer.ktir.text.wording import reworded

_UNKNOWN_OP = re.compile(r"[Oo]peration (\S+) is not registered")
_LATER_TYPE = re.compile(r"Result (%\S+) is defined with type (.+), but used with type (.+)", re.DOTALL)
_UNKNOWN_TYPE = re.compile(r"'([^']+)' is not registered")
_OTHER_TYPE = re.compile(
    r"operand is used with type (.+), but has been previously used or defined with type (.+)", re.DOTALL
)
_STATEMENT = re.compile(r"\s*([a-z]\w*\.[\w.]+)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPES = (
    *("tensor", "memref", "index", "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2"),
    *("i1", "i8", "i16", "i32", "i64"),
)
_BARE = {
    "type": _TYPES,
    "attribute": ("affine_map", "affine_set", "dense", "array", "true", "false", "unit", *_TYPES),
}
"""What is written without `#` and `!`."""
_OP_OF_LINE = re.compile(r"(?:%[^=]*=\s*)?\"?([\w.]+)")


class Explained(NamedTuple):
    """Code, message and place of a finding, and the operation it is about."""

    code: str
    message: str
    position: int
    op: str = ""


def explain(message: str, position: int, parser: KtirParser, text: str) -> Explained:
    """The finding behind what xDSL's parser says about a character position."""
    message = reworded(message, text, position)
    op = _op_at(text, parser.open[-1]) if parser.open else ""
    if match := _UNKNOWN_OP.search(message):
        found = text.rfind(match.group(1), 0, position + 1)
        return _unknown_op(match.group(1), found if found >= 0 else position)
    if match := _UNKNOWN_TYPE.fullmatch(message):
        # `#name<kind>` is read as `name.kind`, so the text may hold the first part only.
        parts = (match.group(1), match.group(1).partition(".")[0])
        found = max(text.rfind(part, 0, position + 1) for part in parts)
        return _unknown_type(match.group(1), found if found >= 0 else position, op)
    if match := _OTHER_TYPE.search(message):
        return Explained("KT104", _other_type(parser, text, position, *match.groups()), position, op)
    if message.endswith(OWN_MAPS):
        return Explained("KT102", message.removeprefix(f"{op} "), parser.open[-1], op)
    if message.startswith("an indirect index must stand alone"):
        return Explained("KT120", message, position, op)
    if match := _LATER_TYPE.search(message):
        name, known, used = match.groups()
        return Explained(
            "KT104", f"{name} is used as {used} before this, but defined as {known} here", position, op
        )
    if (match := re.fullmatch(r"Identifier not in space (\S+)", message)) is not None:
        message = f"{match.group(1)} is not among the dimensions and symbols of this map or set"
    elif not text[position:].strip() and _braces(text) > 0 and (opened := _unclosed(text, parser)):
        line, head = opened
        return Explained(
            "KT101",
            f"a closing brace is missing: nothing closes the one of line {line}, `{head}`",
            _end_before(text, position),
        )
    elif message == "Expected region!":
        message = f"{op} needs a region in braces here"
        if op == "scf.for" and text.startswith("->", position):
            message = "results need iter_args before them, one for each"
    elif match := re.fullmatch(r"SSA value (%\S+) is already defined", message):
        message += _first_line(parser, match.group(1))
    elif match := re.fullmatch(r"\S+ needs (\w+)", message):
        message = f"it needs {match.group(1)}{_misspelt(match.group(1), op, text[position : parser.pos])}"
    elif message in ("attribute expected", "type expected") and (match := _WORD.match(text, position)):
        kind, word = message.split()[0], match.group()
        message = f"there is no {kind} {word}{suggestion(word, _BARE[kind])}"
    elif match := re.fullmatch(r"Unexpected attribute (.+)", message):
        message = f"{op} does not take {match.group(1)} here"
    if _looked_ahead(parser, text, position):
        # The parser noticed at the first token of the next line what the end of this one lacks.
        position = _end_before(text, position)
    return Explained("KT101", message.removeprefix(f"{op} "), position, op)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the nearest known name, or nothing."""
    near = get_close_matches(name, [k for k in dict.fromkeys(known) if k != name], 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    """As `suggestion`; a name that breaks off is completed."""
    begun = (
        sorted((k for k in known if k.startswith(name)), key=lambda k: (len(k), k)) if len(name) > 2 else []
    )
    return f"; did you mean {begun[0]}?" if begun else suggestion(name, known)


def undefined_hint(name: str, code: str, position: int) -> str:
    """What a use at `position` of a value that nothing defines may have meant; `code` is free of comments."""
    above = code[:position].splitlines()
    for number, line in reversed(list(enumerate(above, 1))):
        match = _STATEMENT.match(line)
        if match and (kind := context().get_optional_op(match.group(1))) is not None:
            results = kind.get_irdl_definition().results if issubclass(kind, IRDLOperation) else []
            if any(not isinstance(result, VarResultDef) for _, result in results):
                return f"; the result of {match.group(1)} in line {number} has no name"
    if (difference := _difference(name, defined_names(code))) is not None:
        return f"; did you mean {difference}? A name may hold a minus sign"
    known = "\n".join(above[:-1])
    return suggestion(name, defined_names(known)) or suggestion(name, defined_names(code))


def _difference(name: str, known: Sequence[str]) -> str | None:
    """The difference that a name was meant to be which ends in a minus sign and a number."""
    left, _, right = name.rpartition("-")
    return f"{left} - {right}" if left in known and right.isdecimal() else None


def _misspelt(name: str, op: str, code: str) -> str:
    """The key nearest to `name` in the attributes of `op` that is none of its own."""
    kind = context().get_optional_op(op)
    own = kind.get_irdl_definition().properties if kind and issubclass(kind, IRDLOperation) else {}
    keys = [key for key in re.findall(r"(\w+)\s*=(?!=)", code) if key != name and key not in own]
    near = get_close_matches(name, keys, 1, 0.6)
    return f"; did you mean it by {near[0]}?" if near else ""


def _first_line(parser: KtirParser, name: str) -> str:
    values = parser.ssa_values.get(name[1:], ())
    owner = values[0].owner if values else None
    if isinstance(owner, Block):
        return " as an argument"
    line = location(owner)[1]
    return f" in line {line}" if line else ""


def defined_names(text: str) -> list[str]:
    """Names of values that the text binds: results, arguments, loop variables."""
    lines = [re.sub(r"//.*", "", line) for line in text.splitlines()]
    return re.findall(r"(%[\w$.-]+)(?=\s*(?:=|:(?!:)|,\s*%[^=\n]*=))", "\n".join(lines))


def _unknown_op(name: str, position: int) -> Explained:
    if name == "return":
        return Explained("KT101", "return is outside of every function; a } above is one too many", position)
    dialect = name.partition(".")[0]
    if name.rstrip(".") in DIALECTS:
        return Explained(
            "KT117", f"{dialect} is a dialect; the name of an operation follows it", position, name
        )
    registered = sorted(op.name for op in context().loaded_ops)
    near = _nearest(name, [*registered, *(r.removeprefix("builtin.") for r in registered)])
    if "." in name and dialect not in DIALECTS:
        known = ", ".join(DIALECTS[1:])
        text = f"dialect {dialect} does not belong to KTIR, which has {known}{near}"
        return Explained("KT112", text, position, name)
    return Explained("KT117", f"there is no operation {name} in KTIR{near}", position, name)


def _unknown_type(name: str, position: int, op: str) -> Explained:
    dialect = name.partition(".")[0]
    if dialect not in DIALECTS:
        known = ", ".join(DIALECTS[1:])
        return Explained(
            "KT112", f"{name}: dialect {dialect} does not belong to KTIR, which has {known}", position, op
        )
    near = _nearest(name, [a.name for a in (*context().loaded_types, *context().loaded_attrs)])
    return Explained("KT101", f"there is no type or attribute {name} in KTIR{near}", position, op)


def _braces(text: str) -> int:
    code = re.sub(r'//.*|"(?:[^"\\\n]|\\.)*"', "", text)
    return code.count("{") - code.count("}")


def _other_type(parser: KtirParser, text: str, position: int, used: str, known: str) -> str:
    match = re.match(r"%[\w$.-]+", text[position:])
    name = match.group() if match else "the operand"
    values = parser.ssa_values.get(name[1:], ())
    owner = values[0].owner if values else None
    if isinstance(owner, Block):
        return f"{name} is used as {used} here, but it is an argument of type {known}"
    line = location(owner)[1]
    where = f" in line {line}" if line else ""
    return f"{name} is used as {used} here, but defined as {known}{where}"


def _op_at(text: str, position: int) -> str:
    match = _OP_OF_LINE.match(text[position:])
    return match.group(1) if match and not match.group(1).isdigit() else ""


def _looked_ahead(parser: KtirParser, text: str, position: int) -> bool:
    if position != parser._current_token.span.start or not parser.open:
        return False
    line_start = text.rfind("\n", 0, position) + 1
    # An operation with a region is still open while those of its body are read; only one that began on the
    # line before is what the error is about.
    begun = parser.open[-1]
    if text[line_start:position].strip() or begun >= line_start:
        return False
    return not text[begun:position].rstrip().endswith(("{", "}"))


def _end_before(text: str, position: int) -> int:
    lines = text[:position].splitlines(keepends=True)
    end = len(text[:position])
    while lines:
        line = lines.pop()
        end -= len(line)
        if code := re.sub(r"//.*", "", line).rstrip():
            return end + len(code)
    return 0


def _unclosed(text: str, parser: KtirParser) -> tuple[int, str] | None:
    """Line and beginning of the block whose brace is missing, told by indentation where that helps."""
    stack: list[tuple[int, int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"//.*", "", raw).rstrip()
        code = line.strip()
        indent = len(line) - len(line.lstrip())
        if code.startswith("}") and stack:
            if indent != stack[-1][1] and any(indent == s[1] for s in stack):
                return stack[-1][0], stack[-1][2]
            stack.pop()
        if code.endswith("{"):
            stack.append((number, indent, code[:60]))
    if stack:
        return stack[-1][0], stack[-1][2]
    if not parser.open:
        return None
    return parser.place(parser.open[0])[0], _op_at(text, parser.open[0])


def missing_terminator(parent: str) -> str:
    """The operation that ends a block of `parent`."""
    names: Sequence[tuple[str, str]] = (
        ("func.", "return"),
        ("scf.", "scf.yield"),
        ("linalg.", "linalg.yield"),
        ("tensor.", "tensor.yield"),
    )
    return next((end for prefix, end in names if parent.startswith(prefix)), "terminator")
