"""What `harvest lower` prints: a folder's kernels lowered again, as they were traced or at other values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tracer.emit.pieces import listed
from tracer.emit.read_folder import read_identity, read_kernels
from tracer.report.errors import BadValue, FixedExtents, ShortBlock
from tracer.rewrite.kernel import SpyreKernel
from tracer.rewrite.traced_numbers import traced_numbers
from tracer.validate.call_text import parse_identity


def kernels_at(folder: Path, values: Sequence[str], cores: int | None) -> tuple[SpyreKernel, ...]:
    """The kernels of a folder with the numbers of `values` (`x0_size=24`), launched on `cores` programs.

    A value counts for every kernel that has an integer or a block of that name; what is not given stays as
    it was traced. Raises NoFolder, BadValue, FixedExtents where the text may not hold at another size, and
    ShortBlock.
    """
    kernels = read_kernels(folder)
    names = dict.fromkeys(name for kernel in kernels for name in _numbers(kernel))
    given = dict(_value(text, names) for text in values)
    resized = next((text for text in values if "_size" in text), None)
    numbers = traced_numbers(kernels, parse_identity(read_identity(folder))) if resized else ()
    if numbers:
        raise FixedExtents(value=resized, numbers=listed([*map(str, numbers)]))
    return tuple(_changed(kernel, given, cores) for kernel in kernels)


def _changed(kernel: SpyreKernel, given: Mapping[str, int], cores: int | None) -> SpyreKernel:
    numbers = {**given, "CORES": kernel.grid if cores is None else cores}
    parameters = (
        p if p.type.startswith("*") else replace(p, value=numbers.get(p.name, p.value))
        for p in kernel.parameters
    )
    changed = replace(kernel, parameters=tuple(parameters), grid=numbers["CORES"])
    _check_blocks(changed)
    return changed


def _check_blocks(kernel: SpyreKernel) -> None:
    """That no axis without a loop over its blocks is longer than its block. Raises ShortBlock."""
    values = {p.name: int(p.value) for p in kernel.parameters if not p.type.startswith("*")}
    for name, block in values.items():
        axis = name.removesuffix("_BLOCK").lower()
        size = values.get(f"{axis}_size", 0) if name.endswith("_BLOCK") else 0
        # `tl.cdiv(x0_size, X0_BLOCK)` and `tl.range(0, r0_size, R0_BLOCK)` are the loops there are.
        if size > block and f"{axis}_size, {name})" not in kernel.source:
            power = 1 << (size - 1).bit_length()
            raise ShortBlock(
                kernel=kernel.name, axis=axis, size=size, block=block, axis_block=name, power=power
            )


def _numbers(kernel: SpyreKernel) -> list[str]:
    return [p.name for p in kernel.parameters if not p.type.startswith("*") and p.name != "CORES"]


def _value(text: str, names: Iterable[str]) -> tuple[str, int]:
    name, _, number = text.partition("=")
    # 0 is a stride as well; negative ones no kernel of the tool has.
    if name not in names or not (number.isascii() and number.isdigit()):
        raise BadValue(value=text, names=", ".join(names))
    return name, int(number)
