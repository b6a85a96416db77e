"""Control flow, calls and returns."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits, weight
from tracer.ktir.simulator.liveness import tiles_held


def loop_over(compiler: Compiler, target: SSAValue, bounds: Sequence[str], operations: int) -> None:
    """Emit the head of a counted loop and indent; the loop executes `operations` per iteration."""
    compiler.line(f"for {compiler.define(target)} in session.steps({', '.join(bounds)}, {operations}):")
    compiler.indent += 1


def assign(compiler: Compiler, targets: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
    """Emit a simultaneous assignment."""
    if targets:
        left = ", ".join(compiler.define(t) for t in targets)
        compiler.line(f"{left} = {compiler.uses(values)}")


def _nested(compiler: Compiler, block: Block, targets: Sequence[SSAValue]) -> None:
    compiler.indent += 1
    compiler.block(block)
    last = block.last_op
    if last is not None and targets:
        assign(compiler, targets, last.operands)
    compiler.indent -= 1


@emits("scf.for")
def _for(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    induction, *carried = op.body.block.args
    assign(compiler, carried, op.iter_args)
    bounds = [compiler.use(v) for v in (op.lb, op.ub, op.step)]
    loop_over(compiler, induction, bounds, weight(op.body.block))
    compiler.indent -= 1
    _nested(compiler, op.body.block, carried)
    assign(compiler, op.results, carried)


def _only_in_sequence(compiler: Compiler, op: Operation) -> None:
    if compiler.vector:
        raise Unsupported(f"{op.name} inside a vectorised region is not supported")


@emits("scf.if")
def _if(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    _only_in_sequence(compiler, op)
    compiler.line(f"if {compiler.use(op.cond)}:")
    _nested(compiler, op.true_region.block, op.results)
    if op.false_region.blocks:
        compiler.line("else:")
        _nested(compiler, op.false_region.block, op.results)


@emits("scf.execute_region")
def _execute(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.ExecuteRegionOp)
    _only_in_sequence(compiler, op)
    compiler.line("if True:")
    _nested(compiler, op.region.block, op.results)


@emits("scf.index_switch")
def _switch(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.IndexSwitchOp)
    _only_in_sequence(compiler, op)
    keyword, index = "if", compiler.use(op.arg)
    for case, region in zip(op.cases.get_values(), op.case_regions, strict=True):
        compiler.line(f"{keyword} {index} == {case}:")
        _nested(compiler, region.block, op.results)
        keyword = "elif"
    compiler.line("else:" if op.case_regions else "if True:")
    _nested(compiler, op.default_region.block, op.results)


@emits("scf.while")
def _while(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    assign(compiler, before.args, op.operands)
    compiler.line("while True:")
    compiler.indent += 1
    compiler.line(f"session.spend({weight(before, after)}, 'the condition of the loop')")
    compiler.block(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    assign(compiler, after.args, condition.operands[1:])
    compiler.line(f"if not {compiler.use(condition.operands[0])}: break")
    compiler.block(after)
    end = after.last_op
    if end is not None:
        assign(compiler, before.args, end.operands)
    compiler.indent -= 1
    assign(compiler, op.results, after.args)


@emits(
    "scf.yield", "scf.condition", "scf.reduce.return", "linalg.yield", "tensor.yield", "ktdp.yield_partial"
)
def _yield(compiler: Compiler, op: Operation) -> None:
    compiler.line("pass")


@emits("ktdp.yield_reduced", "ktdp.region_terminator")
def _end(compiler: Compiler, op: Operation) -> None:
    compiler.line("pass")


@emits("func.return")
def _return(compiler: Compiler, op: Operation) -> None:
    compiler.line(f"return ({compiler.uses(op.operands)},)" if op.operands else "return ()")


@emits("func.call")
def _call(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, func.CallOp)
    name = op.callee.string_value()
    found = [f for f in compiler.module.walk() if isinstance(f, func.FuncOp) and f.sym_name.data == name]
    if not found:
        raise Unsupported(f"function {name} is not defined")
    body = found[0].body.block
    if any(inner.name == "func.call" for inner in found[0].walk()) and _calls(compiler, found[0], name):
        raise Unsupported(f"function {name} calls itself")
    # Calls are inlined: KTIR has no recursion, and one Python function keeps places and collectives simple.
    if op in compiler.held:
        around = compiler.held[op].around
        compiler.held.update((held.op, held) for held in tiles_held(body, around))
    renamed = dict(compiler.names)
    for arg, value in zip(body.args, op.arguments, strict=True):
        expression = compiler.use(value)
        compiler.names[arg] = f"a{len(compiler.lines)}_{arg.index}"
        compiler.line(f"{compiler.names[arg]} = {expression}")
        if value in compiler.differing:
            compiler.differing.add(arg)
    for inner in body.ops:
        if inner.name == "func.return":
            assign(compiler, op.results, inner.operands)
        else:
            compiler.op(inner)
    kept = {value: text for value, text in compiler.names.items() if value in renamed or value in op.results}
    compiler.names.update(kept)


def _calls(compiler: Compiler, function: func.FuncOp, name: str) -> bool:
    seen, todo = set(), [function]
    while todo:
        current = todo.pop()
        for op in current.walk():
            if isinstance(op, func.CallOp):
                callee = op.callee.string_value()
                if callee == name:
                    return True
                if callee not in seen:
                    seen.add(callee)
                    todo += [
                        f
                        for f in compiler.module.walk()
                        if isinstance(f, func.FuncOp) and f.sym_name.data == callee
                    ]
    return False
