"""Line layout of generated Python, as the formatter of the project would break it."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 110
INDENT = "    "


def call(prefix: str, items: Sequence[str], suffix: str, depth: int) -> list[str]:
    """`prefix(items)suffix` on one line, else the items on one indented line, else one item a line."""
    pad, inner = INDENT * depth, INDENT * (depth + 1)
    flat = f"{pad}{prefix}({', '.join(items)}){suffix}"
    if len(flat) <= WIDTH:
        return [flat]
    joined = f"{inner}{', '.join(items)}"
    if len(joined) <= WIDTH:
        return [f"{pad}{prefix}(", joined, f"{pad}){suffix}"]
    lines = [line for item in items for line in assign("", item, depth + 1, ",")]
    return [f"{pad}{prefix}(", *lines, f"{pad}){suffix}"]


def define(name: str, groups: Sequence[Sequence[str]]) -> list[str]:
    """`def name(...):` on one line, else every group of parameters on a line (or more) of its own."""
    flat = f"def {name}({', '.join(item for group in groups for item in group)}):"
    if len(flat) <= WIDTH:
        return [flat]
    lines = [f"def {name}("]
    for group in groups:
        line = INDENT
        for item in group:
            if len(line) + len(item) + 2 > WIDTH:
                lines.append(line.rstrip())
                line = INDENT
            line += f"{item}, "
        lines.append(line.rstrip())
    # The formatter would put every parameter on a line of its own.
    return [*lines, "):  # fmt: skip"]


def assign(target: str, value: str, depth: int, suffix: str = "") -> list[str]:
    """`target = value`, with the outermost call of `value` broken where the line is too long."""
    line = f"{INDENT * depth}{f'{target} = ' if target else ''}{value}{suffix}"
    if len(line) <= WIDTH or not value.endswith(")") or "(" not in value:
        return [line]
    head, _, rest = value.partition("(")
    prefix = f"{target} = {head}" if target else head
    return call(prefix, split_arguments(rest[:-1]), suffix, depth)


def split_arguments(text: str) -> list[str]:
    """Top-level arguments of a call's text."""
    parts, level, start = [], 0, 0
    for position, character in enumerate(text):
        level += character in "([{"
        level -= character in ")]}"
        if character == "," and level == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def without_parentheses(text: str) -> str:
    """`text` without one pair of parentheses around the whole of it."""
    if not text.startswith("(") or len(split_arguments(text[1:-1])) != 1:
        return text
    level = 0
    for position, character in enumerate(text):
        level += (character == "(") - (character == ")")
        if level == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text
