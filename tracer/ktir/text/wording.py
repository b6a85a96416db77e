"""The words of xDSL's parser where they name its own parts, or say nothing, in words about the text."""

from __future__ import annotations

import re

_SAID = (
    # Where no operation begins, the parser looks for the label of a next block, or for the end of the text.
    (r"in block definition", "an operation or a closing brace is expected here"),
    (r"Could not parse entire input!", "an operation is expected here"),
    (r"Expected one of `>=`, `<=`, `==`, got .*", "a constraint needs >=, <= or == here"),
    (r"Expected 'x' in shape delimiter, got .*", "an x is expected between the extents of a shape"),
    (r"Expected '='after attribute alias name", "Expected '=' after the name of an alias"),
)


def reworded(message: str, text: str, position: int) -> str:
    """What the parser says about a character position, without its names for tokens and templates."""
    # Its lexer leaves the name of a variable in one message.
    message = message.strip().replace("{first_char}", text[position : position + 1])
    return next((said for pattern, said in _SAID if re.fullmatch(pattern, message, re.DOTALL)), message)
