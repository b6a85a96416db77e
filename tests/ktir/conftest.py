"""KTIR texts that several tests run, as fixtures that return builders."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def elementwise(rows: int, columns: int, tile: int, cores: int, body: str = "%y = arith.addf %x, %x : {t}") -> str:
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
      {access("b", "target")}
      ktdp.store %y, %b : {shape}, !ktdp.access_tile<{tile}x{columns}xindex>
    }}
    return
  }}
}}
"""


@pytest.fixture(name="elementwise")
def _elementwise() -> Callable[..., str]:
    return elementwise
