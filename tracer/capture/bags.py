"""Bags of embeddings without atomics: every bag looks at all indices and takes its own."""

from __future__ import annotations

from typing import Any

import torch

from tracer.capture.contraction import accumulator
from tracer.capture.scattering import MAX_PAIRS

SUM, MEAN, MAX = 0, 1, 2
"""Modes of `aten._embedding_bag`."""


def embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """`aten._embedding_bag_forward_only`: rows of `weight` `[v, d]` reduced over bags of `indices` `[n]`.

    Bag b holds the indices from `offsets[b]` to `offsets[b + 1]` but for `padding_idx`; an empty bag is zero.
    Returns the bags `[b, d]`, the bag of every index `[n]`, the sizes of the bags `[b]`, and the index that
    each maximum came from (`[b, d]` in that mode, else zeros `[b]`).
    """
    count, bags = indices.shape[0], offsets.shape[0] - (1 if include_last_offset else 0)
    if not 0 < count * bags * weight.shape[1] <= MAX_PAIRS:
        return NotImplemented
    place = torch.arange(count, device=indices.device)
    starts = offsets[:bags]
    bag = (starts.unsqueeze(0) <= place.unsqueeze(1)).sum(-1) - 1
    kept = bag.unsqueeze(0) == torch.arange(bags, device=indices.device).unsqueeze(1)
    if padding_idx >= 0:
        kept = kept & (indices != padding_idx)
    size = kept.sum(-1)
    dtype = accumulator(weight.dtype)
    rows = weight[indices].to(dtype).unsqueeze(0)
    if mode == MAX:
        top = torch.where(kept.unsqueeze(-1), rows, float("-inf")).amax(1)
        hit = kept.unsqueeze(-1) & (rows == top.unsqueeze(1))
        first = torch.where(hit, place.unsqueeze(-1), count - 1).amin(1)
        found = torch.where(size.unsqueeze(-1) > 0, top, 0.0)
        origin = torch.where(size.unsqueeze(-1) > 0, indices[first], 0)
        return found.to(weight.dtype), bag.to(indices.dtype), size.to(indices.dtype), origin.to(indices.dtype)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.to(dtype).unsqueeze(-1)
    found = torch.where(kept.unsqueeze(-1), rows, 0.0).sum(1)
    if mode == MEAN:
        found = found / size.clamp(min=1).to(dtype).unsqueeze(-1)
    size = size.to(indices.dtype)
    return found.to(weight.dtype), bag.to(indices.dtype), size, torch.zeros_like(size)
