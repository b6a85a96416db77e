"""Recurrent layers by their functional decompositions: the kernels in C++ work in place, or call oneDNN."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten

PACKETS: dict[Any, Any] = {
    torch.gru: aten.gru,
    torch.lstm: aten.lstm,
    torch.rnn_relu: aten.rnn_relu,
    torch.rnn_tanh: aten.rnn_tanh,
}
"""Functions of PyTorch, and the ATen ops they call."""


class FunctionalLayers(TorchFunctionMode):
    """Inside, recurrent layers run by the decompositions that PyTorch registers for their ATen ops."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run `func`, or the decomposition of the overload of its op that takes these arguments."""
        from torch._decomp import decomposition_table

        kwargs = kwargs or {}
        packet = PACKETS.get(func)
        if packet is None:
            return func(*args, **kwargs)
        # A packed sequence takes (data, batch_sizes, ...), an ordinary one (input, hx, ...).
        packed = isinstance(args[3], list | tuple)
        return decomposition_table[packet.data if packed else packet.input](*args, **kwargs)
