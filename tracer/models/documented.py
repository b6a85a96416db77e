"""Shapes that the documentation of a forward states for its inputs.

transformers describes an input as `name (`torch.FloatTensor` of shape `(batch_size, num_channels, height,
width)`, *optional*)`: every extent is a number, a name, or sums and products of them. A name is what the
configuration calls so, or one of a few that are the same everywhere.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

Sizes = Callable[[str], int | None]
"""The extent that a name stands for, if it is known."""

_FORMULAS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b if b else 0,
}


def documented(model: Any, name: str) -> tuple[str, ...] | None:
    """Extents of the input `name`, as text, by the documentation of the model's forward."""
    text = inspect.getdoc(model.forward) or ""
    entry = re.search(rf"^\s*{re.escape(name)}\s*\((.*?)\)\s*:\s*$", text, re.MULTILINE)
    return extents(entry[1]) if entry else None


def extents(text: str) -> tuple[str, ...] | None:
    """Extents of the first `shape (a, b * c)` in a text; quotes around it do not matter."""
    found = re.search(r"shape:?\s*`?[(\[]([^()\[\]]+)[)\]]", text)
    if found is None:
        return None
    return tuple(part.strip() for part in found[1].replace("`", "").split(",") if part.strip())


def evaluate(text: str, size: Sizes) -> int | None:
    """The extent that `text` states (None: it uses an unknown name, or is no sum or product of sizes)."""
    try:
        return _evaluate(ast.parse(text, mode="eval").body, size)
    except SyntaxError:
        return None


def _evaluate(node: ast.expr, size: Sizes) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        return size(node.id if isinstance(node, ast.Name) else node.attr)
    if isinstance(node, ast.BinOp) and type(node.op) in _FORMULAS:
        left, right = _evaluate(node.left, size), _evaluate(node.right, size)
        return None if left is None or right is None else _FORMULAS[type(node.op)](left, right)
    return None
