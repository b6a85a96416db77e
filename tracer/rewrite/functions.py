"""What Inductor's kernels may call, as data: source spelling -> IR op -> Triton text.

`OPS` maps an IR op to its Triton text (a format string over the arguments) and to the rule of its result
dtype. `CALLS` maps Inductor's spellings to IR ops. `ZERO_AT_ZERO` drives the padding analysis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DtypeRule = Literal["promote", "same", "bool", "branches"]


@dataclass(frozen=True)
class Op:
    """Triton text of an elementwise op, and how its dtype follows from its arguments."""

    text: str
    dtype: DtypeRule = "promote"


OPS: dict[str, Op] = {
    "add": Op("{0} + {1}"),
    "sub": Op("{0} - {1}"),
    "mul": Op("{0} * {1}"),
    "div": Op("{0} / {1}"),
    "floordiv": Op("{0} // {1}"),
    "mod": Op("{0} % {1}"),
    "neg": Op("-{0}", "same"),
    "not": Op("~{0}", "same"),
    "and": Op("{0} & {1}"),
    "or": Op("{0} | {1}"),
    "xor": Op("{0} ^ {1}"),
    "shl": Op("{0} << {1}", "same"),
    "shr": Op("{0} >> {1}", "same"),
    "eq": Op("{0} == {1}", "bool"),
    "ne": Op("{0} != {1}", "bool"),
    "lt": Op("{0} < {1}", "bool"),
    "le": Op("{0} <= {1}", "bool"),
    "gt": Op("{0} > {1}", "bool"),
    "ge": Op("{0} >= {1}", "bool"),
    "where": Op("tl.where({0}, {1}, {2})", "branches"),
    "maximum": Op("tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
    "minimum": Op("tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"),
    "fma": Op("tl.fma({0}, {1}, {2})"),
    "abs": Op("tl.abs({0})", "same"),
    "exp": Op("tl.exp({0})", "same"),
    "exp2": Op("tl.exp2({0})", "same"),
    "log": Op("tl.log({0})", "same"),
    "log2": Op("tl.log2({0})", "same"),
    "sqrt": Op("tl.sqrt({0})", "same"),
    "sqrt_rn": Op("tl.sqrt_rn({0})", "same"),
    "rsqrt": Op("tl.rsqrt({0})", "same"),
    "sin": Op("tl.sin({0})", "same"),
    "cos": Op("tl.cos({0})", "same"),
    "erf": Op("tl.erf({0})", "same"),
    "floor": Op("tl.floor({0})", "same"),
    "ceil": Op("tl.ceil({0})", "same"),
    "sigmoid": Op("tl.sigmoid({0})", "same"),
    "isnan": Op("{0} != {0}", "bool"),
    "signbit": Op("{0}.to(tl.int32, bitcast=True) < 0", "bool"),
    "isinf": Op('tl.abs({0}) == float("inf")', "bool"),
}

# What tl has no word for stays a libdevice call: Triton lowers it, KTIR has the math op.
LIBDEVICE = ("tanh", "log1p", "expm1", "pow", "atan", "atan2", "asin", "acos", "sinh", "cosh", "tan", "erfc",
             "fmod", "nearbyint", "trunc", "round", "copysign", "log10", "asinh", "acosh", "atanh", "rint",
             "llrint", "hypot")  # fmt: skip
OPS |= {
    name: Op(
        f"libdevice.{name}({', '.join(f'{{{i}}}' for i in range(arity))})",
        "same" if arity == 1 else "promote",
    )
    for name in LIBDEVICE
    for arity in [2 if name in ("pow", "atan2", "fmod", "copysign", "hypot") else 1]
}

_NAMESPACES = ("tl", "tl_math", "libdevice", "tl.math", "tl.extra.cuda.libdevice", "triton_helpers", "math",
               "triton.language")  # fmt: skip
CALLS: dict[str, str] = {
    f"{space}.{name}": name for space in _NAMESPACES for name in OPS if "{0}" in OPS[name].text
}
CALLS |= {f"{space}.{ours}": name for space in _NAMESPACES for ours, name in {
    "fabs": "abs", "signbit": "signbit", "div_rn": "div", "isnan": "isnan", "isinf": "isinf", "pow": "pow",
}.items()}  # fmt: skip

BINARY = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "floordiv", "Mod": "mod",
          "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "shl", "RShift": "shr"}  # fmt: skip
COMPARE = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
UNARY = {"USub": "neg", "Invert": "not"}


@dataclass(frozen=True)
class Reduction:
    """Triton text of a reduction over `axis`, its identity, and the op that combines two partial results.

    `flat` reduces a whole tile to a scalar, where Triton can; `enter` and `leave` convert the reduced tile
    and the result; `helper` names a function of `HELPERS` that the text calls.

    `max` and `min` are NaN where one of their values is, `maxnum` and `minnum` pass it over.
    """

    text: str
    identity: float
    combine: str
    flat: str = ""
    enter: str = "{0}"
    leave: str = "{0}"
    helper: str = ""


def _combined(helper: str, identity: float, combine: str) -> Reduction:
    """A reduction that Triton has no word for."""
    text, flat = (f"tl.reduce({{0}}, {axis}, {helper})" for axis in ("{axis}", "None"))
    return Reduction(text, identity, combine, flat, helper=helper)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction("tl.sum({0}, axis={axis})", 0, "add", flat="tl.sum({0})"),
    "max": _combined("maximum", float("-inf"), "maximum"),
    "min": _combined("minimum", float("inf"), "minimum"),
    "maxnum": Reduction("tl.max({0}, axis={axis})", float("-inf"), "maximum", flat="tl.max({0})"),
    "minnum": Reduction("tl.min({0}, axis={axis})", float("inf"), "minimum", flat="tl.min({0})"),
    "prod": _combined("multiply", 1, "mul"),
    "any": Reduction(
        "tl.sum({0}, axis={axis})", 0, "or", flat="tl.sum({0})", enter="{0}.to(tl.int32)", leave="({0} > 0)"
    ),
    "argmax": Reduction("tl.argmax({0}, axis={axis})", float("-inf"), "", leave="{0}.to(tl.int64)"),
    "argmin": Reduction("tl.argmin({0}, axis={axis})", float("inf"), "", leave="{0}.to(tl.int64)"),
}

HELPERS: dict[str, tuple[str, ...]] = {
    name: ("@triton.jit", f"def {name}(a, b):", f"    return {OPS[op].text.format('a', 'b')}", "", "")
    for name, op in {"maximum": "maximum", "minimum": "minimum", "multiply": "mul"}.items()
}
"""Source lines of the functions that reductions call."""

SCANS: dict[str, str] = {"add": "tl.cumsum({0}, axis={axis})", "mul": "tl.cumprod({0}, axis={axis})"}

REDUCE_CALLS: dict[str, str] = {
    "tl.sum": "sum",
    "triton_helpers.max2": "max",
    "triton_helpers.min2": "min",
    "triton_helpers.prod": "prod",
    "triton_helpers.any": "any",
    "tl.max": "maxnum",
    "tl.min": "minnum",
}
ARG_REDUCE_CALLS: dict[str, tuple[str, str]] = {
    "triton_helpers.max_with_index": ("max", "argmax"),
    "triton_helpers.min_with_index": ("min", "argmin"),
}
# How an accumulator carried by Inductor's reduction loop combines, by the op that updates it.
ACCUMULATE: dict[str, str] = {"add": "sum", "maximum": "max", "minimum": "min", "mul": "prod", "or": "any"}

# Ops whose result is NaN where one of their arguments is.
NAN_STRICT = frozenset({
    "add", "sub", "mul", "div", "mod", "neg", "maximum", "minimum", "fma", "abs", "exp", "exp2", "log",
    "log2", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos", "erf", "sigmoid", "floor", "ceil", "tanh", "log1p",
    "expm1", "cast",
})  # fmt: skip

# Ops whose result is zero where any / all of their arguments are zero.
ZERO_IF_ANY = frozenset({"mul", "and"})
ZERO_IF_ALL = frozenset({
    "add", "sub", "or", "xor", "neg", "abs", "sqrt", "sin", "erf", "tanh", "floor", "ceil", "maximum",
    "minimum", "expm1", "log1p", "trunc", "cast",
})  # fmt: skip
