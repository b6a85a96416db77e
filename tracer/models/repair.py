"""Other inputs for a model that refused some, by what its error says about them.

Nothing here knows a model. The frames of an exception tell which parameter is None on the line that failed,
what the dimensions of an input are called (`batch, frames, bins = x.shape`), and which module failed, with
the number of features or channels that it wants.
"""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import torch

from tracer.models.documented import evaluate, extents
from tracer.models.inputs import PATCHES, Guess, Inputs, Shape, named_size, parameters_of, shapes

_MODULES = 3
"""So many of the innermost modules are asked for their sizes."""

_SHIFT = 8
"""A last dimension shorter than the input's by less than this is the input without a few entries."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_UNPACKED = re.compile(r"^([\w\s,]+),?\s*=\s*(\w+)\.(?:shape|size\(\))$")
_MULTIPLE = re.compile(r"(?:multiple of|divisible by)\D{0,20}(\d+)")


@dataclass(frozen=True)
class _Frame:
    frame: FrameType
    statement: str

    @property
    def values(self) -> dict[str, Any]:
        return self.frame.f_locals


def repairs(made: Inputs, error: BaseException, model: Any, *, batch: int, seq_len: int) -> Iterator[Inputs]:
    """Inputs to try after `made` ended in `error`, the likeliest first; each differs in one input."""
    frames = _frames(error)

    def size(name: str) -> int | None:
        return named_size(model.config, name, batch=batch, seq_len=seq_len)

    parameters = parameters_of(model)
    for name in _missing(made, frames, str(error), parameters):
        for guess in shapes(model, name, parameters[name], batch=batch, seq_len=seq_len):
            yield {**made, name: guess}
    floats = {name: shape for name, (kind, shape) in made.items() if kind == "float"}
    for name, shape in floats.items():
        wanted = [_of_names(texts, size) for texts in _named_dimensions(name, shape, frames, str(error))]
        wanted += _scaled(shape, str(error))
        for new in itertools.chain(filter(None, wanted), _of_modules(shape, frames, batch, seq_len)):
            if new != shape and all(extent > 0 for extent in new):
                changed: Guess = ("float", new)
                yield {**made, name: changed}


def _frames(error: BaseException) -> list[_Frame]:
    """Frames of an exception with the statement that failed in each, the innermost first."""
    found: list[_Frame] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        found.append(_Frame(trace.tb_frame, _statement(trace)))
        trace = trace.tb_next
    return found[::-1]


def _statement(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code
    first, last, *_ = next(itertools.islice(code.co_positions(), trace.tb_lasti // 2, None))
    first = first or trace.tb_lineno
    lines = [linecache.getline(code.co_filename, line) for line in range(first, (last or first) + 1)]
    return " ".join(line.partition("#")[0].strip() for line in lines)


def _missing(made: Inputs, frames: list[_Frame], message: str, parameters: dict[str, Any]) -> list[str]:
    """Parameters of the forward that were None where they were used, or that the message names."""
    none = [
        word
        for frame in frames
        for word in _WORD.findall(frame.statement)
        if word in frame.values and frame.values[word] is None
    ]
    words = [word.lower() for word in _WORD.findall(message)]
    named = [name for name in parameters if name.lower() in words]
    return [
        name
        for name in dict.fromkeys((*none, *named))
        if name in parameters and name not in made and "Tensor" in str(parameters[name].annotation)
    ]


def _named_dimensions(
    name: str, shape: Shape, frames: list[_Frame], message: str
) -> Iterator[tuple[str, ...]]:
    """Names that the line that failed, or the message, gives to the dimensions of an input."""
    if frames and (found := _UNPACKED.match(frames[0].statement)):
        value = frames[0].values.get(found[2])
        if found[2] == name or (isinstance(value, torch.Tensor) and tuple(value.shape) == shape):
            *first, last = (part.strip() for part in found[1].split(",") if part.strip())
            yield (*first, "hidden_size" if last == "_" else last)
    if texts := extents(message):
        yield texts


def _of_names(texts: tuple[str, ...], size: Any) -> Shape | None:
    found = [evaluate(text, size) for text in texts]
    return tuple(1 if extent is None else extent for extent in found)


def _scaled(shape: Shape, message: str) -> Iterator[Shape]:
    """What the message says of sizes: a multiple of something, or too small."""
    for match in _MULTIPLE.findall(message):
        unit = int(match)
        if unit > 0:
            yield (*shape[:-1], -(-shape[-1] // unit) * unit)
    if "too small" in message and len(shape) > 2:
        yield from ((*shape[:-2], shape[-2] * factor, shape[-1] * factor) for factor in (2, 4))


def _of_modules(shape: Shape, frames: list[_Frame], batch: int, seq_len: int) -> Iterator[Shape]:
    """Shapes with the features or channels that the innermost modules take."""
    modules: dict[int, tuple[torch.nn.Module, int | None]] = {}
    for frame in frames:
        module = frame.values.get("self")
        if isinstance(module, torch.nn.Module) and id(module) not in modules and len(modules) < _MODULES:
            modules[id(module)] = module, _last_extent(frame)
    for module, seen in modules.values():
        kernel = getattr(module, "kernel_size", None)
        channels = getattr(module, "in_channels", None)
        if isinstance(kernel, tuple) and type(channels) is int:
            rest = shape[2:] if len(shape) == len(kernel) + 2 else (PATCHES,) * len(kernel)
            yield (shape[0], channels, *rest)
            yield (shape[0], *rest, channels)
        for features in _features(module):
            for last in dict.fromkeys((_undo(shape[-1], seen, features), features)):
                if len(shape) in (2, 3):
                    yield (*shape[:-1], last)
                yield from ((batch, seq_len, last), (PATCHES, last), (batch, PATCHES, last), (batch, last))


def _last_extent(frame: _Frame) -> int | None:
    code = frame.frame.f_code
    for name in code.co_varnames[: code.co_argcount]:
        value = frame.values.get(name)
        if isinstance(value, torch.Tensor) and value.dim():
            return int(value.shape[-1])
    return None


def _features(module: torch.nn.Module) -> list[int]:
    """Extents that a module wants of its input's last dimension."""
    normalized = getattr(module, "normalized_shape", None)
    last = normalized[-1] if isinstance(normalized, tuple) and normalized else None
    found = [getattr(module, "in_features", None), last]
    tensors = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    found += [] if any(found) else [int(tensor.shape[-1]) for tensor in tensors if tensor.dim() in (1, 2)]
    return [n for n in dict.fromkeys(found) if type(n) is int and n > 1]


def _undo(given: int, seen: int | None, wanted: int) -> int:
    """The last extent of an input of which a module then sees `wanted`, where of `given` it sees `seen`."""
    if seen is None or seen <= 0:
        return wanted
    if 0 < given - seen < _SHIFT:
        return wanted + given - seen
    if given > seen and given % seen == 0:
        return wanted * (given // seen)
    if seen > given and seen % given == 0 and wanted % (seen // given) == 0:
        return wanted // (seen // given)
    return wanted
