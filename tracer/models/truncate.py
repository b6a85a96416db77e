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
    """Keep `layers` layers, or one of every kind where there are more kinds: the first of each."""
    stages = [
        name
        for name in vars(native)
        if _DEPTHS.search(name) and isinstance(getattr(native, name), (list, tuple))
    ]
    for name in stages:
        value = getattr(native, name)
        setattr(native, name, type(value)(min(depth, layers) for depth in value))
    if stages:
        # Here the number of layers is that of stages, and the other lists hold one entry per stage.
        return
    names = sorted({*vars(native), *native.attribute_map})
    counts = {name: getattr(native, name, None) for name in names if _DEPTH.search(name)}
    for total in sorted({n for n in counts.values() if type(n) is int and n > layers}):
        kept = _kept_layers(native, total, layers)
        for name in sorted(vars(native)):
            value = getattr(native, name)
            # One entry per layer: layer_types and its like.
            if isinstance(value, (list, tuple)) and len(value) == total:
                setattr(native, name, type(value)(value[index] for index in kept))
            elif _INDICES.search(name) and isinstance(value, (list, tuple)):
                setattr(native, name, [kept.index(index) for index in value if index in kept])
        for name, count in counts.items():
            if count == total:
                setattr(native, name, len(kept))


def _kept_layers(native: Any, total: int, layers: int) -> list[int]:
    stored: list[list[str]] = []
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
