"""The `tt` dialect and the reader of TTIR text.

Locations are kept: `Operation.location` of every op read names the variable and the source line.
"""

from __future__ import annotations

import re
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, builtin, math, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from tracer.ktir import arith_ops
from tracer.ktir.extra_ops import ARITH_OPS
from tracer.lower.edit import element_type
from tracer.lower.errors import MalformedTtirError, UnsupportedOpsError
from tracer.lower.locations import split_locations
from tracer.lower.tt_ops import OPS
from tracer.lower.tt_types import DescriptorType, PointerType

Tt = Dialect("tt", list(OPS), [PointerType, DescriptorType])

_FILE = StringAttr("kernel")
_OP = re.compile(r'(?:%[\w:, %]+ = )?"?([a-z_]+(?:\.[a-z_.0-9]+)?)"?(?:[ (]|$)')
_BITS = re.compile(r"arith\.constant dense<(0x[0-9A-F]+)> : (tensor<[0-9x]*b?f\d+>)")
_SCALAR_BITS = re.compile(r"arith\.constant (0x[0-9A-F]+) : (b?f\d+)")
_SCALAR_MARK = r'arith.constant {bits = "\1"} 0.0 : \2'


def context() -> Context:
    """A fresh context that reads TTIR."""
    ctx = Context()
    extra = cast(list[type[Operation]], [*arith_ops.OPS, *ARITH_OPS])
    own = {op.name: op for op in extra}
    arithmetic = [op for op in arith.Arith.operations if op.name not in own]
    ctx.load_dialect(builtin.Builtin)
    ctx.load_dialect(Dialect("arith", [*arithmetic, *own.values()], list(arith.Arith.attributes)))
    ctx.load_dialect(math.Math)
    ctx.load_dialect(scf.Scf)
    ctx.load_dialect(Tt)
    return ctx


def parse_ttir(text: str) -> ModuleOp:
    """The module that Triton printed, every operation with its source line.

    Raises UnsupportedOpsError for operations that have no reading, MalformedTtirError otherwise.
    """
    ctx = context()
    code, lines = split_locations(text)
    _reject_unknown(ctx, code, lines)
    try:
        module = Parser(ctx, _mark_bits(code)).parse_module()
        _restore_bits(module)
        module.verify()
    except (ParseError, VerifyException) as error:
        raise MalformedTtirError(reason=str(error).strip().splitlines()[-1]) from error
    ops = [op for op in module.walk() if not isinstance(op, scf.YieldOp) or op.operands]
    for op, line in zip(ops, lines, strict=True):
        op.location = FileLineColLoc(_FILE, IntAttr(line), IntAttr(0))
    return module


def source_line(op: Operation) -> int:
    """Line of the kernel source that an op comes from; 0 if unknown."""
    current: Operation | None = op
    while current is not None:
        if isinstance(current.location, FileLineColLoc) and current.location.line.data:
            return current.location.line.data
        current = current.parent_op()
    return 0


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


def _reject_unknown(ctx: Context, code: str, lines: list[int]) -> None:
    unknown: dict[str, list[int]] = {}
    rows = [row.strip() for row in code.splitlines()]
    starts = [row for row in rows if row and not row.startswith(("^", "}"))]
    for row, line in zip(starts, lines, strict=True):
        match = _OP.match(row)
        if match and match[1] != "module" and ctx.get_optional_op(match[1]) is None:
            unknown.setdefault(match[1], []).append(line)
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
