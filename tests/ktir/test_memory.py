"""Views, tiles, orders, scratchpads, races: the right value, or a finding with its code and place."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]


def copy(source: str, target: str, shape: str, element: str = "f16") -> str:
    return (
        f"%x = ktdp.load %{source} : <{shape}xindex> -> tensor<{shape}x{element}>\n"
        f"ktdp.store %x, %{target} : tensor<{shape}x{element}>, <{shape}xindex>"
    )


def fails(text: str, args: list[torch.Tensor], code: str, **options: object) -> KtirError:
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run(args, **options)  # type: ignore[arg-type]
    assert code in {d.code for d in error.value.diagnostics}, str(error.value)
    return error.value


@pytest.fixture(name="window")
def _window(function: Text, view: Text, tile: Text) -> Text:
    """Copy a 2x4 window of a 4x8 buffer, at subscripts given, to a 2x4 output."""

    def build(
        subscripts: str, extra: str = "", setup: str = "", order: str | None = None, shape: str = "2x4"
    ) -> str:
        return function(
            "\n".join(
                [
                    "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c2 = arith.constant 2 : index",
                    setup,
                    view("source", "in", "4x8", "f16", extra=extra),
                    view("target", "out", shape, "f16"),
                    tile("a", "source", subscripts, "2x4", "4x8xf16", order),
                    tile("b", "target", "%c0, %c0", shape, f"{shape}xf16"),
                    copy("a", "b", shape),
                ]
            ),
            "%in: index, %out: index",
        )

    return build


SOURCE = torch.arange(32.0).half().reshape(4, 8)


@pytest.mark.parametrize(
    ("subscripts", "row", "column"),
    [
        ("%c1, %c2", 1, 2),
        ("%c1 + %c1, %c0", 2, 0),
        ("%c2 * 1 + 0, %c1 * 3 + 1", 2, 4),
        ("5 floordiv 3, 5 mod 3", 1, 2),
    ],
)
def test_subscripts_are_affine(window: Text, subscripts: str, row: int, column: int) -> None:
    out = Module.parse(window(subscripts)).function().run([SOURCE, torch.zeros(2, 4).half()]).outputs[0]
    assert torch.equal(out, SOURCE[row : row + 2, column : column + 4])


def test_order_transposes_the_tile(window: Text) -> None:
    text = window("%c1, %c2", order="(d0, d1) -> (d1, d0)", shape="4x2")
    out = Module.parse(text).function().run([SOURCE, torch.zeros(4, 2).half()]).outputs[0]
    assert torch.equal(out, SOURCE[1:3, 2:6].T)


def test_order_of_a_cycle_sorts_by_the_image(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("source", "in", "2x2x2", "f16"),
                view("target", "out", "2x2x2", "f16"),
                tile("a", "source", "%c0, %c0, %c0", "2x2x2", "2x2x2xf16", "(d0, d1, d2) -> (d1, d2, d0)"),
                tile("b", "target", "%c0, %c0, %c0", "2x2x2", "2x2x2xf16"),
                copy("a", "b", "2x2x2"),
            ]
        ),
        "%in: index, %out: index",
    )
    x = torch.arange(8.0).half()
    out = Module.parse(text).function().run([x, torch.zeros(8).half()]).outputs[0]
    assert out.tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_a_tile_that_leaves_its_view_is_named(window: Text) -> None:
    text = window("%c0, %c1 * 6")
    error = fails(text, [SOURCE, torch.zeros(2, 4).half()], "KT201")
    (found,) = error.diagnostics
    assert (found.op, found.core, found.coordinates) == ("ktdp.load", 0, (0, 8))
    assert found.line == next(i for i, line in enumerate(text.splitlines(), 1) if "ktdp.load" in line)
    assert "ktdp.load %a" in found.source


def test_the_coordinate_set_bounds_accesses(window: Text) -> None:
    half = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 7 >= 0)>"
    args = [SOURCE, torch.zeros(2, 4).half()]
    assert Module.parse(window("%c0, %c0", half)).function().run(args).outputs
    fails(window("%c1, %c0", half), args, "KT202")


def test_a_set_that_is_no_box_bounds_accesses(window: Text) -> None:
    triangle = "affine_set<(d0, d1) : (d0 >= 0, d1 >= 0, -d0 - d1 + 5 >= 0)>"
    args = [SOURCE, torch.zeros(2, 4).half()]
    assert Module.parse(window("%c0, %c0", triangle)).function().run(args).outputs
    fails(window("%c2, %c0", triangle), args, "KT202")


def test_a_view_wider_than_its_buffer_is_caught_at_the_access(window: Text) -> None:
    short = SOURCE.reshape(-1)[:16].clone()
    args = [short, torch.zeros(2, 4).half()]
    assert Module.parse(window("%c0, %c0")).function().run(args).outputs
    fails(window("%c1, %c0"), args, "KT203")


def test_dtypes_of_arguments_are_checked(window: Text) -> None:
    fails(window("%c0, %c0"), [SOURCE.float(), torch.zeros(2, 4).half()], "KT216")


def test_arguments_are_counted(window: Text) -> None:
    fails(window("%c0, %c0"), [SOURCE], "KT216")


def test_strides_and_offsets_of_tensors(window: Text) -> None:
    wide = torch.arange(100.0).half()
    out = torch.zeros(2, 4).half()
    shifted = wide[5:]
    got = Module.parse(window("%c1, %c2")).function().run([shifted, out]).outputs[0]
    assert torch.equal(got, torch.as_strided(wide, (2, 4), (8, 1), 5 + 8 + 2))
    assert not out.any()


def test_inplace_writes_to_the_argument(window: Text) -> None:
    out = torch.zeros(2, 4).half()
    Module.parse(window("%c1, %c2")).function().run([SOURCE, out], inplace=True)
    assert torch.equal(out, SOURCE[1:3, 2:6])


def test_a_loop_needs_a_positive_step(window: Text) -> None:
    loop = "scf.for %i = %c0 to %c2 step %c0 {\n}"
    fails(window("%c0, %c0", setup=loop), [SOURCE, torch.zeros(2, 4).half()], "KT219")


def row_program(function: Text, view: Text, tile: Text, load: str, store: str, cores: int = 4) -> str:
    return function(
        "\n".join(
            [
                "%core = ktdp.get_compute_tile_id : index",
                "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index",
                view("all", "in", "8", "f16"),
                tile("a", "all", load, "1", "8xf16"),
                tile("b", "all", store, "1", "8xf16"),
                copy("a", "b", "1"),
            ]
        ),
        "%in: index",
        grid=f"[{cores}]",
    )


def test_two_cores_must_not_write_one_element(function: Text, view: Text, tile: Text) -> None:
    error = fails(row_program(function, view, tile, "%core + 4", "%c0"), [torch.zeros(8).half()], "KT205")
    assert error.diagnostics[0].core == 1
    assert error.diagnostics[0].coordinates == (0,)


def test_a_core_must_not_read_what_another_writes(function: Text, view: Text, tile: Text) -> None:
    fails(row_program(function, view, tile, "%core", "%core + 1"), [torch.zeros(8).half()], "KT206")
    fails(row_program(function, view, tile, "%core + 1", "%core"), [torch.zeros(8).half()], "KT206")
    fine = row_program(function, view, tile, "%core", "%core + 4")
    assert Module.parse(fine).function().run([torch.zeros(8).half()]).diagnostics == ()


def test_outputs_declared_uninitialized_must_be_covered(elementwise: Text) -> None:
    x = torch.randn(12, 64).half()
    text = elementwise(12, 64, 4, 2)
    assert Module.parse(text).function().run([x, torch.empty_like(x)], uninitialized=(1,)).outputs
    short = text.replace("%tiles = arith.constant 3", "%tiles = arith.constant 2")
    error = fails(short, [x, torch.empty_like(x)], "KT211", uninitialized=(1,))
    assert error.diagnostics[0].coordinates == (8, 0)


def test_reading_an_uninitialized_output_is_caught(function: Text, view: Text, tile: Text) -> None:
    text = row_program(function, view, tile, "%core", "%core + 4")
    fails(text, [torch.zeros(8).half()], "KT204", uninitialized=(0,))


def test_nan_from_finite_input_names_the_operation(elementwise: Text) -> None:
    body = "%z = arith.subf %x, %x : {t}\n%y = arith.divf %z, %z : {t}"
    x = torch.ones(4, 64).half()
    error = fails(elementwise(4, 64, 4, 1, body), [x, torch.zeros_like(x)], "KT210")
    assert error.diagnostics[0].op == "arith.divf"
    with_inf = x.clone()
    with_inf[0, 0] = torch.inf
    result = Module.parse(elementwise(4, 64, 4, 1, body)).function().run([with_inf, torch.zeros_like(x)])
    assert result.diagnostics == ()


@pytest.mark.parametrize(
    ("columns", "code"), [(128 * 1024, None), (288 * 1024, "KT208"), (360 * 1024, "KT207")]
)
def test_live_tiles_fit_the_scratchpad(elementwise: Text, columns: int, code: str | None) -> None:
    # Three tiles live at once: x, z and w, then w, z and y.
    body = "%z = arith.addf %x, %x : {t}\n%w = arith.mulf %z, %x : {t}\n%y = arith.mulf %w, %z : {t}"
    x = torch.ones(1, columns).half()
    run = Module.parse(elementwise(1, columns, 1, 1, body)).function().run
    result = run([x, torch.zeros_like(x)], check=False)
    assert [d.code for d in result.diagnostics] == ([code] if code else [])


def scratch(function: Text, view: Text, tile: Text, address: int, order: str) -> str:
    space = "#ktdp.memory_space<ct_local>"
    local = view("lx", "where", "4", "f16").replace("#ktdp.memory_space<global>", space)
    steps = {
        "store": "ktdp.store %x, %l : tensor<4xf16>, <4xindex>",
        "clobber": "%again = ktdp.load %a : <4xindex> -> tensor<4xf16>",
        "load": "%y = ktdp.load %l : <4xindex> -> tensor<4xf16>",
    }
    return function(
        "\n".join(
            [
                f"%c0 = arith.constant 0 : index\n%where = arith.constant {address} : index",
                view("source", "in", "4", "f16"),
                view("target", "out", "4", "f16"),
                local,
                tile("a", "source", "%c0", "4", "4xf16"),
                tile("l", "lx", "%c0", "4", "4xf16"),
                tile("b", "target", "%c0", "4", "4xf16"),
                "%x = ktdp.load %a : <4xindex> -> tensor<4xf16>",
                *(steps[s] for s in order.split()),
                "ktdp.store %y, %b : tensor<4xf16>, <4xindex>",
            ]
        ),
        "%in: index, %out: index",
    )


def test_scratchpad_keeps_what_is_stored(function: Text, view: Text, tile: Text) -> None:
    x = torch.arange(4.0).half()
    text = scratch(function, view, tile, 0, "store clobber load")
    assert torch.equal(Module.parse(text).function().run([x, torch.zeros(4).half()]).outputs[0], x)
    other = text.replace("#ktdp.memory_space<ct_local>", "#ktdp.spyre_memory_space<LX>")
    assert torch.equal(Module.parse(other).function().run([x, torch.zeros(4).half()]).outputs[0], x)


def test_scratchpad_is_bounded_and_starts_unwritten(function: Text, view: Text, tile: Text) -> None:
    args = [torch.zeros(4).half(), torch.zeros(4).half()]
    fails(scratch(function, view, tile, 9_000_000, "store load"), args, "KT203")
    fails(scratch(function, view, tile, 64, "load"), args, "KT204")


def test_scratchpad_of_a_core_that_does_not_exist(function: Text, view: Text, tile: Text) -> None:
    text = scratch(function, view, tile, 0, "store load").replace("<ct_local>", "<ct_local, ct_id = 5>")
    fails(text, [torch.zeros(4).half()] * 2, "KT215")


def test_literal_addresses_need_memory(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index\n%p = arith.constant 1024 : index\n%q = arith.constant 2048 : index",
                view("source", "p", "4", "f16"),
                view("target", "q", "4", "f16"),
                tile("a", "source", "%c0", "4", "4xf16"),
                tile("b", "target", "%c0", "4", "4xf16"),
                copy("a", "b", "4"),
            ]
        )
    )
    x, y = torch.arange(4.0).half(), torch.zeros(4).half()
    Module.parse(text).function().run([], memory={1024: x, 2048: y})
    assert torch.equal(x, y)
    fails(text, [], "KT221")
