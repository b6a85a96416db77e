"""Other problem sizes for an op: every extent scaled the same way wherever it occurs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from tracer.models.op_call import OpCall, TensorSpec, Value, leaves, map_values
from tracer.validate.stage import Stage

_LIKE_A_SIZE = 8
"""An integer argument below this may well be a dim, a count or a flag; from here on it is taken for a
size."""


@dataclasses.dataclass(frozen=True)
class AxisRange:
    """What a committed kernel does with one axis: extent at the traced size, block, and whether it is
    reduced."""

    extent: int
    block: int
    reduced: bool
    looped: bool = False


def axes_of(stages: Sequence[Stage], source: str = "") -> list[AxisRange]:
    """The axes of all stages, from their arguments `x0_size` and their blocks `X0_BLOCK`.

    `source` tells which reductions loop over blocks; the others hold theirs in one.
    """
    found = []
    for stage in stages:
        for name, value in stage.args.items():
            axis = name.removesuffix("_size")
            if (
                axis != name
                and isinstance(value, int)
                and axis[:1] in ("x", "y", "z", "r")
                and axis[1:].isdigit()
            ):
                block = stage.constexpr.get(f"{axis.upper()}_BLOCK", 1)
                looped = f"tl.range(0, {axis}_size," in source
                found.append(AxisRange(value, block, axis.startswith("r"), looped))
    return found


def scalings(
    call: OpCall, stages: Sequence[Stage], multiples: Sequence[int] = (1, 8), source: str = ""
) -> Iterator[tuple[dict[int, int], OpCall]]:
    """Calls of the same op at other sizes, the most thorough scaling first, with old -> new extents.

    First all extents change, to a few ragged tiles each, then those that no block holds keep their ratios,
    because a kernel may hold one as a number (a resize), and then all are multiples of 8 (of `multiples`);
    then some extents stay as they are, reduced ones first, because it may hold those (a mean's divisor).
    """
    axes = axes_of(stages, source)
    extents = sorted({n for spec in call.tensors for n in spec.shape if n > 1})
    sizes = sorted({n for n in _integers(call) if n >= _LIKE_A_SIZE} | _listed(call))
    values = sorted(set(extents) | set(sizes))
    products = _products(set(extents), set(sizes))
    seen: set[str] = set()
    for count, chosen in enumerate(_choices(values, axes)):
        for position, multiple in enumerate(multiples):
            mapping = _mapping(chosen, values, axes, multiple, products)
            tries = [(mapping, smallest) for smallest in (2, _LIKE_A_SIZE, 1 << 62)]
            if count == position == 0:
                tries += [
                    (_mapping(chosen, values, axes, multiple, products, kept), _LIKE_A_SIZE)
                    for kept in _ratios(values, axes, multiple)
                ]
            for changes, smallest in tries:
                changed = _apply(call, changes, smallest)
                if changed.identity != call.identity and changed.identity not in seen:
                    seen.add(changed.identity)
                    yield changes, changed


def proportional(call: OpCall) -> Iterator[tuple[dict[int, int], OpCall]]:
    """The call with every multiple of 4 cut to three quarters.

    What divides another extent (heads, groups) still does, quotients stay, and what one block holds still
    fits it.
    """
    extents = {n for spec in call.tensors for n in spec.shape}
    sizes = {n for n in _integers(call) if n >= _LIKE_A_SIZE} | _listed(call)
    mapping = {n: n // 4 * 3 for n in sorted(extents | sizes) if n > 4 and n % 4 == 0}
    changed = _apply(call, mapping, _LIKE_A_SIZE)
    if changed.identity != call.identity:
        yield mapping, changed


def rescaled(spec: TensorSpec, mapping: Mapping[int, int]) -> TensorSpec:
    """`spec` with its extents mapped: strides in the same order, gaps in the same proportion, offset as it
    is."""
    shape = tuple(mapping.get(n, n) if n > 1 else n for n in spec.shape)
    stride = list(spec.stride)
    before, after = 1, 1
    for dim in sorted(range(len(shape)), key=lambda d: (spec.stride[d], spec.shape[d])):
        old = spec.stride[dim]
        if old == 0:
            continue
        if old % before == 0:
            stride[dim] = after * (old // before)
        if spec.shape[dim] > 1:
            before, after = old * spec.shape[dim], stride[dim] * shape[dim]
    return dataclasses.replace(spec, shape=shape, stride=tuple(stride))


def _choices(values: Sequence[int], axes: Sequence[AxisRange]) -> Iterator[tuple[int, ...]]:
    """Which values to change: all, all but the reduced ones, all but one or two, one alone."""
    reduced = {axis.extent for axis in axes if axis.reduced}
    yield tuple(values)
    yield tuple(v for v in values if v not in reduced)
    for dropped in (1, 2):
        yield from itertools.combinations(values, max(0, len(values) - dropped))
    for value in values:
        yield (value,)


def _mapping(
    chosen: Sequence[int],
    values: Sequence[int],
    axes: Sequence[AxisRange],
    multiple: int,
    products: Mapping[int, tuple[int, ...]],
    fixed: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Old -> new extents: those of `fixed`, a target for the others that are `chosen`, and their products."""
    mapping = dict(fixed or {})
    for value in chosen:
        if value in products or value in mapping:
            continue
        new = _target(value, values, axes, mapping)
        new = -(-new // multiple) * multiple
        while new == value or new in mapping.values() or (new in values and new not in chosen):
            new += multiple if multiple > 1 else 2
        mapping[value] = new
    for value, factors in products.items():
        if any(factor in mapping for factor in factors):
            mapping[value] = math.prod(mapping.get(factor, factor) for factor in factors)
    return mapping


def _ratios(values: Sequence[int], axes: Sequence[AxisRange], multiple: int) -> Iterator[dict[int, int]]:
    """Extents of axes that are looped over one by one, and sizes, divided by what divides all of them.

    Their ratios stay, and in the second place what is even stays even.
    """
    blocked = {axis.extent for axis in axes if axis.block > 1}
    free = [value for value in values if value >= _LIKE_A_SIZE and value not in blocked]
    common = math.gcd(*free)
    for factor in (multiple, 2 * multiple):
        if len(free) > 1 and common > 1 and factor != common:
            yield {value: value // common * factor for value in free}


def _products(extents: set[int], sizes: set[int]) -> dict[int, tuple[int, ...]]:
    """Extents that an argument splits, or that it merges: 4096 = 32 * 128 in a reshape, with the factors."""
    found: dict[int, tuple[int, ...]] = {}
    for whole, parts in ((sizes - extents, extents - sizes), (extents - sizes, sizes - extents)):
        for value in sorted(whole):
            for count in (2, 3):
                for factors in itertools.combinations_with_replacement(sorted(parts), count):
                    if math.prod(factors) == value:
                        found.setdefault(value, factors)
    return found


def _target(value: int, values: Sequence[int], axes: Sequence[AxisRange], mapping: Mapping[int, int]) -> int:
    """A small extent in place of `value`: two and a half tiles of the axis that it is, where it is one.

    `mapping` has the extents smaller than `value` already.
    """
    own = [axis for axis in axes if axis.extent == value]
    for axis in sorted(own, key=lambda a: (not a.reduced, -a.block)):
        block = axis.block
        if axis.reduced and not axis.looped:
            # One block holds the whole reduction, and has to at the other size.
            return max(2, block // 2 + block // 4 + 1 if block > 4 else block - 1)
        if block == 1:
            return 3 if value != 3 else 5
        # A loop over blocks has to turn at the other size, even where it does not at the traced one.
        whole = 2 if block < value or axis.looped else 1
        return whole * block + max(1, (block // 2 - 1) | 1)
    part = [axis for axis in axes if axis.extent % value == 0]
    if not part:
        return 3 if value < _LIKE_A_SIZE else 37
    # Several extents were merged into this axis: the largest of them makes up its tiles.
    axis = max(part, key=lambda a: a.block)
    rest, others = axis.extent // value, 1
    if value < max((v for v in values if axis.extent % v == 0), default=value):
        return 3
    for other in sorted(values, reverse=True):
        while other != value and rest > 1 and rest % other == 0:
            rest //= other
            others *= mapping.get(other, other)
    if axis.reduced and not axis.looped:
        new = max(2, (axis.block - 1) // (others * rest))
        return new if new != value else max(2, new - 1)
    return max(3, -(-5 * axis.block // (2 * others * rest)))


def _apply(call: OpCall, mapping: Mapping[int, int], smallest: int) -> OpCall:
    """The call with its tensors rescaled, and its integer arguments from `smallest` on mapped too."""

    def change(value: Value) -> Value:
        if isinstance(value, int) and not isinstance(value, bool) and value >= smallest:
            return mapping.get(value, value)
        return value

    return dataclasses.replace(
        call,
        tensors=tuple(rescaled(spec, mapping) for spec in call.tensors),
        args=tuple(map_values(value, change) for value in call.args),
        kwargs=tuple((key, map_values(value, change)) for key, value in call.kwargs),
    )


def _integers(call: OpCall) -> Iterator[int]:
    for value in [*call.args, *(value for _, value in call.kwargs)]:
        for leaf in leaves(value):
            if isinstance(leaf, int) and not isinstance(leaf, bool):
                yield leaf


def _listed(call: OpCall) -> set[int]:
    """Integers of a shape argument: a list or tuple in which a size occurs."""
    found: set[int] = set()
    for value in [*call.args, *(value for _, value in call.kwargs)]:
        inside = [v for v in leaves(value) if isinstance(v, int) and not isinstance(v, bool)]
        if isinstance(value, (tuple, list)) and any(v >= _LIKE_A_SIZE for v in inside):
            found |= {v for v in inside if v > 1}
    return found
