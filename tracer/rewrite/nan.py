"""Which extremes may lose a NaN, so that Triton's own `tl.max` and `tl.min` compute them.

PyTorch's extreme of values with a NaN is NaN; that of `tl.max` is the greatest number. The difference is
seen unless whatever depends on the extreme is NaN anyway, as in softmax: the sum over `exp(x - max(x))` is
NaN wherever some x is.
"""

from __future__ import annotations

from dataclasses import replace

from tracer.rewrite.functions import NAN_STRICT
from tracer.rewrite.ir import Compute, Operand, Reduce, Statement, Store
from tracer.rewrite.types import is_float

NUMBER_FIRST = {"max": "maxnum", "min": "minnum"}
"""An extreme that is NaN where one of its values is, and the one that NaN does not take part in."""


def lose_nan(body: list[Statement]) -> list[Statement]:
    """`body` with every extreme in its number-first kind where no stored value can tell."""
    dtypes = {s.name: s.dtype for s in body if not isinstance(s, Store)}

    def unseen(extreme: Reduce) -> bool:
        source = extreme.args[0]
        return not isinstance(source, str) or not is_float(dtypes[source]) or not _tells(body, extreme)

    return [
        replace(s, kind=NUMBER_FIRST[s.kind])
        if isinstance(s, Reduce) and s.kind in NUMBER_FIRST and unseen(s)
        else s
        for s in body
    ]


def _tells(body: list[Statement], extreme: Reduce) -> bool:
    """Whether a store may depend on the extreme while one of its values is NaN."""
    depends: set[Operand] = {extreme.name}
    here: set[Operand] = set(extreme.args)  # NaN at the place of the NaN
    everywhere: set[Operand] = set()  # NaN along all reduced ranges
    for statement in body:
        args = set(statement.operands)
        match statement:
            case Compute(op=op, dtype=dtype) if op in NAN_STRICT and is_float(dtype):
                if args & everywhere:
                    everywhere.add(statement.name)
                    continue
                if args & here:
                    here.add(statement.name)
            case Reduce(kind="sum", dtype=dtype) if args & (here | everywhere) and is_float(dtype):
                everywhere.add(statement.name)
                continue
            case Store() if args & depends:
                return True
        if args & depends:
            depends.add(statement.name)
    return False
