"""Evaluation of statements: assignments, stores, asserts, and loops over reduction blocks."""

from __future__ import annotations

import ast

import sympy

from tracer.rewrite.errors import (
    AtomicStore,
    UndefinedValue,
    UnsupportedOperation,
)
from tracer.rewrite.functions import (
    ARG_REDUCE_CALLS,
    BINARY,
    CALLS,
    SCANS,
)
from tracer.rewrite.ir import (
    Compute,
    Const,
    Index,
    Kernel,
    Range,
    Reduce,
    Scan,
    Store,
)
from tracer.rewrite.parse.expressions import Expressions
from tracer.rewrite.parse.state import IN_RANGE, Accumulator, State, dotted
from tracer.rewrite.types import is_float


def parse(name: str, source: str, params: dict[str, str]) -> Kernel:
    """Parse the kernel `name` out of `source`.

    `params` maps each pointer parameter to the Triton dtype of its elements (`float16`, `int1`).
    Raises UnsupportedSyntax, UnsupportedOperation, UndefinedValue, AtomicStore or RandomNumbers.
    """
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    kernel = functions.pop(name)
    state = State(params, source.splitlines(), helpers=functions)
    _Statements(state).block(kernel.body)
    used = tuple(arg.arg for arg in kernel.args.args if arg.arg in params)
    return Kernel(
        name, used, tuple(state.ranges.values()), tuple(state.body), tuple(sorted(state.bounds.items()))
    )


class _Statements(Expressions):
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
        range_symbol = _range_of(target, "index")
        if range_symbol and range_symbol != "r":  # `rindex` flattens the reduced ranges defined before it
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
        suffix = "_numel" if symbol.startswith("r") else "numel"
        extent = state.scope.get(f"{symbol}{suffix}")
        if not isinstance(extent, int):
            raise UndefinedValue(name=f"{symbol}{suffix}", line=state.line)
        entry = Range(sympy.Symbol(symbol, integer=True, nonnegative=True), extent, symbol.startswith("r"))
        state.ranges[symbol] = entry
        state.scope[f"{symbol}_index" if symbol.startswith("r") else f"{symbol}index"] = entry.symbol

    def assign_tuple(self, targets: list[str], call: ast.Call) -> None:
        function = dotted(call.func)
        if function in ARG_REDUCE_CALLS:
            self.search(targets, ARG_REDUCE_CALLS[function], call.args[0], self.eval(call.args[1]))
            return
        if function == "tl.associative_scan":
            values = [self.operand(self.eval(v)) for v in _elements(call.args[0])]
            combine = self.combine_of(dotted(call.args[2]))
            if len(values) == 1 and combine in SCANS:
                self.emit(Scan(targets[0], combine, (values[0],), self.dtype(values[0]), self.state.line))
                return
        raise UnsupportedOperation(function=function or ast.unparse(call.func), line=self.state.line)

    def search(self, targets: list[str], kinds: tuple[str, str], searched: ast.expr, place: object) -> None:
        """The extreme of a value, and where it is: the least of the `place`s that hold it.

        Only of integers whose places number the one reduced range is that what `tl.argmax` gives: it goes by
        their order, and passes a NaN over.
        """
        line = self.state.line
        value = self.operand(self.eval(searched))
        floating = is_float(self.dtype(value))
        extreme = Reduce(targets[0], kinds[0], (value,), self.dtype(value), line)
        if not floating and self.counts_the_reduced_range(place):
            self.emit(extreme)
            self.emit(Reduce(targets[1], kinds[1], (value,), "int64", line))
            return
        where = self.emit(Compute(self.name(None), "cast", (self.operand(place),), "int64", line))
        held = self.emit(Compute(self.name(None), "eq", (value, self.emit(extreme)), "int1", line))
        if floating:
            # NaN, which equals nothing, is the extreme where there is one.
            nan = self.emit(Compute(self.name(None), "isnan", (value,), "int1", line))
            held = self.emit(Compute(self.name(None), "or", (held, nan), "int1", line))
        least = Compute(self.name(None), "where", (held, where, Const(2**63 - 1, "int64")), "int64", line)
        self.emit(Reduce(targets[1], "min", (self.emit(least),), "int64", line))

    def counts_the_reduced_range(self, place: object) -> bool:
        """Whether a value is, through casts, the index of the only reduced range."""
        defined = {statement.name: statement for statement in self.state.body}
        while isinstance(place, str):
            match defined[place]:
                case Index(index=index):
                    place = index
                case Compute(op="cast", args=(source,)):
                    place = source
                case _:
                    return False
        return [place] == [entry.symbol for entry in self.state.ranges.values() if entry.reduced]

    def combine_of(self, helper: str) -> str:
        """The IR op that a two-argument helper function of Inductor computes, empty if it is no single op."""
        node = self.state.helpers.get(helper)
        match node:
            case ast.FunctionDef(body=[ast.Assign(value=ast.BinOp(op=op)), ast.Return()]):
                return BINARY.get(type(op).__name__, "")
            case ast.FunctionDef(body=[ast.Assign(value=ast.Call(func=func)), ast.Return()]):
                return CALLS.get(dotted(func), "")
        return ""

    def loop(self, node: ast.For, body: list[ast.stmt]) -> None:
        """One pass over the body stands for all blocks; accumulators become reductions."""
        self.state.scope[ast.unparse(node.target)] = sympy.Integer(0)
        self.block(body)

    def effect(self, call: ast.Call) -> None:
        function = dotted(call.func)
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


def _range_of(target: str, suffix: str) -> str | None:
    """`xindex` -> `x`, `r0_index` -> `r0`, `rindex` -> `r`; None for other names."""
    if not target.endswith(suffix):
        return None
    stem = target[: -len(suffix)].rstrip("_")
    return stem if stem in ("x", "y", "z", "r") or (stem.startswith("r") and stem[1:].isdigit()) else None


def _elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]
