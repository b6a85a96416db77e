"""Triton's dtype names and its promotion rule, as far as Inductor's kernels use it."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.rewrite.ir import Const, Operand

BYTES = {
    "int1": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
    "uint64": 8,
    "float8e4nv": 1, "float8e5": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip

# Pointer spelling in a Triton signature. Booleans lie in memory as bytes.
POINTER = {
    "int1": "*i8", "int8": "*i8", "uint8": "*u8", "int16": "*i16", "uint16": "*u16", "int32": "*i32",
    "uint32": "*u32", "int64": "*i64", "uint64": "*u64", "float8e4nv": "*fp8e4nv", "float8e5": "*fp8e5",
    "float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64",
}  # fmt: skip

_FROM_TORCH = {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
_RANK = list(BYTES)


def from_torch(dtype: str) -> str:
    """Triton's name of a PyTorch dtype (`bool` -> `int1`)."""
    name = dtype.removeprefix("torch.")
    return _FROM_TORCH.get(name, name)


def triton_dtype(spelling: str) -> str:
    """`tl.float32` -> `float32`."""
    return spelling.removeprefix("tl.")


def is_float(dtype: str) -> bool:
    """Whether values of `dtype` are floating point."""
    return "float" in dtype


def memory_dtype(dtype: str) -> str:
    """Dtype of the value as it lies in memory."""
    return "int8" if dtype == "int1" else dtype


def promote(args: Sequence[Operand], dtypes: Sequence[str]) -> str:
    """Result dtype of a binary op: literals are weak, floats beat integers, wider beats narrower."""
    strong = [d for a, d in zip(args, dtypes, strict=True) if not isinstance(a, Const)] or list(dtypes)
    weak_float = any(is_float(d) for a, d in zip(args, dtypes, strict=True) if isinstance(a, Const))
    best = max(strong, key=_RANK.index)
    if best == "int1":  # a literal integer widens a boolean
        best = max([best, *(d for d in dtypes if not is_float(d))], key=_RANK.index)
    if {"float16", "bfloat16"} <= set(strong):
        return "float32"
    return best if is_float(best) or not weak_float else "float32"
