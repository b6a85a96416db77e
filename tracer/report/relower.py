"""What `harvest lower` prints: a folder's kernels lowered again, as they were traced or at other values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tracer.report.errors import BadValue
from tracer.rewrite.kernel import SpyreKernel


def at_values(
    kernels: Iterable[SpyreKernel], values: Sequence[str], cores: int | None
) -> tuple[SpyreKernel, ...]:
    """The kernels with the numbers of `values` (`x0_size=24`), launched on `cores` programs.

    A value counts for every kernel that has an integer or a block of that name; what is not given stays as
    it was traced. Raises BadValue.
    """
    kernels = tuple(kernels)
    names = dict.fromkeys(name for kernel in kernels for name in _numbers(kernel))
    given = dict(_value(text, names) for text in values)
    return tuple(_changed(kernel, given, cores) for kernel in kernels)


def _changed(kernel: SpyreKernel, given: Mapping[str, int], cores: int | None) -> SpyreKernel:
    numbers = {**given, "CORES": kernel.grid if cores is None else cores}
    parameters = (
        p if p.type.startswith("*") else replace(p, value=numbers.get(p.name, p.value))
        for p in kernel.parameters
    )
    return replace(kernel, parameters=tuple(parameters), grid=numbers["CORES"])


def _numbers(kernel: SpyreKernel) -> list[str]:
    return [p.name for p in kernel.parameters if not p.type.startswith("*") and p.name != "CORES"]


def _value(text: str, names: Iterable[str]) -> tuple[str, int]:
    name, _, number = text.partition("=")
    # 0 is a stride as well; negative ones no kernel of the tool has.
    if name not in names or not (number.isascii() and number.isdigit()):
        raise BadValue(value=text, names=", ".join(names))
    return name, int(number)
