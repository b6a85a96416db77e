"""Cut a model's configuration down to a few layers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_DEPTH = re.compile(
    r"(^|_)(n_layers?|num_layers|num_hidden_layers|(num_)?(en|de)coder_layers|depth|n(um)?_blocks)$"
)
"""Names under which configurations keep how many layers there are."""

_INDICES = re.compile(r"(layer|attn|block)\w*_(ids|idxs|indices)$")
"""Names of lists that hold positions of layers."""

_DEPTHS = re.compile(r"(^|_)depths$")
"""Names of lists that hold a number of layers per stage."""

_TAKEN = re.compile(r"(^|_)out_indices$")
"""Names of lists of the layers whose outputs the rest of the model takes, each by a part of its own."""


def truncate(native: Any, layers: int) -> None:
    """Cut a configuration, and those nested in it, to `layers` layers each, in place.

    At least one layer of every kind stays, the first of each in their order, so there may be more.
    """
    for part in _parts(native):
        _truncate(part, layers)


def _parts(native: Any) -> Iterator[Any]:
    """A configuration and those nested in it."""
    yield native
    for key in native.sub_configs:
        part = getattr(native, key, None)
        if part is not None and hasattr(part, "sub_configs"):
            yield from _parts(part)


def _truncate(native: Any, layers: int) -> None:
    """Keep `layers` layers, or one of every kind where there are more kinds: the first of each.

    A layer whose output is taken is a kind, too; so is one that has settings of its own.
    """
    stages = [
        name
        for name, value in vars(native).items()
        if _DEPTHS.search(name) and isinstance(value, (list, tuple))
    ]
    for name in stages:
        value = vars(native)[name]
        setattr(native, name, type(value)(min(depth, layers) for depth in value))
    if stages:
        # Here the number of layers is that of stages, and the other lists hold one entry per stage.
        return
    taken = {name: list(value) for name, value in vars(native).items() if _TAKEN.search(name) and value}
    layers = max(layers, *map(len, taken.values()), 1)
    names = sorted({*vars(native), *native.attribute_map})
    counts = {name: getattr(native, name, None) for name in names if _DEPTH.search(name)}
    for total in sorted({n for n in counts.values() if type(n) is int and n > layers}):
        own = _own_settings(native, total)
        kept = _kept_layers(native, total, layers, own)
        if own:
            native.per_layer_config = None
        for name, value in sorted(vars(native).items()):
            # One entry per layer: layer_types and its like.
            if isinstance(value, (list, tuple)) and len(value) == total and name not in taken:
                setattr(native, name, type(value)(value[index] for index in kept))
            elif _INDICES.search(name) and isinstance(value, (list, tuple)):
                setattr(native, name, [kept.index(index) for index in value if index in kept])
        for name, count in counts.items():
            if count == total:
                setattr(native, name, len(kept))
        if own:
            native.per_layer_config = {place: own[index] for place, index in enumerate(kept)}
        for name, indices in taken.items():
            _take(native, name, indices, total, len(kept))


def _take(native: Any, name: str, indices: list[int], total: int, left: int) -> None:
    """Take as many outputs of the first `left` layers as of `total`: the last where `indices` go beyond."""
    stages = getattr(native, "stage_names", None)
    if stages is None:
        if not all(0 <= index < left for index in indices):
            setattr(native, name, list(range(left - len(indices), left)))
    elif len(stages) == total + 1:
        # A backbone counts what comes before its first layer as a stage.
        if not all(0 <= index <= left for index in indices):
            first = [0] if 0 in indices else []
            indices = [*first, *range(left + 1 - (len(indices) - len(first)), left + 1)]
        native.stage_names = stages[: left + 1]
        native.set_output_features_output_indices(out_features=None, out_indices=indices)


def _own_settings(native: Any, total: int) -> list[dict[str, Any]]:
    """What each layer of a configuration sets for itself; empty where all are alike."""
    if not native.is_heterogeneous or len(native.per_layer_config) != total:
        return []
    names = sorted({*native.per_layer_attributes, "skip"})
    return [{name: getattr(layer, name) for name in names} for layer in native.per_layer_config]


def _kept_layers(native: Any, total: int, layers: int, own: list[dict[str, Any]]) -> list[int]:
    stored: list[list[str]] = [[repr(settings) for settings in own]] if own else []
    derived: list[list[str]] = []
    for name in sorted(n for n in dir(native) if not n.startswith("_")):
        try:
            value = getattr(native, name)
        except Exception:
            continue
        if (
            isinstance(value, (list, tuple))
            and len(value) == total
            and all(isinstance(v, str) for v in value)
        ):
            (stored if name in vars(native) else derived).append(list(value))
    if derived and not stored:
        # Derived from the number of layers: only a prefix can be kept, and it must reach the last kind.
        kinds = list(zip(*derived, strict=True))
        return list(range(max(layers, 1 + max(kinds.index(kind) for kind in set(kinds)))))
    kinds = list(zip(*stored, strict=True)) if stored else [("",)] * total
    first = sorted({kinds.index(kind) for kind in kinds})
    others = [index for index in range(total) if index not in first]
    return sorted(first + others[: max(0, layers - len(first))])
