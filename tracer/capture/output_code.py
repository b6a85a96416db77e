"""Read an existing Inductor `output_code.py` (from TORCH_COMPILE_DEBUG=1 anywhere) without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracer.capture.errors import NoOutputCode
from tracer.capture.kernel import Buffer, CapturedKernel, Role
from tracer.models.op_call import TensorSpec

_TYPES = {
    "*fp16": "torch.float16",
    "*bf16": "torch.bfloat16",
    "*fp32": "torch.float32",
    "*fp64": "torch.float64",
    "*i1": "torch.bool",
    "*i8": "torch.int8",
    "*u8": "torch.uint8",
    "*i16": "torch.int16",
    "*i32": "torch.int32",
    "*i64": "torch.int64",
}


@dataclass(frozen=True)
class OutputCode:
    """What one `output_code.py` does: Triton launches in order, the buffers they share, and other calls.

    `extern` names the library calls between the launches (`extern_kernels.mm`), in order.
    """

    buffers: tuple[Buffer, ...]
    kernels: tuple[CapturedKernel, ...]
    outputs: tuple[str, ...]
    extern: tuple[str, ...]


def read_output_code(path: Path | str) -> OutputCode:
    """The launches of an `output_code.py`; static shapes only.

    Raises:
        NoOutputCode: the file cannot be read, or is not what Inductor writes.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoOutputCode(path=str(path), detail=str(error)) from error
    return parse_output_code(text, str(path))


def parse_output_code(text: str, path: str = "<text>") -> OutputCode:
    """The same from the file's text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NoOutputCode(path=path, detail=f"it is no Python ({error})") from error
    reader = _Reader(path, _kernels(tree, path))
    call = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "call"), None)
    if call is None:
        raise NoOutputCode(path=path, detail="it defines no function `call`")
    reader.block(call.body)
    return reader.result()


@dataclass
class _Kernel:
    name: str
    source: str
    parameters: tuple[str, ...]
    signature: dict[str, str]


def _kernels(tree: ast.Module, path: str) -> dict[str, _Kernel]:
    found = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        call = node.value
        if ast.unparse(call.func) != "async_compile.triton" or not isinstance(node.targets[0], ast.Name):
            continue
        try:
            name, source = (ast.literal_eval(argument) for argument in call.args[:2])
            found[node.targets[0].id] = _kernel(name, source.strip("\n") + "\n")
        except (ValueError, SyntaxError, StopIteration) as error:
            raise NoOutputCode(path=path, detail=f"kernel {node.targets[0].id} is malformed") from error
    return found


def _kernel(name: str, source: str) -> _Kernel:
    tree = ast.parse(source)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in (name, "triton_"))
    meta = next(
        keyword.value
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg == "triton_meta"
    )
    if not isinstance(meta, ast.Dict):
        raise ValueError("triton_meta is no dict")
    pairs = zip(meta.keys, meta.values, strict=True)
    signature = next(
        ast.literal_eval(v) for k, v in pairs if isinstance(k, ast.Constant) and k.value == "signature"
    )
    return _Kernel(name, source, tuple(a.arg for a in function.args.args), signature)


@dataclass
class _Reader:
    path: str
    known: dict[str, _Kernel]
    names: dict[str, str] = field(default_factory=dict)
    """Local variable -> buffer."""
    buffers: dict[str, Buffer] = field(default_factory=dict)
    kernels: list[CapturedKernel] = field(default_factory=list)
    outputs: tuple[str, ...] = ()
    extern: list[str] = field(default_factory=list)

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.With):
                self.block(statement.body)
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Tuple):
                self.outputs = tuple(self.buffer(node) for node in statement.value.elts)
            elif isinstance(statement, ast.Assign):
                self.assign(statement)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self.call(statement.value)

    def assign(self, statement: ast.Assign) -> None:
        target, value = statement.targets[0], statement.value
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Name) and value.id == "args":
            for element in target.elts:
                self.add(ast.unparse(element), "input", TensorSpec((), (), 0, ""))
        elif isinstance(target, ast.Name) and isinstance(value, ast.Name) and value.id in self.names:
            self.names[target.id] = self.names[value.id]
        elif isinstance(target, ast.Name) and isinstance(value, ast.Call):
            function = ast.unparse(value.func)
            if function.startswith("empty_strided"):
                shape, stride = (ast.literal_eval(argument) for argument in value.args[:2])
                self.add(target.id, "intermediate", TensorSpec(shape, stride, 0, ast.unparse(value.args[2])))
            elif function == "reinterpret_tensor":
                self.view(target.id, value)
            elif function.startswith(("extern_kernels.", "torch.ops.")):
                self.extern.append(function)
                self.add(target.id, "intermediate", TensorSpec((), (), 0, ""))

    def call(self, call: ast.Call) -> None:
        function = ast.unparse(call.func)
        owner, _, method = function.rpartition(".")
        if method == "run" and owner in self.known:
            self.launch(self.known[owner], call)
        elif function == "assert_size_stride" and isinstance(call.args[0], ast.Name):
            shape, stride = (ast.literal_eval(argument) for argument in call.args[1:3])
            name = self.buffer(call.args[0])
            spec = replace(self.buffers[name].spec, shape=shape, stride=stride)
            self.buffers[name] = replace(self.buffers[name], spec=spec)
        elif function.startswith(("extern_kernels.", "torch.ops.")):
            self.extern.append(function)

    def launch(self, kernel: _Kernel, call: ast.Call) -> None:
        arguments: list[tuple[str, str | int]] = []
        types: list[tuple[str, str]] = []
        for parameter, node in zip(kernel.parameters, call.args, strict=False):
            kind = kernel.signature.get(parameter, "i32")
            value: str | int
            if kind.startswith("*"):
                value = self.buffer(node)
                if not self.buffers[value].spec.dtype:
                    spec = replace(self.buffers[value].spec, dtype=_TYPES.get(kind, kind))
                    self.buffers[value] = replace(self.buffers[value], spec=spec)
            else:
                value = self.number(node)
            arguments.append((parameter, value))
            types.append((parameter, "i32" if kind == "constexpr" else kind))
        written = tuple(p for p, _ in arguments if p.startswith(("out_ptr", "in_out_ptr")))
        self.kernels.append(
            CapturedKernel(kernel.name, kernel.source, tuple(arguments), tuple(types), written, origins=())
        )

    def view(self, name: str, call: ast.Call) -> None:
        base = self.buffer(call.args[0])
        shape, stride, offset = (ast.literal_eval(argument) for argument in call.args[1:4])
        self.add(name, "intermediate", TensorSpec(shape, stride, offset, self.buffers[base].spec.dtype), base)

    def add(self, name: str, role: Role, spec: TensorSpec, base: str | None = None) -> None:
        self.names[name] = name
        self.buffers[name] = Buffer(name, role, spec, base)

    def number(self, node: ast.expr) -> int:
        try:
            return int(ast.literal_eval(node))
        except (ValueError, TypeError) as error:
            detail = f"`{ast.unparse(node)}` is no number (dynamic shapes are not read)"
            raise NoOutputCode(path=self.path, detail=detail) from error

    def buffer(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.names[node.id]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "reinterpret_tensor":
            name = f"view{len(self.buffers)}"
            self.view(name, node)
            return name
        raise NoOutputCode(path=self.path, detail=f"`{ast.unparse(node)}` is no buffer")

    def result(self) -> OutputCode:
        buffers = [
            replace(b, role="output") if b.name in self.outputs and b.role == "intermediate" else b
            for b in self.buffers.values()
        ]
        return OutputCode(tuple(buffers), tuple(self.kernels), self.outputs, tuple(self.extern))
