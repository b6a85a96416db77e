"""How TTIR text spells types, attributes, numbers and names."""

from __future__ import annotations

import functools
import re

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, Builtin
from xdsl.ir import Attribute
from xdsl.parser import Parser

from tracer.lower.edit import Number
from tracer.lower.tt_dialect import Tt

_RESULTS = re.compile(r" -> | to ")


@functools.lru_cache(maxsize=1)
def _context() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Tt)
    return context


@functools.lru_cache(maxsize=4096)
def read_type(text: str) -> Attribute:
    """A type; one that begins with `<` is a descriptor's, whose operation leaves out the name."""
    return Parser(_context(), f"!tt.tensordesc{text}" if text.startswith("<") else text).parse_type()


def read_types(text: str, count: int) -> list[Attribute]:
    """The last `count` types of `T, U`, `T to U`, `T * U -> V` or `(T) -> (U, V)`: the results'."""
    results = _RESULTS.split(text)[-1].strip("()")
    return [read_type(part) for part in _split(results)[-count:]] if count else []


def read_arguments(text: str) -> tuple[list[str], list[Attribute]]:
    """Names and types of `%a: T, %b: U {attributes}`."""
    pairs = [part.split(": ", 1) for part in _split(text)]
    return [name for name, _ in pairs], [read_type(kind.partition(" {")[0]) for _, kind in pairs]


def read_attributes(text: str) -> dict[str, Attribute]:
    """The dictionary in a text that may have one: `{axis = 0 : i32}`."""
    start, stop = text.find("{"), text.rfind("}")
    return Parser(_context(), text[start : stop + 1]).parse_optional_attr_dict() if start >= 0 else {}


def read_number(text: str, kind: Attribute) -> Number:
    """A number of an element type; infinities and NaN are spelled by their bits."""
    if text in ("true", "false"):
        return int(text == "true")
    if not isinstance(kind, AnyFloat):
        return int(text)
    if text.startswith("0x"):
        return kind.unpack(int(text, 16).to_bytes(kind.size, "little"), 1)[0]
    return float(text)


def read_names(text: str) -> list[str]:
    """The names that `%a, %b:2` defines: `%a`, `%b#0`, `%b#1`."""
    names: list[str] = []
    for part in filter(None, text.split(", ")):
        name, _, count = part.partition(":")
        names += [f"{name}#{i}" for i in range(int(count))] if count else [name]
    return names


def _split(text: str) -> list[str]:
    """Parts between commas that no bracket encloses."""
    parts: list[str] = []
    for piece in filter(None, text.split(", ")):
        if parts and sum(map(parts[-1].count, "<{")) > sum(map(parts[-1].count, ">}")):
            parts[-1] += f", {piece}"
        else:
            parts.append(piece)
    return parts
