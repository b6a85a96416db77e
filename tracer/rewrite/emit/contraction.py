"""Text of contractions: a dot per block of the reduced axes, into an accumulator."""

from __future__ import annotations

from tracer.rewrite.axes import Axis
from tracer.rewrite.contract import Contraction, contraction
from tracer.rewrite.emit.tiles import Tiles
from tracer.rewrite.ir import Reduce


def accumulator_name(tiles: Tiles, reduction: Reduce) -> str:
    """What a dot accumulates into: its own value, or `acc` where that has other dims."""
    name = reduction.name
    if _arranged(tiles, reduction, name) == name:
        return name
    dots = [s for s in tiles.kernel.body if isinstance(s, Reduce) and s.kind == "dot"]
    return "acc" if len(dots) == 1 else f"acc_{name}"


def accumulator_text(tiles: Tiles, reduction: Reduce) -> str:
    """The zero that a dot accumulates into."""
    return f"tl.zeros({tiles.shape(_result_dims(tiles, _roles(tiles, reduction)))}, tl.float32)"


def dot_text(tiles: Tiles, reduction: Reduce) -> str:
    """One block's contribution added to the accumulator."""
    roles = _roles(tiles, reduction)
    batch = _batch(tiles, roles)
    m, n, k = (_role_axis(tiles, role) for role in (roles.m, roles.n, roles.k))
    left, right = (str(arg) for arg in reduction.args)
    a = tiles.arrange(left, tiles.tile_of(left), (*batch, m, k))
    b = tiles.arrange(right, tiles.tile_of(right), (*batch, k, n))
    a = _masked(tiles, left, a, reduction, ["None"] * (len(batch) + 1) + [":"])
    b = _masked(tiles, right, b, reduction, ["None"] * len(batch) + [":", "None"])
    return f'tl.dot({a}, {b}, {accumulator_name(tiles, reduction)}, input_precision="ieee")'


def _masked(tiles: Tiles, name: str, text: str, reduction: Reduce, index: list[str]) -> str:
    """An operand whose padding along k is not zero, made zero there: zero times an infinity is no zero."""
    unsafe = [axis for axis in tiles.unsafe(reduction) if axis not in tiles.zero[name]]
    if not unsafe:
        return text
    masks = " & ".join(f"{axis.name}_mask[{', '.join(index)}]" for axis in unsafe)
    return f"tl.where({masks}, {text}, 0.0)"


def result_text(tiles: Tiles, reduction: Reduce) -> str:
    """The finished accumulator as the tile of its value."""
    return _arranged(tiles, reduction, accumulator_name(tiles, reduction))


def _arranged(tiles: Tiles, reduction: Reduce, text: str) -> str:
    want = tiles.tile_of(reduction.name)
    if not want:
        return f"tl.sum({text})"
    return tiles.arrange(text, _result_dims(tiles, _roles(tiles, reduction)), want)


def _roles(tiles: Tiles, reduction: Reduce) -> Contraction:
    return contraction(reduction, tiles.varies, tiles.axes)


def _role_axis(tiles: Tiles, axes: tuple[Axis, ...]) -> Axis | None:
    """The one axis of a role that has a block above 1 (the others add nothing to the tile)."""
    return next((a for a in axes if tiles.blocks[a] > 1), axes[0] if axes else None)


def _batch(tiles: Tiles, roles: Contraction) -> tuple[Axis | None, ...]:
    return (_role_axis(tiles, roles.batch),) if roles.batch else ()


def _result_dims(tiles: Tiles, roles: Contraction) -> tuple[Axis | None, ...]:
    return (*_batch(tiles, roles), _role_axis(tiles, roles.m), _role_axis(tiles, roles.n))
