"""What the worker changes in Triton's interpreter, and why. Imported by the worker only.

Relaxed, because they are rules of a GPU's tensor memory unit and none of Spyre's: that a descriptor's base,
its strides but the last, and the last offset of a tile are multiples of 16 bytes. Nothing else is relaxed.

Corrected, because the interpreter of Triton 3.7.1 computes something that no device does: arithmetic on
bfloat16 (it works on the raw bits, triton issue 11584), float32 to bfloat16 (it truncates where devices
round to nearest even), the dtype of a comparison (it is that of the operands, so that a scalar one cannot be
widened to a tile), libdevice functions (it has none).

Replaced by something equal but faster, proven equal by tests: descriptor loads and stores (the stock ones
build a pointer per element), generic reductions and scans (one element at a time), the repeated patching of
`triton.language` at each call of a helper function, and sums for assertions that are off.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton
import triton.language as tl
import triton.runtime.interpreter as stock

from tracer.validate.errors import MovedInterpreterName
from tracer.validate.interpreter_memory import Memory

_NEEDED = {
    "TensorDescHandle": ("validate", "materialize_pointers"),
    "InterpreterBuilder": (
        "create_descriptor_load", "create_descriptor_store", "create_dot", "cast_impl", "binary_op",
        "unary_op",
    ),
    "ReduceOps": ("generic_reduce", "unravel", "to_tensor"),
    "ScanOps": ("generic_scan",),
    "InterpretedFunction": ("rewrite",),
}  # fmt: skip
_CORRECTED = ("TensorDescHandle", "InterpreterBuilder")
_NEEDED_NAMES = (
    "TensorHandle", "interpreter_builder", "_patch_lang", "_LangPatchScope", "_implicit_cvt", "_get_np_dtype",
)  # fmt: skip


def check_names(module: Any = stock) -> None:
    """Raise MovedInterpreterName unless every private name used here exists."""
    wanted = list(_NEEDED_NAMES) + list(_NEEDED) + [f"{c}.{m}" for c, ms in _NEEDED.items() for m in ms]
    for name in wanted:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None:
            raise MovedInterpreterName(version=triton.__version__, name=name)


def validate(self: Any) -> None:
    """A descriptor's rules without the alignment of base and strides."""
    assert len(self.strides) == self.ndim
    assert len(self.block_shape) == self.ndim
    assert self.ndim >= 1, "descriptor cannot be 0 dimensional"
    assert self.strides[-1].data.item() == 1, "last dim must be contiguous"


def materialize_pointers(self: Any, offsets: Any) -> Any:
    """One pointer per element of a tile, and which of them are inside; without the alignment of the
    offset."""
    assert len(offsets) == self.ndim
    itemsize = self.base.dtype.element_ty.primitive_bitwidth // 8
    pointers = np.broadcast_to(self.base.data, self.block_shape)
    inside = np.ones(self.block_shape, dtype=bool)
    for dim, extent in enumerate(self.block_shape):
        along = [1] * self.ndim
        along[dim] = extent
        offset = (offsets[dim].data + np.arange(extent)).reshape(along)
        pointers = pointers + (itemsize * offset * self.strides[dim].data).astype(np.uint64)
        inside = inside & (offset >= 0) & (offset < self.shape[dim].data)
    return stock.TensorHandle(pointers, self.base.dtype.scalar), inside


class BlockCopies:
    """Descriptor loads and stores as strided copies: zero outside on load, clipped on store."""

    def __init__(self, memory: Callable[[], Memory]):
        self.memory = memory
        self._load = stock.InterpreterBuilder.create_descriptor_load
        self._store = stock.InterpreterBuilder.create_descriptor_store

    def _tile(self, desc: Any, indices: Any) -> tuple[np.ndarray | None, tuple[slice, ...], np.dtype]:
        """The tile's part that is inside the descriptor, and where in the tile it lies."""
        dtype = stock._get_np_dtype(desc.base.dtype.element_ty)
        address = int(desc.base.data.item())
        extents, strides, window = [], [], []
        for dim, block in enumerate(desc.block_shape):
            start = int(indices[dim].data.item())
            low = max(start, 0)
            high = min(start + block, int(desc.shape[dim].data.item()))
            if high <= low:
                return None, (), dtype
            stride = int(desc.strides[dim].data.item()) * dtype.itemsize
            address += low * stride
            extents.append(high - low)
            strides.append(stride)
            window.append(slice(low - start, high - start))
        return self.memory().array(address, extents, strides, dtype), tuple(window), dtype

    def load(self, builder: Any, desc: Any, indices: Any, cache_modifier: Any, eviction_policy: Any) -> Any:
        """As `create_descriptor_load`."""
        if desc.padding != stock._ir.PADDING_OPTION.PAD_ZERO:
            return self._load(builder, desc, indices, cache_modifier, eviction_policy)
        inside, window, dtype = self._tile(desc, indices)
        shape = tuple(desc.block_shape)
        if inside is not None and inside.shape == shape:
            return stock.TensorHandle(np.array(inside, order="C"), desc.base.dtype.element_ty)
        tile = np.zeros(shape, dtype)
        if inside is not None:
            tile[window] = inside
        return stock.TensorHandle(tile, desc.base.dtype.element_ty)

    def store(self, builder: Any, desc: Any, value: Any, indices: Any) -> Any:
        """As `create_descriptor_store`."""
        inside, window, dtype = self._tile(desc, indices)
        data = value.data
        if data.shape != tuple(desc.block_shape) or data.dtype.itemsize != dtype.itemsize:
            return self._store(builder, desc, value, indices)
        if inside is not None:
            inside[...] = data[window].view(dtype) if data.dtype != dtype else data[window]
        return None


def to_float32(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns as float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Bit patterns of float32 values in bfloat16, rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(nan, quiet, rounded).astype(np.uint16).reshape(np.shape(values))


def _cast(original: Callable[..., Any]) -> Callable[..., Any]:
    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        source, target = src.dtype.scalar, dst_type.scalar
        if tl.bfloat16 not in (source, target) or source == target:
            return original(self, src, dst_type)
        data = to_float32(src.data) if source == tl.bfloat16 else src.data
        if target == tl.bfloat16:
            return stock.TensorHandle(to_bfloat16(data.astype(np.float32)), target)
        return stock.TensorHandle(data.astype(stock._get_np_dtype(target)), target)

    return cast_impl


def _on_floats(original: Callable[..., Any]) -> Callable[..., Any]:
    """The same operation with bfloat16 operands as float32, and the result rounded back; a truth is int1."""

    def operation(self: Any, *operands: Any) -> Any:
        *handles, op = operands
        if not any(handle.dtype.scalar == tl.bfloat16 for handle in handles):
            found = original(self, *operands)
            return stock.TensorHandle(found.data, tl.int1) if found.data.dtype == np.bool_ else found
        bitwise = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift)
        if op in bitwise:
            return original(self, *operands)
        result = op(*(to_float32(handle.data) for handle in handles))
        if result.dtype == np.bool_:
            return stock.TensorHandle(result, tl.int1)
        return stock.TensorHandle(to_bfloat16(result), tl.bfloat16)

    return operation


def _dot(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_dot(
        self: Any, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any
    ) -> Any:
        a, b = (
            stock.TensorHandle(to_float32(x.data), tl.float32) if x.dtype.scalar == tl.bfloat16 else x
            for x in (a, b)
        )
        return original(self, a, b, d, input_precision, max_num_imprecise_acc)

    return create_dot


def generic_reduce(self: Any, operands: Any) -> list[Any]:
    """The stock order of combination, for all elements beside the reduced axis at once."""
    whole = self.axis is None
    tensors, axis = self.unravel(operands, self.axis)
    data = [t.handle.data for t in tensors]
    shape = operands[0].handle.data.shape
    partial = [np.take(d, 0, axis=axis) for d in data]
    for i in range(1, data[0].shape[axis]):
        left = [self.to_tensor(p, t.dtype) for p, t in zip(partial, tensors, strict=True)]
        right = [
            self.to_tensor(np.take(d, i, axis=axis), t.dtype) for d, t in zip(data, tensors, strict=True)
        ]
        combined = self.combine_fn.fn(*left, *right)
        combined = combined if isinstance(combined, tuple) else (combined,)
        partial = [
            np.asarray(c.handle.data).reshape(np.shape(p)).astype(p.dtype)
            for c, p in zip(combined, partial, strict=True)
        ]
    results = []
    for value, tensor in zip(partial, tensors, strict=True):
        if self.keep_dims:
            value = np.reshape(value, (1,) * len(shape)) if whole else np.expand_dims(value, axis)
        elif whole:
            value = value.item()
        results.append(self.to_tensor(value, tensor.dtype))
    return results


def generic_scan(self: Any, operands: Any) -> list[Any]:
    """The stock order of combination, for all elements beside the scanned axis at once."""
    axis = self.axis
    data = [t.handle.data for t in operands]
    partial = [np.take(d, 0, axis=axis) for d in data]
    steps = [[p] for p in partial]
    for i in range(1, data[0].shape[axis]):
        left = [self.to_tensor(p, t.dtype) for p, t in zip(partial, operands, strict=True)]
        right = [
            self.to_tensor(np.take(d, i, axis=axis), t.dtype) for d, t in zip(data, operands, strict=True)
        ]
        combined = self.combine_fn.fn(*left, *right)
        combined = combined if isinstance(combined, tuple) else (combined,)
        partial = [
            np.asarray(c.handle.data).reshape(np.shape(p)).astype(p.dtype)
            for c, p in zip(combined, partial, strict=True)
        ]
        for step, value in zip(steps, partial, strict=True):
            step.append(value)
    return [
        self.to_tensor(np.stack(step, axis=axis), t.dtype) for step, t in zip(steps, operands, strict=True)
    ]


def _erfc(values: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erfc, otypes=[values.dtype])(values)


def _round_away(values: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(values) + 0.5), values)


LIBDEVICE: dict[str, Callable[..., np.ndarray]] = {
    "tanh": np.tanh, "log1p": np.log1p, "expm1": np.expm1, "pow": np.power, "atan": np.arctan,
    "atan2": np.arctan2,
    "asin": np.arcsin, "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "tan": np.tan, "erfc": _erfc,
    "fmod": np.fmod, "nearbyint": np.rint, "rint": np.rint, "trunc": np.trunc, "round": _round_away,
    "copysign": np.copysign, "log10": np.log10, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "hypot": np.hypot, "llrint": lambda values: np.rint(values).astype(np.int64),
}  # fmt: skip
"""Functions of libdevice that generated kernels may call."""


def _device_function(op: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        operands = tuple(stock.interpreter_semantic.to_tensor(x) for x in operands)
        if len(operands) == 2:
            left, right = tl.broadcast(*operands, _semantic=stock.interpreter_semantic)
            operands = (left, right)
        result = op(*(x.handle.data for x in operands))
        scalar = tl.int64 if result.dtype == np.int64 else operands[0].dtype
        type_ = operands[0].type
        type_ = type_.with_element_ty(scalar) if type_.is_block() else scalar
        return tl.tensor(stock.TensorHandle(result.astype(stock._get_np_dtype(scalar)), scalar), type_)

    return call


class _PatchOnce:
    """Patches `triton.language` once per launch, where the stock code does so at each call of a helper."""

    def __init__(self) -> None:
        self._original = stock._patch_lang
        self._active = False

    def __call__(self, fn: Any) -> Any:
        return stock._LangPatchScope() if self._active else self._original(fn)

    @contextmanager
    def launch(self) -> Iterator[None]:
        """Everything is patched inside: what kernels name, and what the helpers of Triton's library name."""
        seen = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
        scope = self._original(seen)
        self._active = True
        try:
            yield
        finally:
            self._active = False
            scope.restore()


patch_once = _PatchOnce()


@contextmanager
def corrected() -> Iterator[None]:
    """What is relaxed and corrected, for as long as this is active: for launches in a process that may run
    kernels of its own. Raises MovedInterpreterName.
    """
    from triton.language.extra import libdevice

    check_names()
    touched = [
        *((getattr(stock, owner), name) for owner in _CORRECTED for name in _NEEDED[owner]),
        *((libdevice, name) for name in LIBDEVICE),
    ]
    before = [(owner, name, getattr(owner, name, None)) for owner, name in touched]
    _correct()
    try:
        yield
    finally:
        for owner, name, value in before:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def install(memory: Callable[[], Memory], *, fast: bool = True) -> None:
    """Apply everything to the interpreter of this process; without `fast` only what is relaxed and corrected.

    `memory` gives the memory of the current launch.
    """
    check_names()
    _correct()
    if not fast:
        return
    builder: Any = stock.InterpreterBuilder
    if not stock.interpreter_builder.options.debug:
        # Sums and products of integers are computed again in int64, for an assertion that only debug makes.
        options = dataclasses.replace(stock.interpreter_builder.options, sanitize_overflow=False)
        stock.interpreter_builder.options = options
    stock.ReduceOps.generic_reduce = generic_reduce
    stock.ScanOps.generic_scan = generic_scan
    stock._patch_lang = patch_once
    copies = BlockCopies(memory)
    builder.create_descriptor_load = lambda self, *args: copies.load(self, *args)
    builder.create_descriptor_store = lambda self, *args: copies.store(self, *args)


def _correct() -> None:
    stock.TensorDescHandle.validate = validate
    stock.TensorDescHandle.materialize_pointers = materialize_pointers
    builder: Any = stock.InterpreterBuilder
    builder.cast_impl = _cast(builder.cast_impl)
    builder.binary_op = _on_floats(builder.binary_op)
    builder.unary_op = _on_floats(builder.unary_op)
    builder.create_dot = _dot(builder.create_dot)
    from triton.language.extra import libdevice

    for name, op in LIBDEVICE.items():
        setattr(libdevice, name, _device_function(op))
