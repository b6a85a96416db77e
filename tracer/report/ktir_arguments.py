"""What a simulated function runs on: values from the command line, and made-up ones for what is not given."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from typing import Any

import numpy
import torch
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import BlockArgument, SSAValue

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError, location
from tracer.ktir.dialect.ktdp import ConstructMemoryViewOp
from tracer.ktir.simulator.arguments import UnfitArgumentError, arguments_of
from tracer.ktir.simulator.dtypes import element
from tracer.ktir.simulator.run import Function
from tracer.ktir.slices import sources
from tracer.report.errors import BadArgument

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
}


def arguments(function: Function, specs: Sequence[str], generator: torch.Generator) -> list[Any]:
    """One value an argument: as `specs` (`NAME=VALUE`) say, else random elements as far as the views reach.

    Raises:
        BadArgument: a spec is malformed, an argument is given twice or missing without a view of it.
    """
    given = dict(_once(specs))
    names = function.argument_names
    if unknown := sorted(set(given) - set(names)):
        raise BadArgument(argument=unknown[0], detail=f"the function has {', '.join(names)}")
    parameters = function.op.body.block.args
    values = {name: _value(name, text, generator) for name, text in given.items()}
    dtypes = _pointers(function)
    for name, value in zip(names, parameters, strict=True):
        if name not in values and not value.uses:
            values[name] = 0
        elif name not in values and value not in dtypes:
            detail = "it is a number, as far as the text tells; give its value"
            raise BadArgument(argument=name, detail=_scratchpad(value) or detail)
    spans = _views(function.op)
    direct = all(isinstance(p, BlockArgument) for p in spans)
    if not direct or any(n not in values and p not in spans for n, p in zip(names, parameters, strict=True)):
        for pointer, span in _reached(function, [values.get(name) for name in names]).items():
            spans[pointer] = max(span, spans.get(pointer, 0))
    found: list[Any] = []
    for name, value in zip(names, parameters, strict=True):
        if name not in values and value not in spans:
            raise BadArgument(argument=name, detail="no view says how large it is; give its elements")
        found.append(
            values[name] if name in values else _random(name, (spans[value],), dtypes[value], generator)
        )
    return found


def _scratchpad(value: SSAValue) -> str:
    """What an argument is that views of a scratchpad begin at."""
    for use in value.uses:
        if isinstance(use.operation, ConstructMemoryViewOp) and use.operation.memory_space.is_local:
            _, line, _ = location(use.operation)
            space = use.operation.memory_space.kind.data
            place = f"line {line} puts a view of memory space {space}, a scratchpad, at it"
            return f"{place}; give its address there as a number, or correct the space"
    return ""


def _reached(function: Function, values: Sequence[Any]) -> dict[SSAValue, int]:
    """Elements up to the last that is accessed, for arguments whose views are dynamic or begin elsewhere."""
    try:
        seen = coverage(function, values)
    except KtirError:
        return {}
    spans: dict[SSAValue, int] = {}
    for side in (seen.reads, seen.writes):
        for position, accesses in side.items():
            argument = function.op.body.block.args[position]
            spans[argument] = max(spans.get(argument, 0), accesses.reach())
    return spans


def _pointers(function: Function) -> dict[SSAValue, torch.dtype]:
    """Pointers into global memory with the dtype of their views: arguments and literal addresses.

    An address that is computed belongs to its only argument; with several, nothing tells pointer from number.
    """
    found: dict[SSAValue, torch.dtype] = {}
    for op in function.op.walk():
        if isinstance(op, ConstructMemoryViewOp) and not op.memory_space.is_local:
            behind = [v for v in _behind(op.pointer) if isinstance(v, BlockArgument) and _is_argument(v)]
            pointer = behind[0] if len(behind) == 1 else op.pointer
            found.setdefault(pointer, element(op.view.type).dtype)
    return found


def _is_argument(value: BlockArgument) -> bool:
    return isinstance(value.owner.parent_op(), func.FuncOp)


def _behind(value: SSAValue) -> list[SSAValue]:
    """`value` and everything that it is computed from."""
    found = [value]
    for current in found:
        found += [v for v in sources(current) if v not in found]
    return found


def placed_memory(
    function: Function, specs: Sequence[str], generator: torch.Generator
) -> tuple[dict[int, torch.Tensor], dict[int, dict[int, torch.Tensor]]]:
    """Tensors at literal element addresses: of global memory, and of scratchpads by core.

    As `specs` (`ADDRESS=VALUE`, `CORE:ADDRESS=VALUE`) say; random elements elsewhere in global memory.

    Raises:
        BadArgument: a spec is malformed, or a place is given twice.
    """
    placed: dict[int, torch.Tensor] = {}
    local: dict[int, dict[int, torch.Tensor]] = {}
    for spec, (place, text) in zip(specs, _once(specs), strict=True):
        value = _value(place, text, generator)
        match = re.fullmatch(r"(?:([0-9]+):)?([0-9]+)", place)
        if match is None or not isinstance(value, torch.Tensor):
            raise BadArgument(argument=spec, detail="write ADDRESS=f16[12,64] or CORE:ADDRESS=f16[12,64]")
        chosen = placed if match[1] is None else local.setdefault(int(match[1]), {})
        if (address := int(match[2])) in chosen:
            raise BadArgument(argument=spec, detail=f"element address {address} is given more than once")
        chosen[address] = value.contiguous()
    # Views that overlap lie in one buffer: which address is meant is for the text to say.
    dtypes = _pointers(function)
    reach: dict[tuple[torch.dtype, int], int] = {}
    lines: dict[tuple[torch.dtype, int], int] = {}
    for pointer, span in _views(function.op).items():
        owner = pointer.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            key = dtypes[pointer], owner.value.value.data
            reach[key] = max(reach.get(key, 0), key[1] + span)
            lines.setdefault(key, location(owner)[1])
    merged: dict[tuple[torch.dtype, int], int] = {}
    for (dtype, start), end in sorted(reach.items(), key=lambda item: item[0][1]):
        held = next((key for key, last in merged.items() if key[0] == dtype and start < last), (dtype, start))
        merged[held] = max(end, merged.get(held, 0))
    for (dtype, start), end in merged.items():
        if not any(a <= start < a + t.numel() and t.dtype == dtype for a, t in placed.items()):
            within = [a for a, t in placed.items() if start < a < end and t.dtype == dtype]
            if within:
                detail = f"the view at {start} (line {lines[dtype, start]}) reaches over it"
                advice = f"give elements from {start} on instead, or correct the address"
                raise BadArgument(argument=str(min(within)), detail=f"{detail}; {advice}")
            placed.setdefault(start, _random(str(start), (end - start,), dtype, generator))
    return placed, local


def _split(spec: str) -> tuple[str, str]:
    name, separator, value = spec.partition("=")
    if not separator or not name or not value:
        raise BadArgument(argument=spec, detail="write NAME=VALUE")
    return name.removeprefix("%"), value


def _once(specs: Sequence[str]) -> list[tuple[str, str]]:
    """Names and values of `specs`; each name once."""
    pairs = [_split(spec) for spec in specs]
    for name, _ in pairs:
        if len(values := [text for other, text in pairs if other == name]) > 1:
            raise BadArgument(argument=name, detail=f"it is given more than once: {', '.join(values)}")
    return pairs


def _value(name: str, text: str, generator: torch.Generator) -> Any:
    if shaped := re.fullmatch(r"(\w+)\[(.*)\]", text):
        if shaped[1] not in DTYPES:
            raise BadArgument(argument=name, detail=f"no dtype {shaped[1]}; choose from {', '.join(DTYPES)}")
        if not re.fullmatch(r" *([0-9]+( *[,x] *[0-9]+)* *)?", shaped[2]):
            detail = f"[{shaped[2]}] is no shape; write {shaped[1]}[12,64]"
            raise BadArgument(argument=name, detail=detail)
        shape = tuple(int(extent) for extent in re.findall("[0-9]+", shaped[2]))
        return _random(name, shape, DTYPES[shaped[1]], generator)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        pass
    return _load(name, text)


def _load(name: str, path: str) -> Any:
    """What `torch.save` or, in a .npy file, `numpy.save` wrote."""
    try:
        if path.endswith(".npy"):
            return arguments_of([numpy.load(path, allow_pickle=False)])[0]
        return torch.load(path, weights_only=True)
    except FileNotFoundError as error:
        raise BadArgument(argument=name, detail=f"neither number, dtype[shape] nor file: {path}") from error
    except OSError as error:
        detail = f"{path} cannot be read: {error.strerror or error}"
        raise BadArgument(argument=name, detail=detail) from error
    except UnfitArgumentError as error:
        raise BadArgument(argument=name, detail=f"{path} {error}") from error
    except (ValueError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        writer = "numpy.save" if path.endswith(".npy") else "torch.save"
        # The loaders' own words advise to unpickle the file.
        detail = f"{path} holds no numbers as {writer} writes them; it may be damaged"
        raise BadArgument(argument=name, detail=detail) from error


def _random(
    name: str, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Random elements, zeros of an integer type. Raises BadArgument for more than this machine holds."""
    try:
        if dtype.is_floating_point:
            return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)
        return torch.zeros(shape, dtype=dtype)
    except (RuntimeError, OverflowError, TypeError, MemoryError) as error:
        detail = f"{'x'.join(map(str, shape))} elements are more than the memory of this machine"
        raise BadArgument(argument=name, detail=detail) from error


def _views(function: func.FuncOp) -> dict[SSAValue, int]:
    """Elements that the static views of each pointer into global memory span."""
    found: dict[SSAValue, int] = {}
    for op in function.walk():
        if isinstance(op, ConstructMemoryViewOp) and not op.memory_space.is_local:
            sizes, strides = (
                _known(op.static_sizes.get_values(), op.sizes),
                _known(op.static_strides.get_values(), op.strides),
            )
            if sizes is not None and strides is not None and min((*sizes, *strides), default=0) >= 0:
                span = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
                found[op.pointer] = max(span, found.get(op.pointer, 0))
    return found


def _known(static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[int] | None:
    """The numbers of a list of which some are values, where those are constants."""
    values = iter(dynamic)
    found: list[int] = []
    for number in static:
        if number == DYNAMIC_INDEX:
            owner = next(values).owner
            if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
                return None
            number = owner.value.value.data
        found.append(int(number))
    return found
