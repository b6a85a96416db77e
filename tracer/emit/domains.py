"""Which inputs must be positive: a kernel takes their square root, logarithm or power, or divides integers.

The argument of such a function is followed back to the loads it comes from. A path ends where the value is
positive whatever the input is: a product of a value with itself, an exponential, an absolute value. Of a
divisor it does not: those may be 0.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from tracer.capture.kernel import CapturedKernel, CapturedOp

RESTRICTED = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow", "sqrt_rn", "lgamma"})
POSITIVE = frozenset({"exp", "exp2", "abs", "fabs", "sigmoid", "cosh"})


def positive_inputs(op: CapturedOp) -> frozenset[str]:
    """Names of the input buffers that need positive values; integers that are divided by are among them."""
    inputs = {buffer.name for buffer in op.buffers if buffer.role == "input"}
    found = {
        str(dict(kernel.arguments)[pointer])
        for kernel in op.kernels
        for pointer in _restricted_pointers(kernel)
    }
    return frozenset(found & inputs)


def _restricted_pointers(kernel: CapturedKernel) -> set[str]:
    restricted = any(f".{name}(" in kernel.source for name in RESTRICTED)
    if not restricted and "//" not in kernel.source and "%" not in kernel.source:
        return set()
    pointers = {name for name, kind in kernel.signature if kind.startswith("*")}
    integers = {name for name, kind in kernel.signature if kind.startswith(("*i", "*u")) and kind != "*i1"}
    tree = ast.parse(kernel.source)
    values = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    arguments = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _function(node) in RESTRICTED and node.args
    ]
    # Triton has these two for integers and floats alike; a float that is divided by may be anything.
    divisors = [
        node.right
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod)
    ]
    signed = _reached(arguments, values, _is_positive) & pointers
    return signed | _reached(divisors, values, lambda _: False) & integers


def _reached(
    nodes: Sequence[ast.expr], values: Mapping[str, ast.expr], ends: Callable[[ast.AST], bool]
) -> set[str]:
    """Names that expressions are computed from; a path does not go into a node that `ends` it."""
    pending = list(nodes)
    seen: set[str] = set()
    while pending:
        node = pending.pop()
        if ends(node):
            continue
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            if node.id in values:
                pending.append(values[node.id])
        elif isinstance(node, ast.Call) and _function(node) == "load":
            pending.append(_base(node.args[0]))
        else:
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return seen


def _function(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _is_positive(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return ast.dump(node.left) == ast.dump(node.right)
    return isinstance(node, ast.Call) and _function(node) in POSITIVE


def _base(address: ast.expr) -> ast.expr:
    # `in_ptr0 + (x0)`: the pointer is what everything else is added to.
    while isinstance(address, ast.BinOp):
        address = address.left
    return address
