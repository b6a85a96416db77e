"""Which float inputs must be positive, because a kernel takes their square root, logarithm or power.

The argument of such a function is followed back to the loads it comes from. A path ends where the value is
positive whatever the input is: a product of a value with itself, an exponential, an absolute value.
"""

from __future__ import annotations

import ast

from tracer.capture.kernel import CapturedKernel, CapturedOp

RESTRICTED = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow", "sqrt_rn", "lgamma"})
POSITIVE = frozenset({"exp", "exp2", "abs", "fabs", "sigmoid", "cosh"})


def positive_inputs(op: CapturedOp) -> frozenset[str]:
    """Names of the input buffers that need positive values."""
    inputs = {buffer.name for buffer in op.buffers if buffer.role == "input"}
    found = {
        str(dict(kernel.arguments)[pointer])
        for kernel in op.kernels
        for pointer in _restricted_pointers(kernel)
    }
    return frozenset(found & inputs)


def _restricted_pointers(kernel: CapturedKernel) -> set[str]:
    if not any(f".{name}(" in kernel.source for name in RESTRICTED):
        return set()
    pointers = {name for name, kind in kernel.signature if kind.startswith("*")}
    tree = ast.parse(kernel.source)
    values = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    pending = [
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _function(node) in RESTRICTED and node.args
    ]
    found: set[str] = set()
    seen: set[str] = set()
    while pending:
        node = pending.pop()
        if _is_positive(node):
            continue
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            if node.id in pointers:
                found.add(node.id)
            elif node.id in values:
                pending.append(values[node.id])
        elif isinstance(node, ast.Call) and _function(node) == "load":
            pending.append(_base(node.args[0]))
        else:
            pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return found


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
