"""Inductor's kernel source -> structured IR, by evaluating its syntax tree symbolically.

Every name is bound to what it means: a range index (SymPy), a mask that only guards range ends
(`IN_RANGE`), a Python number, or a value of the IR. Tiling constructs (`tl.arange`, `[:, None]`,
`tl.broadcast_to`, loops over reduction blocks and their accumulators) disappear on the way.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

import sympy

from tracer.rewrite.errors import (
    AtomicStore,
    RandomNumbers,
    UndefinedValue,
    UnsupportedOperation,
    UnsupportedSyntax,
)
from tracer.rewrite.fold import fold
from tracer.rewrite.functions import (
    ACCUMULATE,
    ARG_REDUCE_CALLS,
    BINARY,
    CALLS,
    COMPARE,
    OPS,
    REDUCE_CALLS,
    SCANS,
    UNARY,
)
from tracer.rewrite.ir import (
    Compute,
    Const,
    FloorDiv,
    Index,
    Kernel,
    Load,
    Modulo,
    Operand,
    Range,
    Reduce,
    Scan,
    Statement,
    Store,
)
from tracer.rewrite.types import promote, triton_dtype


class InRange:
    """A condition that holds on every iteration of the ranges."""


IN_RANGE = InRange()


@dataclass(frozen=True)
class Accumulator:
    """A value carried by Inductor's reduction loop: its start, then how it is updated."""

    start: Const
    kind: str | None = None
    args: tuple[Operand, ...] = ()


@dataclass
class _State:
    params: dict[str, str]
    source: list[str]
    scope: dict[str, object] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    helpers: dict[str, ast.FunctionDef] = field(default_factory=dict)
    line: str = ""
    fresh: int = 0


def parse(name: str, source: str, params: dict[str, str]) -> Kernel:
    """Parse the kernel `name` out of `source`.

    `params` maps each pointer parameter to the Triton dtype of its elements (`float16`, `int1`).
    Raises UnsupportedSyntax, UnsupportedOperation, UndefinedValue, AtomicStore or RandomNumbers.
    """
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    kernel = functions.pop(name)
    state = _State(params, source.splitlines(), helpers=functions)
    _Evaluator(state).block(kernel.body)
    used = tuple(arg.arg for arg in kernel.args.args if arg.arg in params)
    return Kernel(
        name, used, tuple(state.ranges.values()), tuple(state.body), tuple(sorted(state.bounds.items()))
    )


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


class _Evaluator:
    def __init__(self, state: _State) -> None:
        self.state = state

    # Statements

    def block(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            self.state.line = self.state.source[node.lineno - 1].strip()
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                self.assign(target, value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call() as call):
                self.assign_tuple([ast.unparse(t) for t in targets], call)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                self.assign(target, value)
            case ast.For(body=body):
                self.loop(node, body)
            case ast.Expr(value=ast.Call() as call):
                self.effect(call)
            case ast.Pass():
                pass
            case _:
                raise self.unsupported(f"the statement `{ast.unparse(node).splitlines()[0]}`")

    def assign(self, target: str, value: ast.expr) -> None:
        if target.endswith("numel"):
            self.state.scope[target] = self.number(value)
            return
        if range_symbol := _range_of(target, "index"):
            self.define_range(range_symbol)
            return
        if target.endswith(("offset", "base", "BLOCK")) and not target.startswith("tmp"):
            self.state.scope[target] = sympy.Integer(0)
            return
        result = self.eval(value, target if target.startswith(("tmp", "_tmp")) else None)
        if isinstance(result, Accumulator) and isinstance(value, ast.Subscript) and target.startswith("tmp"):
            result = self.settle(result, target)
        if target.endswith("mask") and not target.startswith("tmp"):
            result = IN_RANGE
        self.state.scope[target] = result

    def define_range(self, symbol: str) -> None:
        state = self.state
        if symbol in state.ranges:
            return
        if symbol == "r":  # `rindex` is `r0_index` where there is one reduced range
            reduced = [r.symbol for r in state.ranges.values() if r.reduced]
            if len(reduced) != 1:
                raise self.unsupported("one flat index over several reduced ranges")
            state.scope["rindex"] = reduced[0]
            return
        suffix = "_numel" if symbol.startswith("r") else "numel"
        extent = state.scope.get(f"{symbol}{suffix}")
        if not isinstance(extent, int):
            raise UndefinedValue(name=f"{symbol}{suffix}", line=state.line)
        entry = Range(sympy.Symbol(symbol, integer=True, nonnegative=True), extent, symbol.startswith("r"))
        state.ranges[symbol] = entry
        state.scope[f"{symbol}_index" if symbol.startswith("r") else f"{symbol}index"] = entry.symbol

    def assign_tuple(self, targets: list[str], call: ast.Call) -> None:
        function = _dotted(call.func)
        if function in ARG_REDUCE_CALLS:
            value = self.operand(self.eval(call.args[0]))
            for target, kind in zip(targets, ARG_REDUCE_CALLS[function], strict=True):
                dtype = self.dtype(value) if kind in ("max", "min") else "int64"
                self.emit(Reduce(target, kind, (value,), dtype, self.state.line))
            return
        if function == "tl.associative_scan":
            values = [self.operand(self.eval(v)) for v in _elements(call.args[0])]
            kind = self.combine_of(_dotted(call.args[2]))
            if len(values) == 1 and kind in SCANS:
                self.emit(Scan(targets[0], str(kind), (values[0],), self.dtype(values[0]), self.state.line))
                return
        raise UnsupportedOperation(function=function or ast.unparse(call.func), line=self.state.line)

    def combine_of(self, helper: str) -> str | None:
        """The IR op that a two-argument helper function of Inductor computes, if it is a single op."""
        node = self.state.helpers.get(helper)
        match node:
            case ast.FunctionDef(body=[ast.Assign(value=ast.BinOp(op=op)), ast.Return()]):
                return BINARY.get(type(op).__name__)
            case ast.FunctionDef(body=[ast.Assign(value=ast.Call(func=func)), ast.Return()]):
                return CALLS.get(_dotted(func))
        return None

    def loop(self, node: ast.For, body: list[ast.stmt]) -> None:
        """One pass over the body stands for all blocks; accumulators become reductions."""
        self.state.scope[ast.unparse(node.target)] = sympy.Integer(0)
        self.block(body)

    def effect(self, call: ast.Call) -> None:
        function = _dotted(call.func)
        if function == "tl.store":
            self.store(call)
        elif function == "tl.device_assert":
            self.bound(call.args[0])
        elif function.startswith("tl.atomic"):
            raise AtomicStore(function=function, line=self.state.line)
        elif function not in ("tl.debug_barrier", "tl.static_assert"):
            raise UnsupportedOperation(function=function, line=self.state.line)

    def bound(self, node: ast.expr) -> None:
        """`(0 <= v) & (v < n)`, perhaps or-ed with the negation of a range mask, bounds the index value v."""
        for part in ast.walk(node):
            match part:
                case ast.Compare(
                    left=ast.Name(id=name), ops=[ast.Lt()], comparators=[ast.Constant(value=int(limit))]
                ):
                    if isinstance(value := self.state.scope.get(name), str):
                        self.state.bounds[value] = limit

    def store(self, call: ast.Call) -> None:
        param, index = self.address(call.args[0])
        value = self.operand(self.eval(call.args[1]))
        if len(call.args) > 2 and self.mask(call.args[2]):
            raise self.unsupported("a store under a computed mask")
        self.state.body.append(Store(param, index, value, self.state.line))

    # Expressions

    def eval(self, node: ast.expr, name: str | None = None) -> object:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=identifier):
                if identifier not in self.state.scope:
                    raise UndefinedValue(name=identifier, line=self.state.line)
                return self.state.scope[identifier]
            case ast.Subscript(value=inner):
                return self.eval(inner, name)
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(type(op).__name__, self.eval(operand), name)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(type(op).__name__, self.eval(left), self.eval(right), name)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compare(type(op).__name__, self.eval(left), self.eval(right), name)
            case ast.IfExp(
                test=ast.Compare(left=ast.Attribute(attr="dtype", value=inner), comparators=[dtype])
            ):
                holds = self.dtype(self.operand(self.eval(inner))) == triton_dtype(ast.unparse(dtype))
                return self.eval(node.body if holds else node.orelse, name)
            case ast.Call():
                return self.call(node, name)
            case ast.Attribute():
                return ast.unparse(node)
            case _:
                raise self.unsupported(f"`{ast.unparse(node)}`")

    def unary(self, op: str, value: object, name: str | None) -> object:
        if value is IN_RANGE:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool) and op == "USub":
            return -value
        if isinstance(value, sympy.Expr) and op == "USub":
            return -value
        return self.compute(UNARY[op], [value], name)

    def binary(self, op: str, left: object, right: object, name: str | None) -> object:
        if left is IN_RANGE:
            return right
        if right is IN_RANGE:
            return left
        if _is_index(left) and _is_index(right):
            return self.index_arithmetic(op, sympy.sympify(left), sympy.sympify(right))
        if isinstance(left, Accumulator) or isinstance(right, Accumulator):
            return self.accumulate(BINARY[op], left, right)
        return self.compute(BINARY[op], [left, right], name)

    def index_arithmetic(self, op: str, left: sympy.Expr, right: sympy.Expr) -> sympy.Expr:
        match op:
            case "Add":
                return left + right
            case "Sub":
                return left - right
            case "Mult":
                return sympy.expand(left * right)
            case "FloorDiv":
                return FloorDiv(left, right)
            case "Mod":
                return Modulo(left, right)
        raise self.unsupported(f"{op} in an index expression")

    def compare(self, op: str, left: object, right: object, name: str | None) -> object:
        if isinstance(left, sympy.Symbol) and op == "Lt" and isinstance(right, int):
            entry = self.state.ranges.get(left.name)
            if entry is not None and entry.extent == right:
                return IN_RANGE
        return self.compute(COMPARE[op], [left, right], name)

    def accumulate(self, op: str, left: object, right: object) -> object:
        carried, value = (left, right) if isinstance(left, Accumulator) else (right, left)
        assert isinstance(carried, Accumulator)
        if carried.kind is not None:
            return self.compute(op, [left, right], None)
        if op not in ACCUMULATE:
            raise self.unsupported(f"a loop-carried value updated by `{op}`")
        source = self.operand(value)
        statement = self.find(source)
        if isinstance(statement, Reduce) and statement.kind == "dot":
            return replace(carried, kind="dot", args=statement.args)
        return replace(carried, kind=ACCUMULATE[op], args=(source,))

    def call(self, node: ast.Call, name: str | None) -> object:
        function = _dotted(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.cast(node.func.value, node.args[0], name)
        if function in ("tl.broadcast_to", "tl.reshape", "tl.trans", "tl.expand_dims", "tl.view",
                        "triton_helpers.promote_to_tensor"):  # fmt: skip
            return self.eval(node.args[0], name)
        if function == "tl.load":
            return self.load(node, name)
        if function in ("tl.full", "tl.zeros"):
            return self.full(node, function)
        if function == "tl.arange":
            return sympy.Integer(0)
        if function == "tl.where":
            return self.where(node, name)
        if function == "tl.dot":
            args = tuple(self.operand(self.eval(arg)) for arg in node.args[:2])
            return self.emit(Reduce(self.name(name), "dot", args, "float32", self.state.line))
        if function in REDUCE_CALLS:
            return self.reduce(REDUCE_CALLS[function], self.eval(node.args[0]), name)
        if function in ("triton_helpers.div_floor_integer",):
            left, right = (self.eval(arg) for arg in node.args)
            return self.binary("FloorDiv", left, right, name)
        if function in ("float", "tl.constexpr"):
            text = node.args[0]
            return float(text.value) if isinstance(text, ast.Constant) else self.eval(text)
        if "rand" in function:
            raise RandomNumbers(function=function, line=self.state.line)
        if function in CALLS:
            values = [self.eval(arg) for arg in node.args]
            if any(isinstance(v, Accumulator) for v in values):
                return self.accumulate(CALLS[function], values[0], values[1])
            return self.compute(CALLS[function], values, name)
        raise UnsupportedOperation(function=function or ast.unparse(node.func), line=self.state.line)

    def cast(self, value_node: ast.expr, dtype_node: ast.expr, name: str | None) -> object:
        value = self.eval(value_node, f"{name}_raw" if name else None)
        dtype = triton_dtype(ast.unparse(dtype_node))
        if isinstance(value, Const | bool | int | float):
            literal = value.value if isinstance(value, Const) else value
            return Const(literal, dtype)
        if isinstance(value, sympy.Expr):
            return self.emit(Index(self.name(name), value, dtype, self.state.line))
        if isinstance(value, str) and self.dtype(value) == dtype:
            return value
        if isinstance(value, Accumulator):
            raise self.unsupported("a cast of a loop-carried value")
        source = self.operand(value)
        return self.emit(Compute(self.name(name), "cast", (source,), dtype, self.state.line))

    def load(self, node: ast.Call, name: str | None) -> object:
        param, index = self.address(node.args[0])
        mask = self.mask(node.args[1]) if len(node.args) > 1 else None
        other = next((self.eval(k.value) for k in node.keywords if k.arg == "other"), None)
        dtype = self.state.params[param]
        fill = Const(other, dtype) if mask and isinstance(other, bool | int | float) else None
        return self.emit(Load(self.name(name), param, index, dtype, mask, fill, self.state.line))

    def full(self, node: ast.Call, function: str) -> object:
        shape = ast.unparse(node.args[0])
        value = 0 if function == "tl.zeros" else self.eval(node.args[1])
        dtype = triton_dtype(ast.unparse(node.args[-1]))
        if value is True and dtype == "int1" and "BLOCK" in shape:
            return IN_RANGE
        if not isinstance(value, bool | int | float):
            raise self.unsupported("tl.full of a value that is no literal")
        constant = Const(value, dtype)
        return Accumulator(constant) if "R0_BLOCK" in shape or self.opens_accumulator() else constant

    def opens_accumulator(self) -> bool:
        return self.state.line.startswith("_tmp")

    def where(self, node: ast.Call, name: str | None) -> object:
        condition, then, other = (self.eval(arg) for arg in node.args)
        if condition is IN_RANGE:
            return then
        return self.compute("where", [condition, then, other], name)

    def reduce(self, kind: str, value: object, name: str | None) -> object:
        if isinstance(value, Accumulator):
            if value.kind is None or (value.kind != kind and value.kind != "dot"):
                raise self.unsupported("a reduction of a loop-carried value of another kind")
            kind, args = value.kind, value.args
        else:
            args = (self.operand(value),)
        return self.emit(Reduce(self.name(name), kind, args, self.dtype(args[0]), self.state.line))

    def compute(self, op: str, values: list[object], name: str | None) -> str | Const:
        values = [self.settle(value) for value in values]
        args = tuple(self.operand(value) for value in values)
        if (folded := fold(op, args)) is not None:
            return folded
        rule = OPS[op].dtype
        dtypes = [self.dtype(arg) for arg in args]
        if rule == "bool":
            dtype = "int1"
        elif rule == "branches":
            dtype = promote(args[1:], dtypes[1:])
        elif rule == "same":
            dtype = dtypes[0]
        else:
            dtype = promote(args, dtypes)
        if op == "div" and not dtype.startswith(("float", "bfloat")):
            dtype = "float32"
        return self.emit(Compute(self.name(name), op, args, dtype, self.state.line))

    # Helpers

    def settle(self, value: object, name: str | None = None) -> object:
        """A dot's accumulator read outside its loop is the dot."""
        if isinstance(value, Accumulator):
            if value.kind is None:
                return value.start
            return self.emit(
                Reduce(self.name(name), value.kind, value.args, value.start.dtype, self.state.line)
            )
        return value

    def address(self, node: ast.expr) -> tuple[str, sympy.Expr]:
        match node:
            case ast.BinOp(left=ast.Name(id=param), op=ast.Add(), right=index) if param in self.state.params:
                return param, self.index(index)
            case ast.Name(id=param) if param in self.state.params:
                return param, sympy.Integer(0)
        raise self.unsupported(f"the address `{ast.unparse(node)}`")

    def index(self, node: ast.expr) -> sympy.Expr:
        """An index expression; values inside it become symbols of their names."""
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                return self.index_arithmetic(type(op).__name__, self.index(left), self.index(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.index(operand)
            case ast.Call(func=ast.Attribute(attr="to" | "broadcast_to", value=inner)) if (
                _dotted(inner) != "tl"
            ):
                return self.index(inner)
            case ast.Call(args=[inner, *_]) if _dotted(node.func) in (
                "tl.broadcast_to",
                "tl.reshape",
                "tl.full",
            ):
                return self.index(inner if _dotted(node.func) != "tl.full" else node.args[1])
        value = self.eval(node)
        if isinstance(value, str):
            return sympy.Symbol(value, integer=True)
        if isinstance(value, Const):
            return sympy.Integer(int(value.value))
        if isinstance(value, int | sympy.Expr):
            return sympy.sympify(value)
        raise self.unsupported(f"the index `{ast.unparse(node)}`")

    def mask(self, node: ast.expr) -> str | None:
        value = self.eval(node)
        if value is None or value is IN_RANGE:
            return None
        return str(self.operand(value))

    def operand(self, value: object) -> Operand:
        match self.settle(value):
            case str(name):
                return name
            case Const() as constant:
                return constant
            case bool(flag):
                return Const(flag, "int1")
            case int(number):
                return Const(number, "int32")
            case float(number):
                return Const(number, "float32")
            case sympy.Expr() as expression:
                return self.emit(Index(self.name(None), expression, "int32", self.state.line))
        raise self.unsupported("a value that only guards the range ends")

    def dtype(self, value: Operand) -> str:
        return value.dtype if isinstance(value, Const) else self.state.dtypes[value]

    def number(self, node: ast.expr) -> int:
        value = self.eval(node)
        if isinstance(value, int):
            return value
        raise self.unsupported(f"the extent `{ast.unparse(node)}`")

    def find(self, name: Operand) -> Statement | None:
        return next((s for s in reversed(self.state.body) if s.name == name), None)

    def name(self, wanted: str | None) -> str:
        """`wanted` where it is free, else a fresh name; loop-carried `_tmpN` becomes `tmpN`."""
        if wanted is not None and (clean := wanted.lstrip("_")) not in self.state.dtypes:
            return clean
        self.state.fresh += 1
        return f"tmp_{self.state.fresh}"

    def emit(self, statement: Load | Index | Compute | Reduce | Scan) -> str:
        self.state.body.append(statement)
        self.state.dtypes[statement.name] = statement.dtype
        if statement.name.startswith("tmp"):
            self.state.scope[statement.name] = statement.name
        return statement.name

    def unsupported(self, what: str) -> UnsupportedSyntax:
        return UnsupportedSyntax(what=what, line=self.state.line)


def _range_of(target: str, suffix: str) -> str | None:
    """`xindex` -> `x`, `r0_index` -> `r0`, `rindex` -> `r`; None for other names."""
    if not target.endswith(suffix):
        return None
    stem = target[: -len(suffix)].rstrip("_")
    return stem if stem in ("x", "y", "z", "r") or (stem.startswith("r") and stem[1:].isdigit()) else None


def _is_index(value: object) -> bool:
    return isinstance(value, sympy.Expr) or (isinstance(value, int) and not isinstance(value, bool))


def _elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]
