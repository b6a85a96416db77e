"""The `tt` dialect and the reader of TTIR text.

Locations are kept: `Operation.location` of every op read names the variable and the source line.
"""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects import arith, builtin, math, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    CallSiteLoc,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    FusedLoc,
    ModuleOp,
    NameLoc,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from tracer.ktir.extra_ops import ARITH_OPS
from tracer.lower import arith_ops
from tracer.lower.edit import element_type
from tracer.lower.errors import MalformedTtirError, UnsupportedOpsError
from tracer.lower.tt_ops import OPS
from tracer.lower.tt_types import DescriptorType, PointerType

Tt = Dialect("tt", list(OPS), [PointerType, DescriptorType])

_ALIAS = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)
_REFERENCE = re.compile(r"#loc\d*")
_OP = re.compile(r'^\s*(?:%[\w:, %]+ = )?"?([a-z_]+\.[a-z_.0-9]+)"?[ (]', re.MULTILINE)
_BITS = re.compile(r"arith\.constant dense<(0x[0-9A-F]+)> : (tensor<[0-9x]*b?f\d+>)")
_SCALAR_BITS = re.compile(r"arith\.constant (0x[0-9A-F]+) : (b?f\d+)")
_SCALAR_MARK = r'arith.constant {bits = "\1"} 0.0 : \2'
_KERNEL_FILE = "<triton "


def context() -> Context:
    """A fresh context that reads TTIR."""
    ctx = Context()
    own = {op.name for op in arith_ops.OPS}
    arithmetic = [op for op in arith.Arith.operations if op.name not in own]
    ctx.load_dialect(builtin.Builtin)
    ctx.load_dialect(
        Dialect("arith", [*arithmetic, *ARITH_OPS, *arith_ops.OPS], list(arith.Arith.attributes))
    )
    ctx.load_dialect(math.Math)
    ctx.load_dialect(scf.Scf)
    ctx.load_dialect(Tt)
    return ctx


def parse_ttir(text: str) -> ModuleOp:
    """The module that Triton printed.

    Raises UnsupportedOpsError for operations that have no reading, MalformedTtirError otherwise.
    """
    ctx = context()
    _reject_unknown(ctx, text)
    try:
        module = Parser(ctx, _mark_bits(_aliases_first(text))).parse_module()
        _restore_bits(module)
        module.verify()
    except (ParseError, VerifyException) as error:
        raise MalformedTtirError(reason=str(error).strip().splitlines()[-1]) from error
    return module


def source_line(op: Operation) -> int:
    """Line of the kernel source that an op comes from; 0 if unknown."""
    current: Operation | None = op
    while current is not None:
        line = _kernel_line(current.location)
        if line:
            return line
        current = current.parent_op()
    return 0


def _kernel_line(location: Attribute) -> int:
    """The line inside the kernel's own file, whatever library function it was inlined from."""
    match location:
        case FileLineColLoc():
            return location.line.data if location.filename.data.startswith(_KERNEL_FILE) else 0
        case NameLoc():
            return _kernel_line(location.location)
        case CallSiteLoc():
            return _kernel_line(location.callee) or _kernel_line(location.caller)
        case FusedLoc():
            return next((line for part in location.locations if (line := _kernel_line(part))), 0)
        case _:
            return 0


def _aliases_first(text: str) -> str:
    """Location aliases moved to the top, each after those it refers to: the reader knows no forward reference."""
    aliases = dict(_ALIAS.findall(text))
    ordered: dict[str, str] = {}

    def place(name: str) -> None:
        if name in ordered or name not in aliases:
            return
        for reference in _REFERENCE.findall(aliases[name]):
            place(reference)
        ordered[name] = aliases[name]

    for name in aliases:
        place(name)
    # Operations without a location of their own would end in a bare `loc(#loc)` of the whole function.
    head = "\n".join(f"{name} = {value}" for name, value in ordered.items())
    return f"{head}\n{_ALIAS.sub('', text)}"


def _mark_bits(text: str) -> str:
    """Floats spelled by their bits (infinities, NaN), which xDSL reads as integers, become an attribute."""
    return _BITS.sub(r'arith.constant {bits = "\1"} dense<0.0> : \2', _SCALAR_BITS.sub(_SCALAR_MARK, text))


def _restore_bits(module: ModuleOp) -> None:
    for op in module.walk():
        bits = op.attributes.pop("bits", None)
        if not isinstance(bits, StringAttr) or not isinstance(op, arith.ConstantOp):
            continue
        kind = element_type(op.result.type)
        assert isinstance(kind, AnyFloat)
        payload = int(bits.data, 16).to_bytes(kind.size, "little")
        value = kind.unpack(payload, 1)[0]
        if isinstance(op.result.type, TensorType):
            op.properties["value"] = DenseIntOrFPElementsAttr.from_list(op.result.type, [value])
        else:
            op.properties["value"] = FloatAttr(value, kind)


def _reject_unknown(ctx: Context, text: str) -> None:
    unknown: dict[str, list[int]] = {}
    aliases = dict(_ALIAS.findall(text))
    for match in _OP.finditer(text):
        name = match[1]
        if name == "builtin.module" or ctx.get_optional_op(name) is not None:
            continue
        end = text.find("\n", match.end())
        unknown.setdefault(name, []).append(_text_line(text[match.start() : end], aliases))
    if unknown:
        raise UnsupportedOpsError(ops=describe_offenders(unknown))


def describe_offenders(offenders: dict[str, list[int]]) -> str:
    """`tt.load (lines 3, 7), tt.store (line 9)`."""
    parts = []
    for name, numbers in sorted(offenders.items()):
        lines = sorted({n for n in numbers if n})
        where = f" (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})" if lines else ""
        parts.append(name + where)
    return ", ".join(parts)


def _text_line(line: str, aliases: dict[str, str]) -> int:
    """The kernel source line of one printed op, by its last location."""
    pending, seen = _REFERENCE.findall(line)[-1:], set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        body = aliases.get(name, "")
        if found := re.search(rf'"{_KERNEL_FILE}[^"]*":(\d+):', body):
            return int(found[1])
        pending += _REFERENCE.findall(body)
    return 0
