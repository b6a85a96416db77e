"""The public face of the simulator: `Module.parse`, `module.function(name).run(...)`."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tracer.ktir.diagnostics import Diagnostic, KtirError, at, location
from tracer.ktir.rules.verifier import verify
from tracer.ktir.simulator.arguments import (
    ArgumentBuffer,
    UnfitArgumentError,
    arguments_of,
    like_argument,
    listed,
    number_of,
    overlap,
    whole,
    written_back,
)
from tracer.ktir.simulator.checks import Probe, after_run
from tracer.ktir.simulator.compile import compile_function
from tracer.ktir.simulator.compiler import Program
from tracer.ktir.simulator.lanes_run import LaneProgram, plan, run_lanes
from tracer.ktir.simulator.layouts import layout_findings
from tracer.ktir.simulator.liveness import peak
from tracer.ktir.simulator.memory import Pointer
from tracer.ktir.simulator.placement import placed_globally, placed_locally
from tracer.ktir.simulator.provenance import loaded_arguments, stored_arguments
from tracer.ktir.simulator.schedule import run_cores
from tracer.ktir.simulator.session import MAX_STEPS, Session
from tracer.ktir.text.module import read, with_source
from tracer.target import SPYRE, SpyreTarget

Trace = Callable[[int, Operation, tuple[Any, ...]], None]
"""Called with core, operation and result values."""


@dataclass(frozen=True)
class Result:
    """What a run gives back.

    `outputs` are what the function stores to, in argument order, with the shapes and strides given: a NumPy
    array where one was passed, else a torch tensor; `written` are their argument positions. `diagnostics`
    are warnings, and errors too where `check=False`.
    """

    outputs: tuple[Any, ...]
    written: tuple[int, ...]
    diagnostics: tuple[Diagnostic, ...]
    counters: dict[str, Any] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Diagnostics of severity error."""
        return tuple(d for d in self.diagnostics if d.severity == "error")


class Module:
    """A parsed and verified KTIR module."""

    def __init__(self, module: ModuleOp, lines: Sequence[str] = ()):
        self.module = module
        self.lines = list(lines)
        self.warnings: tuple[Diagnostic, ...] = ()

    @classmethod
    def parse(cls, source: str | Path, filename: str | None = None) -> Module:
        """From text, or from a file where `source` is a path (a `Path`, or a string of one line that
        names one).

        Raises KtirError for text that is wrong, OSError for a file that cannot be read.
        """
        if isinstance(source, Path) or ("\n" not in source and source.endswith((".ktir", ".mlir"))):
            filename = filename or str(source)
            source = Path(source).read_text()
        text = str(source)
        lines = text.splitlines()
        module, noted = read(text, filename or "<ktir>")
        found = cls(module, lines)
        findings = [with_source(d, lines) for d in verify(found.module)]
        if errors := [d for d in findings if d.severity == "error"]:
            raise KtirError(errors)
        found.warnings = (*noted, *findings)
        return found

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that have a body."""
        return tuple(
            f.sym_name.data for f in self.module.walk() if isinstance(f, func.FuncOp) and f.body.blocks
        )

    def function(self, name: str | None = None) -> Function:
        """The function of that name; the only one where no name is given. Raises KtirError KT115."""
        candidates = [f for f in self.module.walk() if isinstance(f, func.FuncOp) and f.body.blocks]
        for candidate in candidates:
            if candidate.sym_name.data == name or (name is None and len(candidates) == 1):
                return Function(self, candidate)
        known = ", ".join(self.functions)
        text = f"no function {name}; the module has {known or 'none'}"
        if name is None:
            text = f"the module has several functions, name one: {known}" if known else "there is no function"
        raise KtirError([at(candidates[0] if candidates else self.module, "KT115", text)])


def grid_of(op: func.FuncOp) -> tuple[int, int, int]:
    """The `grid` attribute padded to three axes; (1, 1, 1) where there is none."""
    value = op.attributes.get("grid")
    if not isinstance(value, ArrayAttr):
        return (1, 1, 1)
    dims = [v.value.data for v in value if isinstance(v, IntegerAttr)]
    x, y, z = (*dims, 1, 1, 1)[:3]
    return x, y, z


class Function:
    """One function, compiled on first use."""

    def __init__(self, module: Module, op: func.FuncOp):
        self.module = module
        self.op = op
        self.name = op.sym_name.data
        self._program: Program | None = None
        self._compat: Program | None = None
        self._foreseen: dict[tuple[Any, ...], tuple[Diagnostic, ...]] = {}
        self.lanes: LaneProgram | bool | None = None

    @property
    def grid(self) -> tuple[int, int, int]:
        """Cores along x, y and z."""
        return grid_of(self.op)

    def on_grid(self, grid: Sequence[int] | None, target: SpyreTarget = SPYRE) -> tuple[int, int, int]:
        """Cores along x, y and z: those of `grid`, or the function's own.

        Raises KtirError KT111 for what is no grid, for no cores, and for more than the target has.
        """
        grid = self._numbers_of_cores(grid)
        if grid is not None and len(grid) > 3:
            raise KtirError([at(self.op, "KT111", f"grid {list(grid)} has more than three axes")])
        x, y, z = (*grid, 1, 1, 1)[:3] if grid is not None else self.grid
        if min(x, y, z) < 1:
            raise KtirError([at(self.op, "KT111", f"grid {[x, y, z]} has no cores")])
        if x * y * z > target.cores:
            text = f"grid {[x, y, z]} has {x * y * z} cores, the accelerator {target.cores}"
            raise KtirError([at(self.op, "KT111", text)])
        return x, y, z

    def _numbers_of_cores(self, grid: object) -> list[int] | None:
        if grid is None:
            return None
        try:
            return [operator.index(n) for n in grid]  # type: ignore[attr-defined]
        except TypeError:
            text = f"grid {grid!r} is no list of whole numbers of cores; write (4,) or (8, 4)"
            raise KtirError([at(self.op, "KT111", text)]) from None

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Argument names without `%`, in order."""
        return tuple(a.name_hint or f"arg{a.index}" for a in self.op.body.block.args)

    @property
    def program(self) -> Program:
        """The compiled function. Raises KtirError KT117 for what the simulator does not run."""
        if self._program is None:
            try:
                self._program = compile_function(self.module.module, self.op)
            except KtirError as error:
                raise KtirError(with_source(d, self.module.lines) for d in error.diagnostics) from None
        return self._program

    def _sequential(self, compat: bool, watch: _Watch | None) -> Program:
        """The program that runs core by core; compiled anew where every operation is watched."""
        if watch is not None:
            return compile_function(self.module.module, self.op, compat=compat, probe=watch.probe)
        if not compat:
            return self.program
        if self._compat is None:
            self._compat = compile_function(self.module.module, self.op, compat=True)
        return self._compat

    def _lane_program(self) -> LaneProgram | None:
        if self.lanes is None:
            self.lanes = plan(self.module.module, self.op, self.peak[0]) or False
        return self.lanes if isinstance(self.lanes, LaneProgram) else None

    @cached_property
    def peak(self) -> tuple[int, Operation]:
        """Most bytes of tiles that live at once on a core, and the operation where."""
        return peak(self.op)

    @cached_property
    def stored(self) -> tuple[int, ...]:
        """Positions of the arguments that the function may store to."""
        return stored_arguments(self.op)

    @cached_property
    def loaded(self) -> tuple[int, ...]:
        """Positions of the arguments that the function may load from."""
        return loaded_arguments(self.op)

    def run(
        self,
        args: Sequence[Any] = (),
        *,
        grid: Sequence[int] | None = None,
        inplace: bool = False,
        sanitize: bool = True,
        check: bool = True,
        uninitialized: Sequence[int] = (),
        memory: Mapping[int, Any] | None = None,
        lx: Mapping[int, Mapping[int, Any]] | None = None,
        target: SpyreTarget = SPYRE,
        mode: str = "strict",
        trace: Trace | None = None,
        max_steps: int = MAX_STEPS,
        foresee: bool = True,
    ) -> Result:
        """Execute on every core of the grid.

        `args` are positional: torch tensors or NumPy arrays for pointers, numbers for scalars; what a type
        does not hold is refused (KT216), n bits taking -2**(n-1) to 2**n - 1, index 64 signed. The memory
        behind a tensor runs from its first element to its last, and strides and offsets of views count from
        there. Stored arguments are copied unless `inplace`; then one tensor given twice is one memory, and
        tensors that share a part of theirs are refused (KT216). `uninitialized` lists outputs whose old
        content must not be read. `mode="ktir_cpu"` imitates the public simulator (see `compat`). `memory`
        places contiguous tensors or arrays at literal element addresses, and stores show in them; `lx[core]`
        places copies in scratchpads (KT216 for what does not fit, see `placement`). `trace` is called
        with core, operation and results after every operation that has results. `max_steps` bounds the
        operations in loops that one core executes, so that a loop without end is a fault. With `sanitize`
        and `foresee` the diagnostics hold what the text foretells, too (see `foreseen`).

        Raises KtirError for a fault, and with `check` for any error that the sanitizer found.
        """

        def prepared(
            program: Program, in_place: bool
        ) -> tuple[Session, list[ArgumentBuffer | None], list[Any]]:
            return self._prepare(
                args,
                grid,
                in_place,
                sanitize,
                uninitialized,
                memory,
                lx,
                target,
                program,
                compat=compat,
                max_steps=max_steps,
                shared=inplace,
            )

        if mode not in ("strict", "ktir_cpu"):
            raise ValueError(f"mode must be strict or ktir_cpu, not {mode}")
        compat = mode == "ktir_cpu"
        sanitize = sanitize and not compat
        try:
            args = listed(args, "args", "run([x, y])")
            uninitialized = [
                whole(i, "uninitialized", "position") for i in listed(uninitialized, "uninitialized", "(1,)")
            ]
            memory = placed_globally(memory or {})
            lx = placed_locally(lx or {}, math.prod(self.on_grid(grid, target)), target)
        except UnfitArgumentError as error:
            raise KtirError([at(self.op, "KT216", str(error))]) from None

        before = {a: t.clone() for a, t in memory.items()} if sanitize else {}
        # Lanes may give up half-way, so they run on copies, which an in-place run takes over at the end.
        fast = (
            None
            if memory or lx or compat or trace
            else run_lanes(self._lane_program(), lambda program: prepared(program, False))
        )
        if fast is not None:
            session, buffers, returned = fast
            if inplace:
                buffers = [written_back(b, a) for b, a in zip(buffers, args, strict=True)]
        else:
            watch = _Watch(trace) if trace is not None else None
            session, buffers, values = prepared(self._sequential(compat, watch), inplace)
            if watch is not None:
                watch.session = session
            try:
                returned = run_cores(session, values)
            except KtirError as error:
                outside = sanitize and any(d.code == "KT203" for d in error.diagnostics)
                told = [*error.diagnostics, *(self._layouts(args) if outside else ())]
                raise KtirError(with_source(d, self.module.lines) for d in told) from None
        found = session.diagnostics()
        if sanitize:
            found += self._layouts(args)
            for address in session.unmet():
                text = f"memory: no view begins in the tensor at element {address}; check the address"
                found.append(at(self.op, "KT216", text, "warning"))

            def again(probe: Probe) -> tuple[Session, list[Any]]:
                program = compile_function(self.module.module, self.op, probe=probe)
                copies = {a: t.clone() for a, t in before.items()}
                fresh, _, passed = self._prepare(
                    args, session.grid, False, False, (), copies, lx, target, program, max_steps=max_steps
                )
                return fresh, passed

            held = [*args, *before.values(), *(t for core in lx.values() for t in core.values())]
            found += after_run(self.op, self.peak, again, session, buffers, held, uninitialized)
        found = [with_source(d, self.module.lines) for d in found]
        if check and any(d.severity == "error" for d in found):
            raise KtirError(d for d in found if d.severity == "error")
        if sanitize and foresee:
            numbers = [None if b is not None else a for a, b in zip(args, buffers, strict=True)]
            said = {(d.code, d.line, d.column) for d in found}
            warnings = self.foreseen(numbers, session.grid, max_steps)
            found += [d for d in warnings if (d.code, d.line, d.column) not in said]
        written = tuple(i for i in self.stored if buffers[i] is not None)
        outputs = tuple(like_argument(buffers[i].tensor, args[i]) for i in written)
        counters = {"cores": session.cores, "returned": returned}
        return Result(outputs, written, tuple(found), counters)

    def foreseen(
        self, args: Sequence[Any], grid: Sequence[int] | None = None, max_steps: int = MAX_STEPS
    ) -> tuple[Diagnostic, ...]:
        """Warnings KT2xx and KT3xx that follow from the text and its numbers, whatever the elements are:
        outputs left out, sums over a part of an axis, reads of what nothing filled.

        `args` are as for `run`, with None for every pointer. They are found once for a grid and numbers.
        """
        # The package of this module is imported before any module in it, so before those that trace.
        from tracer.ktir.coverage.findings import coverage_findings

        key = (tuple(grid) if grid is not None else None, *args)
        if key not in self._foreseen:
            lines = {location(op)[1] for op in self.op.walk()}
            text = [d for d in self.module.warnings if d.line in lines and d.code[:3] in ("KT2", "KT3")]
            traced = coverage_findings(self, args, grid=grid, max_steps=max_steps)
            self._foreseen[key] = (*text, *(d for d in traced if d.severity == "warning"))
        return self._foreseen[key]

    def _prepare(
        self,
        args: Sequence[Any],
        grid: Sequence[int] | None,
        inplace: bool,
        sanitize: bool,
        uninitialized: Sequence[int],
        memory: Mapping[int, Tensor] | None,
        lx: Mapping[int, Mapping[int, Tensor]] | None,
        target: SpyreTarget,
        program: Program,
        *,
        compat: bool = False,
        max_steps: int = MAX_STEPS,
        shared: bool = False,
    ) -> tuple[Session, list[ArgumentBuffer | None], list[Any]]:
        session = Session(
            program,
            self.on_grid(grid, target),
            target,
            sanitize=sanitize,
            compat=compat,
            memory=memory,
            lx=lx,
            max_steps=max_steps,
        )
        parameters = self.op.body.block.args
        if len(args) != len(parameters):
            text = f"{len(parameters)} arguments are needed, {len(args)} given"
            raise KtirError([at(self.op, "KT216", text)])
        values = [self._tensor(value, name) for value, name in zip(args, self.argument_names, strict=True)]
        if strangers := [i for i in uninitialized if not 0 <= i < len(parameters)]:
            text = f"no argument {strangers[0]} for uninitialized; the function has {len(parameters)}"
            raise KtirError([at(self.op, "KT216", text)])
        stored, loaded = set(self.stored), set(self.loaded)
        twins = self._twins(values) if shared else {}
        buffers: list[ArgumentBuffer | None] = []
        passed: list[Any] = []
        for i, (value, parameter) in enumerate(zip(values, parameters, strict=True)):
            name = parameter.name_hint or f"arg{i}"
            if not isinstance(value, Tensor):
                buffers.append(None)
                passed.append(self.number(value, parameter.type, name))
                continue
            if not isinstance(parameter.type, IndexType):
                raise KtirError(
                    [at(self.op, "KT216", f"argument {name} is {parameter.type}, but a tensor is given")]
                )
            group = twins.get(i, [i])
            first = buffers[group[0]] if group[0] < i else None
            if first is None:
                first = ArgumentBuffer(name, value, copy=not stored.isdisjoint(group) and not inplace)
                first.buffer.stored = not stored.isdisjoint(group)
                first.buffer.initialized = set(group).isdisjoint(uninitialized)
                first.buffer.loaded = not loaded.isdisjoint(group)
                session.buffers.append(first.buffer)
            buffers.append(first)
            passed.append(Pointer(first.buffer))
        return session, buffers, passed

    def _layouts(self, args: Sequence[Any]) -> list[Diagnostic]:
        """Warnings KT226 of arguments whose shape or strides no view of them has."""
        tensors, numbers = {}, {}
        for i, value in enumerate(arguments_of(args)):
            if isinstance(value, Tensor):
                tensors[i] = self.argument_names[i], value
            else:
                numbers[i] = value
        return layout_findings(self.op, tensors, numbers)

    def _twins(self, values: Sequence[Any]) -> dict[int, list[int]]:
        """Positions of arguments that are one memory, one of them stored, by each of them.

        Raises KtirError KT216 for arguments that share a part of their memory, one of them stored.
        """
        groups: dict[int, list[int]] = {}
        stored = set(self.stored)
        tensors = [(i, v) for i, v in enumerate(values) if isinstance(v, Tensor)]
        for (i, one), (j, other) in itertools.combinations(tensors, 2):
            if stored.isdisjoint((i, j)) or not (how := overlap(one, other)):
                continue
            if how == "part":
                a, b = self.argument_names[i], self.argument_names[j]
                text = f"arguments {a} and {b} share a part of their memory, and {b if j in stored else a} is"
                raise KtirError([at(self.op, "KT216", f"{text} stored in place; pass copies")])
            groups.setdefault(i, [i]).append(j)
        return {j: group for group in list(groups.values()) for j in group}

    def _tensor(self, value: Any, name: str) -> Any:
        try:
            return arguments_of([value])[0]
        except UnfitArgumentError as error:
            raise self._unfit(name, error) from None

    def number(self, value: Any, type_: Any, name: str) -> Any:
        """The number that argument `name` of this type is given. Raises KtirError KT216."""
        try:
            return number_of(value, type_)
        except UnfitArgumentError as error:
            raise self._unfit(name, error) from None

    def _unfit(self, name: str, error: UnfitArgumentError) -> KtirError:
        said = str(error)
        text = f"argument {name}{'' if said.startswith(':') else ' '}{said}"
        return KtirError([at(self.op, "KT216", text)])


class _Watch:
    """Calls a trace function after every operation, with the core that runs."""

    session: Session

    def __init__(self, trace: Trace):
        self.trace = trace

    def probe(self, op: Operation) -> Callable[..., None]:
        """The function that compiled code calls with the results of `op`."""
        return lambda *values: self.trace(self.session.core, op, values)
