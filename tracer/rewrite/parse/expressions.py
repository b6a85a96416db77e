"""Evaluation of expressions: an index, a guard, a number, or a new value of the IR."""

from __future__ import annotations

import ast
from dataclasses import replace

import sympy

from tracer.rewrite.errors import (
    RandomNumbers,
    UndefinedValue,
    UnsupportedOperation,
    UnsupportedSyntax,
)
from tracer.rewrite.fold import cast_constant, fold
from tracer.rewrite.functions import (
    ACCUMULATE,
    BINARY,
    CALLS,
    COMPARE,
    OPS,
    REDUCE_CALLS,
    UNARY,
)
from tracer.rewrite.ir import (
    Compute,
    Const,
    FloorDiv,
    Index,
    Load,
    Modulo,
    Operand,
    Reduce,
    Scan,
    Statement,
)
from tracer.rewrite.parse.state import IN_RANGE, Accumulator, State, dotted
from tracer.rewrite.types import BYTES, promote, triton_dtype


class Expressions:
    """Evaluates expressions against a State."""

    def __init__(self, state: State) -> None:
        self.state = state

    def eval(self, node: ast.expr, name: str | None = None) -> object:
        """Meaning of an expression; a value it forms is called `name`."""
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
            case ast.BinOp(op=ast.Add()) if (extreme := _extreme(node)) is not None:
                return self.compute(extreme[0], [self.eval(part) for part in extreme[1:]], name)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(type(op).__name__, self.eval(left), self.eval(right), name)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compare(type(op).__name__, self.eval(left), self.eval(right), name)
            case ast.IfExp(
                test=ast.Compare(left=ast.Attribute(attr="dtype", value=inner), comparators=[dtype])
            ):
                holds = self.dtype(self.operand(self.eval(inner))) == self.named_dtype(dtype)
                return self.eval(node.body if holds else node.orelse, name)
            case ast.Call():
                return self.call(node, name)
            case ast.Attribute():
                return ast.unparse(node)
            case _:
                raise self.unsupported(f"`{ast.unparse(node)}`")

    def unary(self, op: str, value: object, name: str | None) -> object:
        """Meaning of a prefix operator."""
        if value is IN_RANGE:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool) and op == "USub":
            return -value
        if isinstance(value, sympy.Expr) and op == "USub":
            return -value
        return self.compute(UNARY[op], [value], name)

    def binary(self, op: str, left: object, right: object, name: str | None) -> object:
        """Meaning of an infix operator."""
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
        """Arithmetic on index expressions."""
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
        """Meaning of a comparison: a guard of the range end, or a boolean value."""
        if isinstance(left, sympy.Symbol) and op == "Lt" and isinstance(right, int):
            entry = self.state.ranges.get(left.name)
            if entry is not None and entry.extent == right:
                return IN_RANGE
        return self.compute(COMPARE[op], [left, right], name)

    def accumulate(self, op: str, left: object, right: object) -> object:
        """The carried value after its update."""
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
        """Meaning of a call."""
        function = dotted(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            if any(keyword.arg == "bitcast" for keyword in node.keywords):
                raise self.unsupported("a value's bits as another dtype")
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
            is_word = isinstance(text, ast.Constant) and isinstance(text.value, str)
            return float(ast.literal_eval(text)) if is_word else self.eval(text)
        if "rand" in function:
            raise RandomNumbers(function=function, line=self.state.line)
        if function in CALLS:
            values = [self.eval(arg) for arg in node.args]
            if any(isinstance(v, Accumulator) for v in values):
                return self.accumulate(CALLS[function], values[0], values[1])
            return self.compute(CALLS[function], values, name)
        raise UnsupportedOperation(function=function or ast.unparse(node.func), line=self.state.line)

    def cast(self, value_node: ast.expr, dtype_node: ast.expr, name: str | None) -> object:
        """Meaning of `value.to(dtype)`."""
        value = self.eval(value_node, f"{name}_raw" if name else None)
        dtype = self.named_dtype(dtype_node)
        if isinstance(value, Const | bool | int | float):
            literal = value.value if isinstance(value, Const) else value
            return cast_constant(Const(literal, dtype), dtype)
        if isinstance(value, sympy.Expr):
            return self.emit(Index(self.name(name), value, dtype, self.state.line))
        if isinstance(value, str) and self.dtype(value) == dtype:
            return value
        if isinstance(value, Accumulator):
            raise self.unsupported("a cast of a loop-carried value")
        source = self.operand(value)
        return self.emit(Compute(self.name(name), "cast", (source,), dtype, self.state.line))

    def named_dtype(self, node: ast.expr) -> str:
        """A dtype by its own name (`tl.int64`) or as that of a value (`tmp0.dtype`)."""
        match node:
            case ast.Attribute(attr="dtype", value=inner):
                return self.dtype(self.operand(self.eval(inner)))
        return triton_dtype(ast.unparse(node))

    def load(self, node: ast.Call, name: str | None) -> object:
        """A load, as a value."""
        param, index = self.address(node.args[0])
        other = next((self.eval(k.value) for k in node.keywords if k.arg == "other"), None)
        dtype = self.state.params[param]
        # Inductor writes 0.0 for integers too, and a float among integers would make floats of them all.
        fill = cast_constant(Const(other, dtype), dtype) if isinstance(other, bool | int | float) else None
        mask = self.mask(node.args[1]) if len(node.args) > 1 else None
        if isinstance(mask, Const):
            if not mask.value:
                return fill or Const(0, dtype)
            mask = None
        if mask is None:
            fill = None
        return self.emit(Load(self.name(name), param, index, dtype, mask, fill, self.state.line))

    def full(self, node: ast.Call, function: str) -> object:
        """A literal, a guard, or the start of a loop-carried value."""
        shape = ast.unparse(node.args[0])
        value = 0 if function == "tl.zeros" else self.eval(node.args[1])
        dtype = self.named_dtype(node.args[-1])
        if value is True and dtype == "int1" and "BLOCK" in shape:
            return IN_RANGE
        if not isinstance(value, bool | int | float):
            raise self.unsupported("tl.full of a value that is no literal")
        constant = Const(value, dtype)
        return Accumulator(constant) if "R0_BLOCK" in shape or self.opens_accumulator() else constant

    def opens_accumulator(self) -> bool:
        """Whether the current line defines a loop-carried value."""
        return self.state.line.startswith("_tmp")

    def where(self, node: ast.Call, name: str | None) -> object:
        """A selection; under a guard it is its first branch."""
        condition, then, other = (self.eval(arg) for arg in node.args)
        if condition is IN_RANGE:
            return then
        return self.compute("where", [condition, then, other], name)

    def reduce(self, kind: str, value: object, name: str | None) -> object:
        """A reduction of a value, or of what a loop carried."""
        if isinstance(value, Accumulator):
            if value.kind is None or (value.kind != kind and value.kind != "dot"):
                raise self.unsupported("a reduction of a loop-carried value of another kind")
            kind, args = value.kind, value.args
        else:
            args = (self.operand(value),)
        return self.emit(Reduce(self.name(name), kind, args, self.dtype(args[0]), self.state.line))

    def compute(self, op: str, values: list[object], name: str | None) -> str | Const:
        """An elementwise op as a new value, or the literal it folds to."""
        values = [self.settle(value) for value in values]
        args = tuple(self.operand(value) for value in values)
        if op in ("shl", "shr") and not self.is_inside(args[1], 8 * BYTES[self.dtype(args[0])]):
            return self.shift(op, args, name)
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

    @staticmethod
    def is_inside(operand: Operand, end: int) -> bool:
        """Whether an operand is a literal from 0 up to `end`."""
        return isinstance(operand, Const) and 0 <= operand.value < end

    def shift(self, op: str, args: tuple[Operand, ...], name: str | None) -> str | Const:
        """A shift by any count, as PyTorch has it: a count outside of the width shifts everything out.

        Triton and KTIR leave such a count undefined.
        """
        value, count = args
        dtype, counts = self.dtype(value), self.dtype(count)
        last = 8 * BYTES[dtype] - 1
        outside = self.compute("gt", [count, Const(last, counts)], None)
        if not counts.startswith("u"):
            negative = self.compute("lt", [count, Const(0, counts)], None)
            outside = self.compute("or", [outside, negative], None)
        inside = self.compute("where", [outside, Const(last, counts), count], None)
        # A sign is what is left of a number when all else has gone out to the right.
        filled = op == "shr" and not dtype.startswith("u")
        target = self.name(name if filled else None)
        shifted = self.emit(Compute(target, op, (value, self.operand(inside)), dtype, self.state.line))
        return shifted if filled else self.compute("where", [outside, Const(0, dtype), shifted], name)

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
        """Pointer parameter and index expression of an address."""
        match node:
            case ast.BinOp(left=ast.Name(id=param), op=ast.Add(), right=index) if param in self.state.params:
                return param, self.index(index)
            case ast.Name(id=param) if param in self.state.params:
                return param, sympy.Integer(0)
        raise self.unsupported(f"the address `{ast.unparse(node)}`")

    def index(self, node: ast.expr) -> sympy.Expr:
        """An index expression; values inside it become symbols of their names."""
        match node:
            case ast.BinOp(left=left, op=op, right=right) if _extreme(node) is None:
                return self.index_arithmetic(type(op).__name__, self.index(left), self.index(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.index(operand)
            case ast.Call(func=ast.Attribute(attr="to" | "broadcast_to", value=inner)) if (
                dotted(inner) != "tl"
            ):
                return self.index(inner)
            case ast.Call(args=[inner, *_]) if dotted(node.func) in (
                "tl.broadcast_to",
                "tl.reshape",
                "tl.full",
            ):
                return self.index(inner if dotted(node.func) != "tl.full" else node.args[1])
        value = self.eval(node)
        if isinstance(value, str):
            return sympy.Symbol(value, integer=True)
        if isinstance(value, Const):
            return sympy.Integer(int(value.value))
        if isinstance(value, int | sympy.Expr):
            return sympy.sympify(value)
        raise self.unsupported(f"the index `{ast.unparse(node)}`")

    def mask(self, node: ast.expr) -> str | Const | None:
        """Name of the condition under which a load reads, or the literal it folds to; None: it always
        does."""
        value = self.eval(node)
        if value is None or value is IN_RANGE:
            return None
        found = self.operand(value)
        return found if isinstance(found, Const) else str(found)

    def operand(self, value: object) -> Operand:
        """A meaning as an operand of a statement."""
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
        """Triton dtype of an operand."""
        return value.dtype if isinstance(value, Const) else self.state.dtypes[value]

    def number(self, node: ast.expr) -> int:
        """A compile-time integer."""
        value = self.eval(node)
        if isinstance(value, int | sympy.Integer):
            return int(value)
        raise self.unsupported(f"the extent `{ast.unparse(node)}`")

    def find(self, name: Operand) -> Statement | None:
        """The statement that defines a value."""
        return next((s for s in reversed(self.state.body) if s.name == name), None)

    def name(self, wanted: str | None) -> str:
        """`wanted` where it is free, else a fresh name; loop-carried `_tmpN` becomes `tmpN`."""
        if wanted is not None and (clean := wanted.lstrip("_")) not in self.state.dtypes:
            return clean
        self.state.fresh += 1
        return f"tmp_{self.state.fresh}"

    def emit(self, statement: Load | Index | Compute | Reduce | Scan) -> str:
        """Append a statement; its name."""
        self.state.body.append(statement)
        self.state.dtypes[statement.name] = statement.dtype
        if statement.name.startswith("tmp"):
            self.state.scope[statement.name] = statement.name
        return statement.name

    def unsupported(self, what: str) -> UnsupportedSyntax:
        """The refusal of a construct, with the current line."""
        return UnsupportedSyntax(what=what, line=self.state.line)


def _extreme(node: ast.expr) -> tuple[str, ast.expr, ast.expr] | None:
    """`a * (a <= b) + b * (b < a)`, as Inductor prints an integer minimum (or, with `>=`, a maximum)."""
    match node:
        case ast.BinOp(
            left=ast.BinOp(
                left=a,
                op=ast.Mult(),
                right=ast.Compare(left=a2, ops=[ast.LtE() | ast.GtE() as op], comparators=[b]),
            ),
            op=ast.Add(),
            right=ast.BinOp(left=b2, op=ast.Mult(), right=ast.Compare()),
        ) if ast.dump(a) == ast.dump(a2) and ast.dump(b) == ast.dump(b2):
            return ("minimum" if isinstance(op, ast.LtE) else "maximum"), a, b
    return None


def _is_index(value: object) -> bool:
    return isinstance(value, sympy.Expr) or (isinstance(value, int) and not isinstance(value, bool))
