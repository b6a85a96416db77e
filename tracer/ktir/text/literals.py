"""Numbers in KTIR text, as MLIR reads them where xDSL does otherwise."""

# ruff: noqa: D102 - the methods are those of xDSL's parser
from __future__ import annotations

import math
import re
from typing import Any

from xdsl.dialects.builtin import (
    Attribute,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    _FloatType,
)
from xdsl.parser import Parser

_RAW = re.compile(r'<\s*"([^"\n]*)"\s*>')
_NEGATIVE_BITS = re.compile(r"-\s*0x")
_WORDS = ("true", "false")


class LiteralParser(Parser):
    """Reads numbers. `too_large` are the places of decimal floats that their type rounds to infinity or NaN,
    each with the type.
    """

    too_large: list[tuple[int, Attribute]]

    def parse_optional_builtin_int_or_float_attr(self) -> Any:
        start, word = self.pos, self._current_token.text
        found = super().parse_optional_builtin_int_or_float_attr()
        if word in _WORDS and found is not None and self._current_token.text == ":":
            self.raise_error(f"{word} is of type i1 and takes no type", start, self.pos)
        if isinstance(found, FloatAttr):
            if not word.startswith("0x"):
                self._decimal(start, found.value.data, found.type)
        elif isinstance(found, IntegerAttr):
            self._in_range(start, found.value.data, found.type)
        return found

    def _decimal(self, start: int, value: float, type_: Attribute) -> None:
        """Check a float that was not written as its bits; `value` is rounded to its type."""
        if _NEGATIVE_BITS.match(self.lexer.input.content, start):
            self.raise_error("the bits of a float hold its sign; they take no minus", start, self.pos)
        if not math.isfinite(value):
            self.too_large.append((start, type_))

    def _in_range(self, start: int, value: int, type_: Attribute) -> None:
        # Integers of other types are checked by xDSL.
        if isinstance(type_, IndexType) and not -1 << 63 <= value < 1 << 63:
            self.raise_error(f"the integer {value} is out of range for index", start, self.pos)

    def _parse_tensor_literal_element(self) -> Any:
        return _Element(super()._parse_tensor_literal_element())

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:  # noqa: A002
        start = self.pos
        if raw := _RAW.match(self.lexer.input.content, start):
            if not re.fullmatch(r"0x(?:[0-9A-Fa-f]{2})*", raw.group(1)):
                self.raise_error("raw data is 0x and two hexadecimal digits a byte", start, raw.end())
            self.parse_punctuation("<")
            data = bytes.fromhex(self.parse_str_literal()[2:])
            self.parse_punctuation(">")
            if type is None:
                self.parse_punctuation(":")
                type = self._parse_dense_literal_type()  # noqa: A001
            if type.element_type == IntegerType(1):
                return self._packed(start, data, type)
            self._resume_from(start)
            return super().parse_dense_int_or_fp_elements_attr(None)
        return super().parse_dense_int_or_fp_elements_attr(type)

    def _packed(self, start: int, data: bytes, type_: Any) -> DenseIntOrFPElementsAttr:
        """Raw data of i1: one bit an element, the lowest first. A byte 00 or FF alone is a splat."""
        count = math.prod(type_.get_shape())
        if data in (b"\x00", b"\xff"):
            data *= -(-count // 8)
        if len(data) != -(-count // 8):
            text = f"{len(data)} bytes of raw data for {type_}, which packs into {-(-count // 8)}"
            self.raise_error(text, start, self.pos)
        bits = [data[i // 8] >> i % 8 & 1 for i in range(count)]
        return DenseIntOrFPElementsAttr.from_list(type_, bits)


class _Element:
    """An element of a dense literal. `0xFC00` is the IEEE bits of a float, which xDSL would read as an
    integer's value.
    """

    def __init__(self, element: Any):
        self.element = element

    def to_type(self, parser: LiteralParser, type: Attribute) -> Any:  # noqa: A002 - as xDSL's element spells it
        """The element as a number of `type`."""
        span = self.element.span
        if isinstance(type, _FloatType):
            if span.text.startswith("0x"):
                return _float_of(parser, self.element, type)
            if isinstance(self.element.value, bool):
                parser.raise_error(f"{span.text} is of type i1, not {type}", at_position=span)
            value = type.round(self.element.to_float(parser))
            parser._decimal(span.start, value, type)
            return value
        value = self.element.to_type(parser, type)
        parser._in_range(span.start, value, type)
        return value


def _float_of(parser: LiteralParser, element: Any, type_: _FloatType) -> float:
    bits, size = element.value, type_.compile_time_size
    if bits >= 1 << (8 * size):
        parser.raise_error(f"the bit pattern does not fit {type_}", at_position=element.span)
    return next(iter(type_.unpack(bits.to_bytes(size, "little"), 1)))
