"""The example files of the public simulator, run here, against oracles of our own.

They are not part of this repository: `KTIR_CPU_EXAMPLES=<checkout>/examples` says where they are. The forms
that they use are in the other files of this folder too, in texts of our own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

ROOT = os.environ.get("KTIR_CPU_EXAMPLES", "")
needed = pytest.mark.skipif(not ROOT, reason="KTIR_CPU_EXAMPLES names no folder of the public examples")


@dataclass(frozen=True)
class Case:
    """Arguments by name, and what each stored one must hold (rows of it, where `rows` says so)."""

    args: dict[str, Any]
    want: dict[str, Tensor]
    rtol: float = 1e-2
    atol: float = 1e-2
    memory: dict[int, Tensor] = field(default_factory=dict)
    lx: dict[int, dict[int, Tensor]] = field(default_factory=dict)
    grid: tuple[int, ...] | None = None
    check: bool = True
    """Off where values are right but the file breaks a rule that the run must name: `codes`."""
    codes: frozenset[str] = frozenset()


def randn(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).half()


def uniform(*shape: int, low: float, high: float, seed: int = 0) -> Tensor:
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * (high - low) + low).half()


def zeros(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def vector_add() -> Case:
    x, y = randn(4096, seed=0), randn(4096, seed=1)
    args = {"x_ptr": x, "y_ptr": y, "output_ptr": zeros(4096), "BLOCK_SIZE": 128}
    return Case(args, {"output_ptr": x + y}, 0, 0)


def vector_add_dynamic(n: int) -> Case:
    x, y = randn(n, seed=0).float(), randn(n, seed=1).float()
    args = {"x_ptr": x, "y_ptr": y, "output_ptr": zeros(n, dtype=torch.float32), "n_elements": n}
    return Case(args, {"output_ptr": x + y}, 0, 0)


def indexed_add() -> Case:
    x, y, index = randn(128, 64, 8, 128, seed=0), randn(2, 32, 8, 128, seed=1), torch.tensor([3, 7])
    args = {
        "x_ptr": x,
        "y_ptr": y,
        "index_ptr": index,
        "output_ptr": torch.zeros_like(y),
        "dim1_start": 0,
    }
    return Case(args, {"output_ptr": x[index][:, :32] + y}, 0, 0)


def softmax(rows: int, columns: int, padded: int | None = None, names: bool = True) -> Case:
    x = randn(rows, columns, seed=3)
    if padded is not None:
        x[:, padded:] = -torch.inf
    args = {"output_ptr": torch.zeros_like(x), "input_ptr": x} | ({"n_rows": rows} if names else {})
    return Case(args, {"output_ptr": torch.softmax(x.double(), 1)})


def matmul(m: int, n: int, k: int, blocks: tuple[int, int, int], atol: float) -> Case:
    a, b = randn(m, k, seed=4), randn(k, n, seed=5)
    args = {"a_ptr": a, "b_ptr": b, "c_ptr": zeros(m, n), "K": k}
    args |= dict(zip(("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K"), blocks, strict=True))
    return Case(args, {"c_ptr": a.float() @ b.float()}, 2e-2, atol)


def layernorm() -> Case:
    x = randn(1151, 8192, seed=6)
    w, b = (randn(8192, seed=s).expand(1151, 8192).contiguous() for s in (7, 8))
    args = {"X": x, "Y": torch.zeros_like(x), "W": w, "B": b, "Mean": zeros(1151), "Rstd": zeros(1151)}
    args |= {"N": 8192, "eps": 1e-5, "BLOCK_SIZE": 1024}
    wide = x.double()
    mean, var = wide.mean(1), wide.var(1, unbiased=False)
    rstd = (var + 1e-5).rsqrt()
    y = (wide - mean[:, None]) * rstd[:, None] * w.double() + b.double()
    return Case(args, {"Y": y, "Mean": mean, "Rstd": rstd})


def sdpa_2d() -> Case:
    q, k, v = (randn(32, 64, seed=s) for s in (9, 10, 11))
    want = torch.softmax(q.double() @ k.double().T * 0.125, 1) @ v.double()
    return Case({"q_ptr": q, "k_ptr": k, "v_ptr": v, "output_ptr": zeros(32, 64)}, {"output_ptr": want})


def paged_attention() -> Case:
    query = randn(8, 32, 128, seed=12)
    key, value = (randn(64, 16, 8, 128, seed=s) for s in (13, 14))
    table = torch.randint(0, 64, (1, 16), generator=torch.Generator().manual_seed(15), dtype=torch.int32)
    scale, context = 128**-0.5, 120
    pages = table[0, :8].long()
    k, v = (t[pages].reshape(128, 8, 128).double() for t in (key, value))
    # Four query heads share a key head; token i sees the context and itself.
    scores = torch.einsum("thd,khd->thk", query.double(), k.repeat_interleave(4, 1)) * scale
    late = torch.arange(128)[None, :] > context + torch.arange(8)[:, None]
    weights = torch.softmax(scores.masked_fill(late[:, None, :], -torch.inf), 2)
    want = torch.einsum("thk,khd->thd", weights, v.repeat_interleave(4, 1))
    args = {
        "output_ptr": torch.zeros_like(query),
        "query_ptr": query,
        "key_cache_ptr": key,
        "value_cache_ptr": value,
        "block_tables_ptr": table,
        "cur_batch_start_index": 0,
        "block_table_offset": 0,
        "num_tiles": 8,
        "context_len": context,
        "scale": scale,
    }
    return Case(args, {"output_ptr": want})


def swiglu(rows: int, hidden: int, inner: int, scale: float, atol: float) -> Case:
    x = randn(rows, hidden, seed=16, scale=scale)
    gate, up = (randn(hidden, inner, seed=s, scale=scale) for s in (17, 18))
    down = randn(inner, hidden, seed=19, scale=scale)
    g, u = x.double() @ gate.double(), x.double() @ up.double()
    want = x.double() + (g * torch.sigmoid(g) * u) @ down.double()
    args = {
        "x_ptr": x,
        "w_gate_ptr": gate,
        "w_up_ptr": up,
        "w_down_ptr": down,
        "out_ptr": torch.zeros_like(x),
    }
    return Case(args, {"out_ptr": want}, 5e-2, atol)


def ring(rows: int, groups: int, low: float, iterations: int | None = None) -> Case:
    x = uniform(rows, 128, low=low, high=low + 1, seed=20)
    args = {"in_ptr": x, "out_ptr": zeros(groups, 128)}
    args |= {} if iterations is None else {"n_iters": iterations}
    return Case(args, {"out_ptr": (iterations or 1) * x.double().reshape(groups, -1, 128).sum(1)})


def in_place(n: int, fold: Callable[[Tensor], Tensor]) -> Case:
    x = randn(1, n, seed=21)
    return Case({"arg0": x}, {"arg0": fold(x.double()).expand(1, n)})


def rmsnorm() -> Case:
    x = randn(256, 4096, seed=22)
    w = uniform(4096, low=0.5, high=1.5, seed=23).expand(256, 4096).contiguous()
    wide = x.double()
    want = wide * (wide.pow(2).mean(1, keepdim=True) + 1e-5).rsqrt() * w.double()
    args = {"X": x, "Y": torch.zeros_like(x), "W": w, "N": 4096, "eps": 1e-5, "BLOCK_SIZE": 1024}
    return Case(args, {"Y": want})


def rope() -> Case:
    x = randn(40, 4096, 128, seed=24)
    angle = torch.arange(4096)[:, None] * 10000.0 ** (-torch.arange(64) / 64)
    cos, sin = angle.cos().half(), angle.sin().half()
    left, right = x[..., :64].double(), x[..., 64:].double()
    c, s = cos.double(), sin.double()
    want = torch.cat([left * c - right * s, left * s + right * c], -1).reshape(163840, 128)
    args = {"x_ptr": x.reshape(163840, 128), "cos_ptr": cos, "sin_ptr": sin, "out_ptr": zeros(163840, 128)}
    return Case(args, {"out_ptr": want})


def ksplit() -> Case:
    a, b = randn(1, 8192, seed=25), randn(8192, 128, seed=26)
    return Case(
        {"a_ptr": a, "b_ptr": b, "c_ptr": zeros(1, 128)}, {"c_ptr": a.float() @ b.float()}, 2e-2, 2e-1
    )


def dynamic_copy(s0: int, axis: int) -> Case:
    left, right = randn(64, s0, seed=27), randn(64, s0, seed=28)
    want = torch.cat([left, right], axis)
    args = {"a0_ptr": left, "a1_ptr": right, "b_ptr": torch.zeros_like(want), "s0_in": s0}
    return Case(args, {"b_ptr": want}, 0, 0)


def literal_add(grid: tuple[int, ...]) -> Case:
    """The file names no grid: one core does the first three rows, 32 do all."""
    a, b = randn(96, 64, seed=29), randn(96, 64, seed=30)
    memory = {1024: a, 12288: b, 18432: torch.full((96, 64), 7.0).half()}
    want = torch.full((96, 64), 7.0).half()
    rows = 3 * grid[0]
    want[:rows] = (a + b)[:rows]
    return Case({}, {"18432": want}, 0, 0, memory=memory, grid=grid)


def distributed_copy() -> Case:
    whole = torch.arange(192 * 64).reshape(192, 64).half()
    # The view of core 0 has strides [1, 64]: columns of 32 rows, 64 elements apart.
    columns = zeros(64, 64)
    columns[:, :32] = whole[96:128].T
    lx = {0: {12288: columns}, 1: {16384: whole[128:].contiguous()}}
    memory = {0: whole[:96].contiguous(), 24576: zeros(192, 64)}
    # Both cores of its grid copy all of it, and so write every element twice.
    return Case({}, {"24576": whole}, 0, 0, memory=memory, lx=lx, check=False, codes=frozenset({"KT205"}))


def indirect(scatter: bool) -> Case:
    """Views overlap in the file: one buffer of f16 holds X and Y, one of i32 both index views."""
    data = randn(192 + 4096, seed=31)
    columns = torch.randint(0, 64, (65, 64), generator=torch.Generator().manual_seed(32), dtype=torch.int32)
    memory = {0: data.clone(), 64: columns}
    x = data[:4096].reshape(64, 64)
    rows, cols = columns[:64].long(), columns[1:].long()
    want = data.clone()
    if scatter:
        # The last of several that go to one place stays.
        for m in range(64):
            for k in range(64):
                want[192 + rows[m, k] * 64 + cols[m, k]] = x[m, k]
    else:
        want[192:] = x[rows, cols].flatten()
    return Case({}, {"0": want}, 0, 0, memory=memory)


def paged(write: bool) -> Case:
    """A tile of 16 MiB in a scratchpad of 2: the copy itself is right."""
    # Pages that nobody touches cost no memory.
    pages = torch.empty(10000, 8, 64, 128, dtype=torch.float16)
    table = torch.randperm(10000, generator=torch.Generator().manual_seed(33))[:128].reshape(4, 32).int()
    rows = randn(4, 2048, 8, 128, seed=34)
    gathered = rows.reshape(4, 32, 64, 8, 128).transpose(2, 3)
    codes = frozenset({"KT207"})
    if write:
        memory = {10000000: rows, 30000000: table, 40000000: pages}
        return Case({}, {"pages": gathered}, 0, 0, memory=memory, check=False, codes=codes)
    pages[table.long()] = gathered
    memory = {30000000: pages, 20000000: table, 10000000: torch.zeros_like(rows)}
    return Case({}, {"10000000": rows}, 0, 0, memory=memory, check=False, codes=codes)


CASES: dict[str, Iterable[Callable[[], Case]]] = {
    "triton-ktir/vector_add_ktir.mlir": [vector_add],
    "triton-ktir/vector_add_dynamic_ktir.mlir": [lambda: vector_add_dynamic(1024)],
    "triton-ktir/indexed_add.mlir": [indexed_add],
    "triton-ktir/softmax_fwd_ktir.mlir": [lambda: softmax(4096, 1024, 778)],
    "triton-ktir/matmul_fwd_ktir.mlir": [lambda: matmul(64, 8192, 2048, (32, 512, 128), 2e-1)],
    "triton-ktir/layernorm_fwd_ktir.mlir": [layernorm],
    "triton-ktir/sdpa_2d.mlir": [sdpa_2d],
    "triton-ktir/paged_attention.mlir": [paged_attention],
    "ktir/ffn_swiglu.mlir": [
        lambda: swiglu(1, 64, 128, 1.0, 5e-2),
        lambda: swiglu(1, 64, 128, 0.1, 1e-2),
        lambda: swiglu(1, 64, 128, 0.0, 0.0),
    ],
    "ktir/ffn_swiglu_4core.mlir": [
        lambda: swiglu(4, 256, 1024, 0.1, 1e-2),
        lambda: swiglu(4, 256, 1024, 0.0, 0.0),
    ],
    "ktir/ring_reduce.mlir": [lambda: ring(4, 1, 1.0)],
    "ktir/ring_reduce_inner_loop.mlir": [lambda: ring(4, 1, 0.5, 3)],
    "ktir/reduce_generic.mlir": [lambda: in_place(4, lambda x: x.sum(1, keepdim=True))],
    "ktir/reduce_multiop.mlir": [lambda: in_place(8, lambda x: x.amax(1, keepdim=True))],
    "ktir/scalar_broadcast.mlir": [
        lambda: Case(
            {"in_ptr": torch.tensor([[3.5]]).half(), "out_ptr": zeros(4, 64)},
            {"out_ptr": torch.full((4, 64), 3.5)},
            0,
            0,
        )
    ],
    "ktir/nested_yield.ktir": [
        lambda: Case({"out": zeros(4, dtype=torch.float32)}, {"out": torch.full((4,), 2.0)}, 0, 0)
    ],
    "ktir/softmax_wide.mlir": [lambda: softmax(2, 262144, names=False)],
    "latency/softmax_small.mlir": [lambda: softmax(64, 64)],
    "latency/softmax_small_explicit.mlir": [lambda: softmax(64, 64)],
    "latency/matmul_small.mlir": [lambda: matmul(16, 64, 64, (8, 32, 32), 2e-2)],
    "latency/rmsnorm_4core_4x1.mlir": [rmsnorm],
    "latency/rmsnorm_4core_2x2.mlir": [rmsnorm],
    "latency/rope_fwd_4x2.mlir": [rope],
    "latency/ring_reduce_multi_group.mlir": [lambda: ring(16, 4, 1.0)],
    "sdsc/sdpa_pv_ksplit.mlir": [ksplit],
    "rfc/add-with-control-flow.mlir": [lambda: literal_add((1,)), lambda: literal_add((32,))],
    "rfc/distributed-view-copy.mlir": [distributed_copy],
    "rfc/distributed-view-copy-dynamic.mlir": [lambda: dynamic_copy(16, 1), lambda: dynamic_copy(32, 1)],
    "rfc/distributed-view-copy-rowmerge-dynamic.mlir": [
        lambda: dynamic_copy(16, 0),
        lambda: dynamic_copy(32, 0),
    ],
    "rfc/indirect-access-copy.mlir": [lambda: indirect(scatter=False)],
    "rfc/indirect-scatter.mlir": [lambda: indirect(scatter=True)],
    "rfc/paged-tensor-copy.mlir": [lambda: paged(write=False)],
    "rfc/paged-tensor-write.mlir": [lambda: paged(write=True)],
}


@needed
@pytest.mark.parametrize("file", CASES)
def test_values(file: str) -> None:
    function = Module.parse(Path(ROOT, file)).function()
    for make in CASES[file]:
        case = make()
        args = [case.args[name] for name in function.argument_names]
        options = {"memory": case.memory or None, "lx": case.lx or None, "grid": case.grid}
        result = function.run(args, check=case.check, **options)
        assert {d.code for d in result.errors} == case.codes, "\n".join(map(str, result.diagnostics))
        names = [function.argument_names[i] for i in result.written]
        held = dict(zip(names, result.outputs, strict=True))
        assert set(held) == set(case.args) & set(case.want)
        held |= {str(address): tensor for address, tensor in case.memory.items()}
        if "pages" in case.want:
            pages, table = case.memory[40000000], case.memory[30000000]
            held["pages"] = pages[table.long()]
        for name, want in case.want.items():
            got = held[name].reshape(want.shape)
            torch.testing.assert_close(got.double(), want.double(), rtol=case.rtol, atol=case.atol)


@needed
def test_a_tile_wider_than_a_dynamic_view_is_named() -> None:
    """The file loads 1024 elements whatever `n_elements` says."""
    function = Module.parse(Path(ROOT, "triton-ktir/vector_add_dynamic_ktir.mlir")).function()
    for n in (256, 512):
        with pytest.raises(KtirError) as error:
            function.run(list(vector_add_dynamic(n).args.values()))
        assert error.value.code in ("KT201", "KT202")


@needed
def test_every_file_is_run() -> None:
    files = {str(p.relative_to(ROOT)) for suffix in ("mlir", "ktir") for p in Path(ROOT).rglob(f"*.{suffix}")}
    assert files == set(CASES)


@needed
@pytest.mark.parametrize("file", CASES)
def test_round_trip(file: str) -> None:
    module = parse(Path(ROOT, file).read_text())
    printed = print_module(module)
    again = parse(printed)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == printed
