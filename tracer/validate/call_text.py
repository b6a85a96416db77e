"""An op's identity read back to the call it describes. Nothing of the text is evaluated."""

from __future__ import annotations

import ast
import re
from typing import cast

from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch, Value

_TENSOR = re.compile(r"\$(\d+)=(torch\.\w+)\[([^\]]*)\]:\[([^\]]*)\]\+(\d+)")
_PREFIX = "_tensor_"


def parse_identity(text: str) -> OpCall:
    """The call whose `identity` is `text`. Raises ValueError where there is none."""
    head, *tensors = re.split(r"; (?=\$\d+=)", text)
    specs = []
    for position, tensor in enumerate(tensors):
        match = _TENSOR.fullmatch(tensor)
        if match is None or int(match[1]) != position:
            raise ValueError(f"no tensor: {tensor}")
        specs.append(TensorSpec(_numbers(match[3]), _numbers(match[4]), int(match[5]), match[2]))
    name, _, arguments = head.partition("(")
    if not re.fullmatch(r"[\w.]+", name) or not arguments.endswith(")"):
        raise ValueError(f"no call: {head}")
    source = f"f({_placeholders(arguments[:-1])})"
    try:
        node = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"no arguments: {arguments}") from error
    if not isinstance(node, ast.Call):
        raise ValueError(f"no call: {head}")
    call = OpCall(
        name=name,
        tensors=tuple(specs),
        args=tuple(_value(part, source) for part in node.args),
        kwargs=tuple((str(word.arg), _value(word.value, source)) for word in node.keywords),
    )
    if call.identity != text:
        raise ValueError(f"it reads back as {call.identity}")
    return call


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _placeholders(text: str) -> str:
    """`$0` as a name, outside of strings."""
    parts = re.split(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", text)
    parts[::2] = [re.sub(r"\$(\d+)", rf"{_PREFIX}\1", part) for part in parts[::2]]
    return "".join(parts)


def _value(node: ast.expr, source: str) -> Value:
    if isinstance(node, ast.Name) and node.id.startswith(_PREFIX):
        return TensorRef(int(node.id.removeprefix(_PREFIX)))
    if isinstance(node, ast.Tuple):
        return tuple(_value(part, source) for part in node.elts)
    if isinstance(node, ast.List):
        return [_value(part, source) for part in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(ast.literal_eval(key)): _value(part, source) for key, part in pairs if key is not None}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "slice":
            return slice(*(_value(part, source) for part in node.args))
        if node.func.id == "float":
            return float(ast.literal_eval(node.args[0]))
    if isinstance(node, ast.Constant) and node.value is not ...:
        return cast(Value, node.value)
    if isinstance(node, ast.UnaryOp):
        return cast(Value, ast.literal_eval(node))
    return Torch(ast.get_source_segment(source, node) or "")
