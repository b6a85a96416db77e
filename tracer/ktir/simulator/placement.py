"""Tensors that a caller places at literal addresses, of global memory and of scratchpads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from tracer.ktir.simulator.arguments import UnfitArgumentError, arguments_of, whole
from tracer.target import SpyreTarget


def placed_globally(memory: object) -> dict[int, Tensor]:
    """Tensors by element address, NumPy arrays as tensors on the same memory: stores show in what was given.

    Raises UnfitArgumentError, whose text is a sentence, for what is no mapping of addresses, for a tensor
    that has no elements in a row, and for two of one dtype that hold one element.
    """
    found = _placed(memory, "memory")
    tensors = sorted(found.items(), key=lambda item: item[0])
    for (a, one), (b, other) in itertools.combinations(tensors, 2):
        if one.dtype == other.dtype and b < a + one.numel():
            last = a + one.numel() - 1
            text = (
                f"memory: the tensor at element {a} reaches to {last}, over the one at {b}; pass one for both"
            )
            raise UnfitArgumentError(text)
    return found


def placed_locally(lx: object, cores: int, target: SpyreTarget) -> dict[int, dict[int, Tensor]]:
    """As `placed_globally`, by core.

    Raises UnfitArgumentError also for a core that is not there, for a tensor that leaves the scratchpad,
    and for two that share bytes.
    """
    found: dict[int, dict[int, Tensor]] = {}
    for core, given in _mapping(lx, "lx", "{core: {address: tensor}}").items():
        core = whole(core, "lx", "core")
        if not 0 <= core < cores:
            raise UnfitArgumentError(f"lx names core {core}, but the cores are 0 to {cores - 1}")
        found[core] = _placed(given, f"lx[{core}]")
        ranges = []
        for address, tensor in found[core].items():
            size = tensor.element_size()
            end = (address + tensor.numel()) * size
            if end > target.lx_bytes:
                held = f"{tensor.numel()} elements of {size} bytes at element {address}"
                raise UnfitArgumentError(f"lx: {held} of core {core} leave {target.lx_bytes} bytes")
            ranges.append((address * size, end, address))
        for (_, end, a), (begin, _, b) in itertools.pairwise(sorted(ranges)):
            if begin < end:
                text = f"the tensors at elements {a} and {b} share bytes {begin} to {end - 1}"
                raise UnfitArgumentError(f"lx[{core}]: {text}; an address counts elements of its own tensor")
    return found


def _placed(given: object, name: str) -> dict[int, Tensor]:
    found: dict[int, Tensor] = {}
    for key, value in _mapping(given, name, "{address: tensor}").items():
        address = whole(key, name, "address")
        if address < 0:
            raise UnfitArgumentError(f"{name}: element address {address} is negative")
        if not isinstance(value, np.ndarray | Tensor):
            raise UnfitArgumentError(f"{name}[{address}]: {type(value).__name__} is no tensor or array")
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            raise UnfitArgumentError(f"{name}[{address}] is a read-only array; pass a copy")
        try:
            (tensor,) = arguments_of([value])
        except UnfitArgumentError as error:
            raise UnfitArgumentError(f"{name}[{address}] {error}") from None
        if not tensor.is_contiguous():
            raise UnfitArgumentError(f"{name}[{address}] is not contiguous; pass a contiguous copy")
        found[address] = tensor.detach().reshape(-1)
    return found


def _mapping(given: object, name: str, form: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise UnfitArgumentError(f"{name}: {type(given).__name__} is no mapping; write {name}={form}")
    return given
