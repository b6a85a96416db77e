"""Between which bounds the integers lie that a kernel computes from its iteration variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

Interval = tuple[int, int]
"""Least and greatest value."""


class Intervals:
    """Intervals of the values in an Inductor kernel. `arguments` holds its numels, `integers` names the
    pointers to integers.

    What is loaded from those counts as 0, so that an interval is that of what the kernel adds to an index.
    """

    def __init__(self, tree: ast.Module, arguments: Mapping[str, str | int], integers: frozenset[str]):
        self._tree = tree
        self._integers = integers
        self._values = {
            target.id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self._known: dict[str, Interval | None] = {
            f"{name.removesuffix('numel')}index": (0, number - 1)
            for name, number in arguments.items()
            if name.endswith("numel") and isinstance(number, int)
        }

    def greatest(self, name: str) -> int:
        """The most that is added to what the value `name` is loaded from; 0 where nobody can tell."""
        found = self._of(ast.Name(name))
        return max(0, found[1]) if found else 0

    def compared(self) -> Iterator[tuple[str, int]]:
        """Pointers whose elements are compared with the places of a dim, and its extent."""
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
                continue
            sides = (node.left, node.comparators[0])
            for one, other in (sides, sides[::-1]):
                pointer, places = self._pointer(one), self._of(other)
                if pointer and places and places[0] == 0 < places[1] and not self._loads(other):
                    yield pointer, places[1] + 1

    def _of(self, node: ast.expr) -> Interval | None:
        if isinstance(node, ast.Name):
            if node.id not in self._known:
                self._known[node.id] = None  # A value that a loop carries is unknown.
                if node.id in self._values:
                    self._known[node.id] = self._of(self._values[node.id])
            return self._known[node.id]
        if isinstance(node, ast.Constant):
            return (node.value, node.value) if type(node.value) is int else None
        if isinstance(node, ast.BinOp):
            left, right = self._of(node.left), self._of(node.right)
            return _combined(node.op, left, right) if left and right else None
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _call(self, node: ast.Call) -> Interval | None:
        name = _function(node)
        if name == "load":
            return (0, 0) if _base(node.args[0]) in self._integers else None
        if name == "where":
            return self._chosen(*node.args)
        inner = _unwrapped(node)
        return self._of(inner) if inner is not node else None

    def _chosen(self, condition: ast.expr, one: ast.expr, other: ast.expr) -> Interval | None:
        if isinstance(condition, ast.Name):
            condition = self._values.get(condition.id, condition)
        if isinstance(condition, ast.Compare) and isinstance(condition.ops[0], ast.Lt):
            left, right = self._of(condition.left), self._of(condition.comparators[0])
            if left and right and left[0] >= right[1]:
                return self._of(other)  # Indices from the end of a dim, which nobody draws.
        left, right = self._of(one), self._of(other)
        return (min(left[0], right[0]), max(left[1], right[1])) if left and right else None

    def _pointer(self, node: ast.expr) -> str:
        """The pointer that a value is loaded from, and nothing else done with; empty of any other value."""
        seen: set[str] = set()
        while True:
            if isinstance(node, ast.Name) and node.id in self._values and node.id not in seen:
                seen.add(node.id)
                node = self._values[node.id]
            elif isinstance(node, ast.Call) and _function(node) == "load":
                base = _base(node.args[0])
                return base if base in self._integers else ""
            elif (inner := _unwrapped(node)) is not node:
                node = inner
            else:
                return ""

    def _loads(self, node: ast.expr) -> bool:
        pending: list[ast.AST] = [node]
        seen: set[str] = set()
        while pending:
            for part in ast.walk(pending.pop()):
                if isinstance(part, ast.Call) and _function(part) == "load":
                    return True
                if isinstance(part, ast.Name) and part.id in self._values and part.id not in seen:
                    seen.add(part.id)
                    pending.append(self._values[part.id])
        return False


def _combined(op: ast.operator, left: Interval, right: Interval) -> Interval | None:
    if isinstance(op, ast.Add):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(op, ast.Sub):
        return left[0] - right[1], left[1] - right[0]
    if isinstance(op, ast.Mult):
        ends = [a * b for a in left for b in right]
        return min(ends), max(ends)
    # Triton's division truncates: it is Python's where nothing is negative.
    if left[0] < 0 or right[0] < 1 or right[0] != right[1]:
        return None
    if isinstance(op, ast.FloorDiv):
        return left[0] // right[0], left[1] // right[0]
    if isinstance(op, ast.Mod):
        return left if left[1] < right[0] else (0, right[0] - 1)
    return None


def _unwrapped(node: ast.expr) -> ast.expr:
    """What a cast, a broadcast or a constant tile is made of; any other node itself."""
    if not isinstance(node, ast.Call):
        return node
    name = _function(node)
    if name == "to" and isinstance(node.func, ast.Attribute):
        return node.func.value
    if name == "broadcast_to":
        return node.args[0]
    return node.args[1] if name == "full" else node


def _function(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _base(address: ast.expr) -> str:
    while isinstance(address, ast.BinOp):
        address = address.left
    return address.id if isinstance(address, ast.Name) else ""
