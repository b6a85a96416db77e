"""KTIR texts that several tests run, as fixtures that return builders."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
from exact import Bench


def elementwise(
    rows: int, columns: int, tile: int, cores: int, body: str = "%y = arith.addf %x, %x : {t}"
) -> str:
    """Rows of `columns` f16, `tile` rows at a time, dealt to `cores`."""
    assert rows % tile == 0
    shape = f"tensor<{tile}x{columns}xf16>"
    box = f"(d0, d1) : (d0 >= 0, -d0 + {tile - 1} >= 0, d1 >= 0, -d1 + {columns - 1} >= 0)"
    whole = f"(d0, d1) : (d0 >= 0, -d0 + {rows - 1} >= 0, d1 >= 0, -d1 + {columns - 1} >= 0)"
    view = f"memref<{rows}x{columns}xf16>"
    space = "#ktdp.memory_space<global>"

    def construct(name: str, pointer: str) -> str:
        return (
            f"%{name} = ktdp.construct_memory_view %{pointer}, sizes: [{rows}, {columns}], "
            f"strides: [{columns}, 1] {{coordinate_set = affine_set<{whole}>, memory_space = {space}}} : {view}"
        )

    def access(name: str, base: str) -> str:
        return (
            f"%{name} = ktdp.construct_access_tile %{base}[%row, %c0] {{access_tile_order = "
            f"affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<{box}>}} : {view} -> "
            f"!ktdp.access_tile<{tile}x{columns}xindex>"
        )

    return f"""module {{
  func.func @kernel(%in: index, %out: index) attributes {{grid = [{cores}]}} {{
    %core = ktdp.get_compute_tile_id : index
    %c0 = arith.constant 0 : index
    %tiles = arith.constant {rows // tile} : index
    %cores = arith.constant {cores} : index
    %extent = arith.constant {tile} : index
    {construct("source", "in")}
    {construct("target", "out")}
    scf.for %t = %core to %tiles step %cores {{
      %row = arith.muli %t, %extent : index
      {access("a", "source")}
      %x = ktdp.load %a : !ktdp.access_tile<{tile}x{columns}xindex> -> {shape}
      {body.format(t=shape)}
      {access("out_tile", "target")}
      ktdp.store %y, %out_tile : {shape}, !ktdp.access_tile<{tile}x{columns}xindex>
    }}
    return
  }}
}}
"""


@pytest.fixture(name="elementwise")
def _elementwise() -> Callable[..., str]:
    return elementwise


def view(
    name: str, pointer: str, shape: str, element: str, strides: str | None = None, extra: str = ""
) -> str:
    """`construct_memory_view` of a whole static buffer; `shape` is like `4x8`."""
    sizes = [int(d) for d in shape.split("x")]
    steps = strides or ", ".join(str(_product(sizes[i + 1 :])) for i in range(len(sizes)))
    dims = ", ".join(f"d{i}" for i in range(len(sizes)))
    bounds = ", ".join(f"d{i} >= 0, -d{i} + {n - 1} >= 0" for i, n in enumerate(sizes))
    coordinates = extra or f"affine_set<({dims}) : ({bounds})>"
    return (
        f"%{name} = ktdp.construct_memory_view %{pointer}, sizes: {sizes}, strides: [{steps}] {{coordinate_set = "
        f"{coordinates}, memory_space = #ktdp.memory_space<global>}} : memref<{shape}x{element}>"
    )


def tile(name: str, base: str, subscripts: str, shape: str, base_type: str, order: str | None = None) -> str:
    """`construct_access_tile` of a box; `base_type` is like `4x8xf16`, `order` like `(d0, d1) -> (d1, d0)`."""
    sizes = [int(d) for d in shape.split("x")]
    dims = ", ".join(f"d{i}" for i in range(len(sizes)))
    bounds = ", ".join(f"d{i} >= 0, -d{i} + {n - 1} >= 0" for i, n in enumerate(sizes))
    order = order or f"({dims}) -> ({dims})"
    results = [int(d.strip()[1:]) for d in order.split("->")[1].strip("() ").split(",")]
    declared = "x".join(str(sizes[i]) for i in results)
    return (
        f"%{name} = ktdp.construct_access_tile %{base}[{subscripts}] {{access_tile_order = affine_map<{order}>, "
        f"access_tile_set = affine_set<({dims}) : ({bounds})>}} : memref<{base_type}> -> "
        f"!ktdp.access_tile<{declared}xindex>"
    )


def _product(values: list[int]) -> int:
    total = 1
    for value in values:
        total *= value
    return total


def function(body: str, args: str = "", grid: str = "[1]", header: str = "") -> str:
    """A module with one function of that body."""
    return f"{header}\nmodule {{\n  func.func @kernel({args}) attributes {{grid = {grid}}} {{\n{body}\n    return\n  }}\n}}\n"


def through(body: str, n: int, source: str, target: str, header: str = "") -> str:
    """Load `%x` (n elements) from argument 0, run `body`, store `%y` to argument 1."""
    return function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("source", "in", str(n), source),
                view("target", "out", str(n), target),
                tile("in_tile", "source", "%c0", str(n), f"{n}x{source}"),
                f"%x = ktdp.load %in_tile : <{n}xindex> -> tensor<{n}x{source}>",
                body,
                tile("out_tile", "target", "%c0", str(n), f"{n}x{target}"),
                f"ktdp.store %y, %out_tile : tensor<{n}x{target}>, <{n}xindex>",
            ]
        ),
        "%in: index, %out: index",
        header=header,
    )


@pytest.fixture(name="view")
def _view() -> Callable[..., str]:
    return view


@pytest.fixture(name="tile")
def _tile() -> Callable[..., str]:
    return tile


@pytest.fixture(name="function")
def _function() -> Callable[..., str]:
    return function


@pytest.fixture(name="through")
def _through() -> Callable[..., str]:
    return through


@pytest.fixture(name="bench", params=["tile", "scalar"])
def _bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(function, view, tile, request.param == "scalar")


@pytest.fixture(name="tiles_bench")
def _tiles_bench() -> Bench:
    return Bench(function, view, tile, False)
