"""Seven kernels as KTIR text, with inputs and whole-array torch references, for bench_simulator.py.

Every text keeps to what the public text parser reads: no inline subscript arithmetic, no nested constants.
"""

# ruff: noqa: E501
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Kernel:
    """`args(seed)` are positional; `reference(args)` is what argument `output` must hold, in whole-array
    torch.
    """

    name: str
    text: str
    args: Callable[[int], list[Any]]
    reference: Callable[[list[Any]], Tensor]
    output: int
    tolerance: float


def box(shape: tuple[int, ...]) -> str:
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    bounds = ", ".join(f"d{i} >= 0, -d{i} + {n - 1} >= 0" for i, n in enumerate(shape))
    return f"affine_set<({dims}) : ({bounds})>"


def ref(shape: tuple[int, ...], element: str) -> str:
    return f"{'x'.join(map(str, shape))}x{element}"


def view(name: str, pointer: str, shape: tuple[int, ...], element: str = "f16") -> str:
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return (
        f"%{name} = ktdp.construct_memory_view %{pointer}, sizes: {list(shape)}, strides: {strides} "
        f"{{coordinate_set = {box(shape)}, memory_space = #ktdp.memory_space<global>}} : memref<{ref(shape, element)}>"
    )


def load(
    name: str, base: str, at: str, shape: tuple[int, ...], of: tuple[int, ...], element: str = "f16"
) -> str:
    return (
        f"{access(name, base, at, shape, of, element)}\n%{name} = ktdp.load %{name}_tile : "
        f"!ktdp.access_tile<{ref(shape, 'index')}> -> tensor<{ref(shape, element)}>"
    )


def store(
    value: str, base: str, at: str, shape: tuple[int, ...], of: tuple[int, ...], element: str = "f16"
) -> str:
    return (
        f"{access(value + '_out', base, at, shape, of, element)}\nktdp.store %{value}, %{value}_out_tile : "
        f"tensor<{ref(shape, element)}>, !ktdp.access_tile<{ref(shape, 'index')}>"
    )


def access(name: str, base: str, at: str, shape: tuple[int, ...], of: tuple[int, ...], element: str) -> str:
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    return (
        f"%{name}_tile = ktdp.construct_access_tile %{base}[{at}] {{access_tile_order = affine_map<({dims}) -> "
        f"({dims})>, access_tile_set = {box(shape)}}} : memref<{ref(of, element)}> -> "
        f"!ktdp.access_tile<{ref(shape, 'index')}>"
    )


def constants(**values: int) -> str:
    return "\n".join(f"%{name} = arith.constant {value} : index" for name, value in values.items())


def splat(name: str, value: str, shape: tuple[int, ...], element: str) -> str:
    return f"%{name} = arith.constant dense<{value}> : tensor<{ref(shape, element)}>"


def cast(name: str, source: str, shape: tuple[int, ...], old: str, new: str) -> str:
    op = "extf" if old == "f16" else "truncf"
    return f"%{name} = arith.{op} %{source} : tensor<{ref(shape, old)}> to tensor<{ref(shape, new)}>"


def reduce(
    name: str, source: str, init: str, combine: str, rows: int, columns: int, element: str = "f32"
) -> str:
    return (
        f"%{name} = linalg.reduce ins(%{source} : tensor<{ref((rows, columns), element)}>) outs(%{init} : "
        f"tensor<{ref((rows,), element)}>) dimensions = [1] (%{name}_in: {element}, %{name}_acc: {element}) {{\n"
        f"%{name}_next = arith.{combine} %{name}_in, %{name}_acc : {element}\n"
        f"linalg.yield %{name}_next : {element}\n}}\n"
    )


def spread(name: str, source: str, rows: int, columns: int, element: str = "f32") -> str:
    return (
        f"%{name}_empty = tensor.empty() : tensor<{ref((rows, columns), element)}>\n"
        f"%{name} = linalg.broadcast ins(%{source} : tensor<{ref((rows,), element)}>) outs(%{name}_empty : "
        f"tensor<{ref((rows, columns), element)}>) dimensions = [1]\n"
    )


def binary(name: str, op: str, a: str, b: str, shape: tuple[int, ...], element: str = "f32") -> str:
    return f"%{name} = arith.{op} %{a}, %{b} : tensor<{ref(shape, element)}>"


def unary(name: str, op: str, a: str, shape: tuple[int, ...], element: str = "f32") -> str:
    return f"%{name} = math.{op} %{a} : tensor<{ref(shape, element)}>"


def module(name: str, arguments: str, grid: list[int], *lines: str) -> str:
    body = "\n".join(lines)
    return (
        f"module {{\nfunc.func @{name}({', '.join(f'%{a}: index' for a in arguments.split())}) attributes "
        f"{{grid = {grid}}} {{\n{body}\nreturn\n}}\n}}\n"
    )


def half(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).half()


def vector_add() -> Kernel:
    n, tile = 4096, 128
    text = module(
        "vector_add",
        "x y out",
        [32],
        "%core = ktdp.get_compute_tile_id : index",
        constants(size=tile),
        "%at = arith.muli %core, %size : index",
        *(view(f"v{a}", a, (n,)) for a in ("x", "y", "out")),
        load("a", "vx", "%at", (tile,), (n,)),
        load("b", "vy", "%at", (tile,), (n,)),
        binary("c", "addf", "a", "b", (tile,), "f16"),
        store("c", "vout", "%at", (tile,), (n,)),
    )
    return Kernel(
        "vector_add",
        text,
        lambda s: [half(n, seed=s), half(n, seed=s + 1), torch.zeros(n).half()],
        lambda a: a[0] + a[1],
        2,
        0.0,
    )


def rows_loop(rows: int, cores: int, *body: str) -> tuple[str, ...]:
    return (
        "%core = ktdp.get_compute_tile_id : index",
        constants(c0=0, rows=rows, cores=cores),
        "scf.for %row = %core to %rows step %cores {",
        *body,
        "}",
    )


def softmax() -> Kernel:
    rows, columns = 4096, 1024
    whole, tile = (rows, columns), (1, columns)
    text = module(
        "softmax",
        "x out",
        [32],
        view("vx", "x", whole),
        view("vout", "out", whole),
        splat("low", "0xFF800000", (1,), "f32"),
        splat("zero", "0.0", (1,), "f32"),
        *rows_loop(
            rows,
            32,
            load("x16", "vx", "%row, %c0", tile, whole),
            cast("x32", "x16", tile, "f16", "f32"),
            reduce("top", "x32", "low", "maximumf", 1, columns),
            spread("tops", "top", 1, columns),
            binary("shifted", "subf", "x32", "tops", tile),
            unary("powers", "exp", "shifted", tile),
            reduce("total", "powers", "zero", "addf", 1, columns),
            spread("totals", "total", 1, columns),
            binary("shares", "divf", "powers", "totals", tile),
            cast("y", "shares", tile, "f32", "f16"),
            store("y", "vout", "%row, %c0", tile, whole),
        ),
    )
    return Kernel(
        "softmax",
        text,
        lambda s: [half(*whole, seed=s), torch.zeros(whole).half()],
        lambda a: torch.softmax(a[0].float(), 1).half(),
        1,
        1e-3,
    )


def layernorm() -> Kernel:
    rows, columns, epsilon = 1151, 8192, 1e-5
    whole, tile = (rows, columns), (1, columns)
    text = module(
        "layernorm",
        "x w b out",
        [32],
        view("vx", "x", whole),
        view("vw", "w", tile),
        view("vb", "b", tile),
        view("vout", "out", whole),
        constants(zero_row=0),
        load("w16", "vw", "%zero_row, %zero_row", tile, tile),
        load("b16", "vb", "%zero_row, %zero_row", tile, tile),
        cast("w32", "w16", tile, "f16", "f32"),
        cast("b32", "b16", tile, "f16", "f32"),
        splat("zero", "0.0", (1,), "f32"),
        splat("count", f"{float(columns)}", (1,), "f32"),
        splat("epsilon", f"{epsilon:e}", (1,), "f32"),
        *rows_loop(
            rows,
            32,
            load("x16", "vx", "%row, %c0", tile, whole),
            cast("x32", "x16", tile, "f16", "f32"),
            reduce("sum", "x32", "zero", "addf", 1, columns),
            binary("mean", "divf", "sum", "count", (1,)),
            spread("means", "mean", 1, columns),
            binary("centred", "subf", "x32", "means", tile),
            binary("squares", "mulf", "centred", "centred", tile),
            reduce("spread2", "squares", "zero", "addf", 1, columns),
            binary("variance", "divf", "spread2", "count", (1,)),
            binary("shifted", "addf", "variance", "epsilon", (1,)),
            unary("scale", "rsqrt", "shifted", (1,)),
            spread("scales", "scale", 1, columns),
            binary("normal", "mulf", "centred", "scales", tile),
            binary("weighted", "mulf", "normal", "w32", tile),
            binary("biased", "addf", "weighted", "b32", tile),
            cast("y", "biased", tile, "f32", "f16"),
            store("y", "vout", "%row, %c0", tile, whole),
        ),
    )

    def reference(a: list[Any]) -> Tensor:
        x, w, b = a[0].float(), a[1].float().reshape(-1), a[2].float().reshape(-1)
        return torch.nn.functional.layer_norm(x, (columns,), w, b, epsilon).half()

    return Kernel(
        "layernorm",
        text,
        lambda s: [
            half(*whole, seed=s),
            half(*tile, seed=s + 1),
            half(*tile, seed=s + 2),
            torch.zeros(whole).half(),
        ],
        reference,
        3,
        1e-2,
    )


def rmsnorm() -> Kernel:
    rows, columns, epsilon, cores = 256, 4096, 1e-5, 4
    whole, tile = (rows, columns), (1, columns)
    text = module(
        "rmsnorm",
        "x w out",
        [cores],
        view("vx", "x", whole),
        view("vw", "w", tile),
        view("vout", "out", whole),
        constants(zero_row=0),
        load("w16", "vw", "%zero_row, %zero_row", tile, tile),
        cast("w32", "w16", tile, "f16", "f32"),
        splat("zero", "0.0", (1,), "f32"),
        splat("count", f"{float(columns)}", (1,), "f32"),
        splat("epsilon", f"{epsilon:e}", (1,), "f32"),
        *rows_loop(
            rows,
            cores,
            load("x16", "vx", "%row, %c0", tile, whole),
            cast("x32", "x16", tile, "f16", "f32"),
            binary("squares", "mulf", "x32", "x32", tile),
            reduce("sum", "squares", "zero", "addf", 1, columns),
            binary("mean", "divf", "sum", "count", (1,)),
            binary("shifted", "addf", "mean", "epsilon", (1,)),
            unary("scale", "rsqrt", "shifted", (1,)),
            spread("scales", "scale", 1, columns),
            binary("normal", "mulf", "x32", "scales", tile),
            binary("weighted", "mulf", "normal", "w32", tile),
            cast("y", "weighted", tile, "f32", "f16"),
            store("y", "vout", "%row, %c0", tile, whole),
        ),
    )

    def reference(a: list[Any]) -> Tensor:
        x = a[0].float()
        return (x * torch.rsqrt((x * x).mean(1, keepdim=True) + epsilon) * a[1].float()).half()

    return Kernel(
        "rmsnorm",
        text,
        lambda s: [half(*whole, seed=s), half(*tile, seed=s + 1), torch.zeros(whole).half()],
        reference,
        2,
        1e-2,
    )


def matmul() -> Kernel:
    m, k, n, tm, tk, tn = 64, 2048, 8192, 32, 128, 512
    acc = f"tensor<{ref((tm, tn), 'f32')}>"
    text = module(
        "matmul",
        "a b c",
        [2, 16],
        "%pm, %pn = ktdp.get_compute_tile_id : index, index",
        constants(c0=0, size_m=tm, size_n=tn, size_k=tk, extent_k=k),
        "%row = arith.muli %pm, %size_m : index",
        "%column = arith.muli %pn, %size_n : index",
        view("va", "a", (m, k)),
        view("vb", "b", (k, n)),
        view("vc", "c", (m, n)),
        splat("start", "0.0", (tm, tn), "f32"),
        f"%sum = scf.for %at = %c0 to %extent_k step %size_k iter_args(%acc = %start) -> ({acc}) {{",
        load("ta", "va", "%row, %at", (tm, tk), (m, k)),
        load("tb", "vb", "%at, %column", (tk, tn), (k, n)),
        cast("ta32", "ta", (tm, tk), "f16", "f32"),
        cast("tb32", "tb", (tk, tn), "f16", "f32"),
        splat("none", "0.0", (tm, tn), "f32"),
        f"%product = linalg.matmul ins(%ta32, %tb32 : tensor<{ref((tm, tk), 'f32')}>, tensor<{ref((tk, tn), 'f32')}>) "
        f"outs(%none : {acc}) -> {acc}",
        binary("next", "addf", "acc", "product", (tm, tn)),
        f"scf.yield %next : {acc}",
        "}",
        cast("y", "sum", (tm, tn), "f32", "f16"),
        store("y", "vc", "%row, %column", (tm, tn), (m, n)),
    )
    return Kernel(
        "matmul",
        text,
        lambda s: [half(m, k, seed=s), half(k, n, seed=s + 1), torch.zeros(m, n).half()],
        lambda a: (a[0].float() @ a[1].float()).half(),
        2,
        0.2,
    )


def rope() -> Kernel:
    heads, length, width = 40, 4096, 128
    rows, cores, tile_rows = heads * length, 8, 64
    whole, table, tile = (rows, width), (length, width // 2), (tile_rows, width // 2)
    text = module(
        "rope",
        "x cosines sines out",
        [cores],
        "%core = ktdp.get_compute_tile_id : index",
        constants(
            c0=0, middle=width // 2, tiles=rows // tile_rows, cores=cores, size=tile_rows, length=length
        ),
        view("vx", "x", whole),
        view("vcos", "cosines", table),
        view("vsin", "sines", table),
        view("vout", "out", whole),
        "scf.for %tile = %core to %tiles step %cores {",
        "%row = arith.muli %tile, %size : index",
        "%position = arith.remui %row, %length : index",
        load("x1", "vx", "%row, %c0", tile, whole),
        load("x2", "vx", "%row, %middle", tile, whole),
        load("cos", "vcos", "%position, %c0", tile, table),
        load("sin", "vsin", "%position, %c0", tile, table),
        binary("x1c", "mulf", "x1", "cos", tile, "f16"),
        binary("x2s", "mulf", "x2", "sin", tile, "f16"),
        binary("x1s", "mulf", "x1", "sin", tile, "f16"),
        binary("x2c", "mulf", "x2", "cos", tile, "f16"),
        binary("y1", "subf", "x1c", "x2s", tile, "f16"),
        binary("y2", "addf", "x1s", "x2c", tile, "f16"),
        store("y1", "vout", "%row, %c0", tile, whole),
        store("y2", "vout", "%row, %middle", tile, whole),
        "}",
    )

    def args(s: int) -> list[Any]:
        angles = torch.arange(length)[:, None] * 10000.0 ** (-2 * torch.arange(width // 2) / width)
        return [half(*whole, seed=s), angles.cos().half(), angles.sin().half(), torch.zeros(whole).half()]

    def reference(a: list[Any]) -> Tensor:
        x = a[0].reshape(heads, length, width)
        x1, x2 = x[..., : width // 2], x[..., width // 2 :]
        return torch.cat([x1 * a[1] - x2 * a[2], x1 * a[2] + x2 * a[1]], -1).reshape(whole)

    return Kernel("rope", text, args, reference, 3, 1e-2)


def paged_attention() -> Kernel:
    """8 tokens x 32 heads of 128 over 8 key heads, keys in pages of 16 tokens, 8 pages per sequence."""
    tokens, heads, groups, width, pages, page, used = 8, 32, 8, 128, 64, 16, 8
    per, block = heads // groups, 2
    rows, keys = block * per, used * page
    query, cache = (tokens, heads, width), (pages, page, groups, width)
    space = "(d0, d1, d2, d3)"
    tile = (used, page, 1, width)

    def gather(name: str, base: str) -> str:
        index = ref((used,), "i32")
        return (
            f"%{name}_tile = ktdp.construct_indirect_access_tile intermediate_variables(%{name}_p, %{name}_t, "
            f"%{name}_g, %{name}_d) %{base}[ind(%vtable[%{name}_p]), (%{name}_t), (%pg + %{name}_g), (%{name}_d)] "
            f"{{variables_space_order = affine_map<{space} -> {space}>, variables_space_set = {box(tile)}}} : "
            f"memref<{ref(cache, 'f16')}>, memref<{index}> -> !ktdp.access_tile<{ref(tile, 'index')}>\n"
            f"%{name}4 = ktdp.load %{name}_tile : !ktdp.access_tile<{ref(tile, 'index')}> -> tensor<{ref(tile, 'f16')}>\n"
            f"%{name} = tensor.collapse_shape %{name}4 [[0, 1, 2], [3]] : tensor<{ref(tile, 'f16')}> into "
            f"tensor<{ref((keys, width), 'f16')}>"
        )

    q3, q2, s2 = (block, per, width), (rows, width), (rows, keys)
    text = module(
        "paged_attention",
        "query keys values table out",
        [tokens // block, groups],
        "%pt, %pg = ktdp.get_compute_tile_id : index, index",
        constants(c0=0, block=block, per=per),
        "%token = arith.muli %pt, %block : index",
        "%head = arith.muli %pg, %per : index",
        view("vquery", "query", query),
        view("vkeys", "keys", cache),
        view("vvalues", "values", cache),
        view("vtable", "table", (used,), "i32"),
        view("vout", "out", query),
        load("q3", "vquery", "%token, %head, %c0", q3, query),
        f"%q = tensor.collapse_shape %q3 [[0, 1], [2]] : tensor<{ref(q3, 'f16')}> into tensor<{ref(q2, 'f16')}>",
        gather("k", "vkeys"),
        gather("v", "vvalues"),
        f"%kt_empty = tensor.empty() : tensor<{ref((width, keys), 'f16')}>",
        f"%kt = linalg.transpose ins(%k : tensor<{ref((keys, width), 'f16')}>) outs(%kt_empty : "
        f"tensor<{ref((width, keys), 'f16')}>) permutation = [1, 0]\n",
        cast("q32", "q", q2, "f16", "f32"),
        cast("kt32", "kt", (width, keys), "f16", "f32"),
        splat("s0", "0.0", s2, "f32"),
        f"%scores = linalg.matmul ins(%q32, %kt32 : tensor<{ref(q2, 'f32')}>, tensor<{ref((width, keys), 'f32')}>) "
        f"outs(%s0 : tensor<{ref(s2, 'f32')}>) -> tensor<{ref(s2, 'f32')}>",
        splat("factor", f"{1 / math.sqrt(width):.9e}", s2, "f32"),
        binary("scaled", "mulf", "scores", "factor", s2),
        splat("low", "0xFF800000", (rows,), "f32"),
        splat("zero", "0.0", (rows,), "f32"),
        reduce("top", "scaled", "low", "maximumf", rows, keys),
        spread("tops", "top", rows, keys),
        binary("shifted", "subf", "scaled", "tops", s2),
        unary("powers", "exp", "shifted", s2),
        reduce("total", "powers", "zero", "addf", rows, keys),
        spread("totals", "total", rows, keys),
        binary("shares", "divf", "powers", "totals", s2),
        cast("v32", "v", (keys, width), "f16", "f32"),
        splat("o0", "0.0", q2, "f32"),
        f"%mixed = linalg.matmul ins(%shares, %v32 : tensor<{ref(s2, 'f32')}>, tensor<{ref((keys, width), 'f32')}>) "
        f"outs(%o0 : tensor<{ref(q2, 'f32')}>) -> tensor<{ref(q2, 'f32')}>",
        cast("o16", "mixed", q2, "f32", "f16"),
        f"%o = tensor.expand_shape %o16 [[0, 1], [2]] output_shape [{block}, {per}, {width}] : "
        f"tensor<{ref(q2, 'f16')}> into tensor<{ref(q3, 'f16')}>",
        store("o", "vout", "%token, %head, %c0", q3, query),
    )

    def args(s: int) -> list[Any]:
        table = torch.randperm(pages, generator=torch.Generator().manual_seed(s))[:used].int()
        return [
            half(*query, seed=s), half(*cache, seed=s + 1), half(*cache, seed=s + 2), table,
            torch.zeros(query).half(),
        ]  # fmt: skip

    def reference(a: list[Any]) -> Tensor:
        q = a[0].float().reshape(tokens, groups, per, width)
        k, v = (c[a[3].long()].float().reshape(keys, groups, width) for c in a[1:3])
        scores = torch.einsum("tgpd,kgd->tgpk", q, k) / math.sqrt(width)
        return torch.einsum("tgpk,kgd->tgpd", scores.softmax(-1), v).reshape(query).half()

    return Kernel("paged_attention", text, args, reference, 4, 1e-2)


def kernels() -> list[Kernel]:
    return [layernorm(), paged_attention(), matmul(), softmax(), rope(), rmsnorm(), vector_add()]
