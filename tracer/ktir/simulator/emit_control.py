"""Control flow, calls and returns."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.dialect import ForallOp
from tracer.ktir.simulator.compile import Compiler, Unsupported, emits
from tracer.ktir.simulator.faults import Fault


def steps(lower: int, upper: int, step: int) -> range:
    """The values of a loop's induction variable. Raises Fault KT219 where the step is not positive."""
    if step <= 0:
        raise Fault("KT219", f"the step of the loop is {step}")
    return range(lower, upper, step)


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
    bounds = compiler.uses((op.lb, op.ub, op.step))
    compiler.line(f"for {compiler.define(induction)} in {compiler.bind(steps, 'f')}({bounds}):")
    _nested(compiler, op.body.block, carried)
    assign(compiler, op.results, carried)


@emits("scf.if")
def _if(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    if compiler.vector:
        raise Unsupported("scf.if inside a vectorised region is not supported")
    compiler.line(f"if {compiler.use(op.cond)}:")
    _nested(compiler, op.true_region.block, op.results)
    if op.false_region.blocks:
        compiler.line("else:")
        _nested(compiler, op.false_region.block, op.results)


@emits("scf.while")
def _while(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    assign(compiler, before.args, op.operands)
    compiler.line("while True:")
    compiler.indent += 1
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


@emits("scf.parallel")
def _parallel(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.ParallelOp)
    if op.results:
        raise Unsupported("scf.parallel with reductions is not supported")
    loops = zip(op.body.block.args, op.lowerBound, op.upperBound, op.step, strict=True)
    depth = 0
    for arg, lower, upper, step in loops:
        bounds = compiler.uses((lower, upper, step))
        compiler.line(f"for {compiler.define(arg)} in {compiler.bind(steps, 'f')}({bounds}):")
        compiler.indent += 1
        depth += 1
    compiler.block(op.body.block)
    compiler.indent -= depth


@emits("scf.forall")
def _forall(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ForallOp)
    for arg, bounds in zip(op.body.block.args, op.bounds(), strict=True):
        text = ", ".join(str(b) if isinstance(b, int) else compiler.use(b) for b in bounds)  # type: ignore[arg-type]
        compiler.line(f"for {compiler.define(arg)} in {compiler.bind(steps, 'f')}({text}):")
        compiler.indent += 1
    compiler.block(op.body.block)
    compiler.indent -= len(op.body.block.args)


@emits("scf.yield", "scf.condition", "scf.reduce", "linalg.yield", "tensor.yield", "ktdp.yield_partial")
def _yield(compiler: Compiler, op: Operation) -> None:
    compiler.line("pass")


@emits("ktdp.yield_reduced", "ktdp.region_terminator", "scf.forall.in_parallel")
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
    renamed = dict(compiler.names)
    for arg, value in zip(body.args, op.arguments, strict=True):
        expression = compiler.use(value)
        compiler.names[arg] = f"a{len(compiler.lines)}_{arg.index}"
        compiler.line(f"{compiler.names[arg]} = {expression}")
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
