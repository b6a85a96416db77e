"""Forms that other tools read wrong without a word: the right value here, or a diagnostic."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.rules.verifier import verify
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse

Text = Callable[..., str]
X = torch.tensor([1.0, 2.0, 3.0, 4.0])


def result(text: str, *args: Any, **options: Any) -> Any:
    return Module.parse(text).function().run(args or (X, torch.zeros(4)), **options).outputs[0].tolist()


def refused(text: str, *args: Any, **options: Any) -> KtirError:
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run(args or (X, torch.zeros(4)), **options)
    return error.value


PAIR = "%c1 = arith.constant 1 : index\n%r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<4xf32>, tensor<4xf32>) {\nscf.yield %a, %b : tensor<4xf32>, tensor<4xf32>\n}\n"
INDICES = "%c2 = arith.constant 2 : index\n%n:2 = scf.for %i = %c0 to %c2 step %c2 iter_args(%a = %c2, %b = %c0) -> (index, index) {\nscf.yield %b, %a : index, index\n}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # one of several results as an operand of every kind of operation
        (PAIR + "%z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<f32>\n%f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>\n%s = linalg.reduce { arith.addf } ins(%r#0 : tensor<4xf32>) outs(%f : tensor<f32>) dimensions = [0]\n%v = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %v : tensor<4xf32>", [10.0] * 4),
        (PAIR + "%v = tensor.extract %r#1[%c1] : tensor<4xf32>\n%y = tensor.splat %v : tensor<4xf32>", [2.0] * 4),
        (PAIR + "%w = tensor.expand_shape %r#0 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n%e = tensor.empty() : tensor<2x2xf32>\n%t = linalg.transpose ins(%w : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) permutation = [1, 0]\n%y = tensor.collapse_shape %t [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>", [1.0, 3.0, 2.0, 4.0]),
        (PAIR + "%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n%q:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %w, %b = %w) -> (tensor<2x2xf32>, tensor<2x2xf32>) {\nscf.yield %b, %a : tensor<2x2xf32>, tensor<2x2xf32>\n}\n%e = tensor.empty() : tensor<2x2xf32>\n%t = linalg.transpose ins(%q#1 : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) permutation = [1, 0]\n%y = tensor.collapse_shape %t [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>", [1.0, 3.0, 2.0, 4.0]),
        # as the bounds and the start of a loop: one iteration, from 0 to 2
        (INDICES + "%y = scf.for %i = %n#0 to %n#1 step %n#1 iter_args(%a = %x) -> (tensor<4xf32>) {\n%z = arith.addf %a, %a : tensor<4xf32>\nscf.yield %z : tensor<4xf32>\n}", [2.0, 4.0, 6.0, 8.0]),
        # a reduction whose first operation uses one of the block's arguments only
        ("%z = arith.constant dense<0.0> : tensor<f32>\n%s = linalg.reduce ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0] (%p: f32, %q: f32) {\n%d = arith.addf %p, %p : f32\n%e = arith.addf %d, %q : f32\nlinalg.yield %e : f32\n}\n%v = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %v : tensor<4xf32>", [20.0] * 4),
        # a combiner without a known identity
        ("%z = arith.constant dense<0.0> : tensor<f32>\n%s = linalg.reduce ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0] (%p: f32, %q: f32) {\n%g = arith.cmpf ogt, %p, %q : f32\n%e = arith.select %g, %p, %q : f32\nlinalg.yield %e : f32\n}\n%v = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %v : tensor<4xf32>", [4.0] * 4),
        # an output map that transposes
        ("%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n%e = tensor.empty() : tensor<2x2xf32>\n%t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = [\"parallel\", \"parallel\"]} ins(%w : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {\n^bb0(%p: f32, %q: f32):\nlinalg.yield %p : f32\n} -> tensor<2x2xf32>\n%y = tensor.collapse_shape %t [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>", [1.0, 3.0, 2.0, 4.0]),
        # two results of one generic operation
        ("%e = tensor.empty() : tensor<4xf32>\n%p, %q = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = [\"parallel\"]} ins(%x : tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {\n^bb0(%v: f32, %o: f32, %u: f32):\n%d = arith.addf %v, %v : f32\nlinalg.yield %v, %d : f32, f32\n} -> (tensor<4xf32>, tensor<4xf32>)\n%y = arith.addf %p, %q : tensor<4xf32>", [3.0, 6.0, 9.0, 12.0]),
        # the value is the result, the tensor in outs stays as it is
        ("%o = arith.constant dense<7.0> : tensor<4xf32>\n%s = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>\n%y = arith.addf %s, %o : tensor<4xf32>", [9.0, 11.0, 13.0, 15.0]),
        # more than one axis reduced at once
        ("%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n%z = arith.constant dense<0.0> : tensor<f32>\n%s = linalg.reduce { arith.mulf } ins(%w : tensor<2x2xf32>) outs(%z : tensor<f32>) dimensions = [0, 1]\n%v = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %v : tensor<4xf32>", [0.0] * 4),
        # one element as a scalar of rank 0, broadcast, and back to two axes
        ("%e = tensor.extract_slice %x[2] [1] [1] : tensor<4xf32> to tensor<1xf32>\n%s = tensor.collapse_shape %e [] : tensor<1xf32> into tensor<f32>\n%w = tensor.expand_shape %s [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>\n%t = tensor.collapse_shape %w [] : tensor<1x1xf32> into tensor<f32>\n%o = tensor.empty() : tensor<4xf32>\n%y = linalg.broadcast ins(%t : tensor<f32>) outs(%o : tensor<4xf32>) dimensions = [0]", [3.0] * 4),
        # flags, locations and operations broken over lines
        ("%i = arith.constant 3 : i32\n%j = arith.addi %i, %i overflow<nsw> : i32\n%f = arith.sitofp %j : i32 to f32\n%y =\n    tensor.splat\n\n      %f\n      : tensor<4xf32>", [6.0] * 4),
    ],
)  # fmt: skip
def test_forms(through: Text, body: str, expected: list[float]) -> None:
    assert result(through(body, 4, "f32", "f32", header="#map = affine_map<(d0) -> (d0)>")) == expected


def test_a_fold_that_is_not_associative_takes_the_elements_in_order(through: Text) -> None:
    body = "%z = arith.constant dense<10.0> : tensor<f32>\n%s = linalg.reduce { arith.subf } ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]\n%v = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %v : tensor<4xf32>"
    # 4 - (3 - (2 - (1 - 10)))
    assert result(through(body, 4, "f32", "f32")) == [12.0] * 4
    squares = "%z = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\n%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n%s, %t = linalg.reduce ins(%w, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z, %z : tensor<2xf32>, tensor<2xf32>) dimensions = [0] (%p: f32, %q: f32, %u: f32, %v: f32) {\n%pp = arith.mulf %p, %p : f32\n%a = arith.addf %u, %pp : f32\n%b = arith.addf %v, %q : f32\nlinalg.yield %a, %b : f32, f32\n}\n%y = tensor.concat dim(0) %s, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>"
    assert result(through(squares, 4, "f32", "f32")) == [11.0, 22.0, 5.0, 8.0]


def test_layout_of_the_text_does_not_matter(through: Text) -> None:
    text = through("%y = arith.addf %x, %x : tensor<4xf32>", 4, "f32", "f32")
    want = result(text)
    comment = text.replace("%in: index,", "%in: index, // the source (first)\n")
    attributes = text.replace("module {", "module attributes {a.b = 1 : i32} {").replace(
        "%in: index", "%in: index {x.y = true}"
    )
    for other in (
        text.replace("\n", "\r\n"),
        comment,
        attributes,
        text.replace("grid = [1]", "grid = [1 : i64, 1 : i64]"),
    ):
        assert other != text
        assert result(other) == want
        assert Module.parse(other).function().argument_names == ("in", "out")


def test_core_numbers_on_a_grid_of_two_axes(function: Text, view: Text, tile: Text) -> None:
    def text(ids: str, row: str, column: str) -> str:
        return function(
            "\n".join(
                [
                    ids,
                    view("v", "a", "2x4", "i32"),
                    f"%i = arith.index_cast {column} : index to i32\n%s = tensor.splat %i : tensor<1x1xi32>",
                    tile("t", "v", f"{row}, {column}", "1x1", "2x4xi32"),
                    "ktdp.store %s, %t : tensor<1x1xi32>, <1x1xindex>",
                ]
            ),
            "%a: index",
            grid="[2, 4]",
        )

    both = text("%x, %y = ktdp.get_compute_tile_id : index, index", "%x", "%y")
    bundle = text("%g:2 = ktdp.get_compute_tile_id : index, index", "%g#0", "%g#1")
    out = torch.full((2, 4), -1, dtype=torch.int32)
    for source in (both, bundle):
        assert result(source, out, uninitialized=[0]) == [[0, 1, 2, 3]] * 2
    # One result is the x coordinate: four cores share each, and they collide.
    one = text("%x = ktdp.get_compute_tile_id : index\n%y = arith.constant 0 : index", "%x", "%y")
    assert refused(one, out).code == "KT205"


@pytest.mark.parametrize(("strides", "expected"), [("0", [1.0] * 4), ("-1", [4.0, 3.0, 2.0, 1.0])])
def test_strides_of_views(through: Text, view: Text, strides: str, expected: list[float]) -> None:
    text = through("%y = arith.addf %x, %zero : tensor<4xf32>", 4, "f32", "f32")
    text = text.replace(
        "%c0 = arith",
        "%zero = arith.constant dense<0.0> : tensor<4xf32>\n%c3 = arith.constant 3 : index\n%last = arith.addi %in, %c3 : index\n%c0 = arith",
        1,
    )
    pointer = "last" if strides == "-1" else "in"
    assert (
        result(text.replace(view("source", "in", "4", "f32"), view("source", pointer, "4", "f32", strides)))
        == expected
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        # a pointer moved out of its buffer, forwards, far and backwards
        ("construct_memory_view %in", "construct_memory_view %moved", "KT203", "elements 2 to 5 of in, which has 4"),
        ("constant 2 : index", "constant 100000000 : index", "", ""),
        ("%in_tile : <4xindex> -> tensor<4xf32>", "%in_tile : <4xindex> -> tensor<8xf32>", "KT104", ""),
        ("construct_access_tile %source[%c0]", "construct_access_tile %source[%c0 - 1]", "KT201", "coordinates -1 to 2"),
        ("construct_access_tile %source[%c0]", "construct_access_tile %source[4 ceildiv 3]", "KT201", "coordinates 2 to 5"),
        ("construct_access_tile %source[%c0]", "construct_access_tile %source[1]", "KT201", "coordinates 1 to 4"),
        ("memory_space<global>} : memref<4xf32>\n%in_t", "memory_space<ct_local, ct_id = 5>} : memref<4xf32>\n%in_t", "", ""),
        ("tensor.extract %x[%c0]", "tensor.extract %x[%c4]", "KT215", "4"),
        ("tensor.extract %x[%c0]", "tensor.extract %x[%neg]", "KT215", "-1"),
        ("arith.addf %a, %a", "arith.addf %a", "KT101", "Expected ','"),
        ("%x[0] [4] [1] : tensor<4xf32> to tensor<4xf32>", "%x[%c2] [4] [1] : tensor<4xf32> to tensor<4xf32>", "KT215", ""),
        ("%a, %a : tensor<4xf32>", "%a, %x : tensor<4xf32>, tensor<4xf32>", "KT101", ""),
    ],
)  # fmt: skip
def test_wrong_accesses(through: Text, old: str, new: str, code: str, message: str) -> None:
    body = "%c2 = arith.constant 2 : index\n%c4 = arith.constant 4 : index\n%neg = arith.constant -1 : index\n%v = tensor.extract %x[%c0] : tensor<4xf32>\n%s = tensor.splat %v : tensor<4xf32>\n%a = tensor.extract_slice %x[0] [4] [1] : tensor<4xf32> to tensor<4xf32>\n%b = arith.addf %a, %a : tensor<4xf32>\n%y = arith.addf %b, %s : tensor<4xf32>"
    text = through(body, 4, "f32", "f32")
    text = text.replace(
        "%c0 = arith.constant 0 : index",
        "%c0 = arith.constant 0 : index\n%two = arith.constant 2 : index\n%moved = arith.addi %in, %two : index",
        1,
    )
    assert result(text) == [3.0, 5.0, 7.0, 9.0]
    if not code:
        return
    assert old in text
    error = refused(text.replace(old, new, 1))
    assert error.code == code, str(error)
    assert message in str(error)
    assert error.diagnostics[0].line


def test_a_scratchpad_of_a_core_that_is_not_there(function: Text, view: Text, tile: Text) -> None:
    def text(core: int) -> str:
        local = view("v", "where", "4", "f32").replace(
            "#ktdp.memory_space<global>", f"#ktdp.memory_space<ct_local, ct_id = {core}>"
        )
        body = [
            "%c0 = arith.constant 0 : index\n%where = arith.constant 0 : index\n%x = arith.constant dense<1.0> : tensor<4xf32>",
            local,
            tile("t", "v", "%c0", "4", "4xf32"),
            "ktdp.store %x, %t : tensor<4xf32>, <4xindex>",
        ]
        return function("\n".join(body))

    assert Module.parse(text(0)).function().run([]).errors == ()
    error = refused_without_arguments(text(5))
    assert "5" in str(error)
    assert error.diagnostics[0].line


def refused_without_arguments(text: str) -> KtirError:
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run([])
    return error.value


def test_a_scratchpad_read_before_it_is_written(function: Text, view: Text, tile: Text) -> None:
    local = view("v", "where", "4", "f32").replace(
        "#ktdp.memory_space<global>", "#ktdp.memory_space<ct_local>"
    )
    body = [
        "%c0 = arith.constant 0 : index\n%where = arith.constant 0 : index",
        local,
        view("o", "out", "4", "f32"),
        tile("t", "v", "%c0", "4", "4xf32"),
        tile("u", "o", "%c0", "4", "4xf32"),
        "%x = ktdp.load %t : <4xindex> -> tensor<4xf32>\nktdp.store %x, %u : tensor<4xf32>, <4xindex>",
    ]
    assert refused(function("\n".join(body), "%out: index"), torch.zeros(4)).code in ("KT204", "KT221")


def test_undefined_elements(through: Text) -> None:
    """`tensor.empty` reads as zeros in other tools; it is a place for a result."""
    body = "%e = tensor.empty() : tensor<4xf32>\n%y = arith.addf %x, %e : tensor<4xf32>"
    (found,) = verify(parse(through(body, 4, "f32", "f32")))
    assert (found.code, found.severity, found.op) == ("KT204", "warning", "arith.addf")
    assert "%e comes from tensor.empty in line 9" in found.message
    place = "%e = tensor.empty() : tensor<4xf32>\n%y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>"
    assert verify(parse(through(place, 4, "f32", "f32"))) == []


def test_a_pointer_that_is_one_of_several_results(function: Text, view: Text, tile: Text) -> None:
    body = [
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index",
        "%r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%p = %in, %q = %out) -> (index, index) {\nscf.yield %p, %q : index, index\n}",
        view("s", "r#0", "4", "f32"),
        view("o", "r#1", "4", "f32"),
        tile("t", "s", "%c0", "4", "4xf32"),
        tile("u", "o", "%c0", "4", "4xf32"),
        "%x = ktdp.load %t : <4xindex> -> tensor<4xf32>\nktdp.store %x, %u : tensor<4xf32>, <4xindex>",
    ]
    assert result(function("\n".join(body), "%in: index, %out: index")) == X.tolist()


def test_a_chain_of_cores_is_a_race(function: Text, view: Text, tile: Text) -> None:
    """`a[i + 1] = a[i] + 1`, one element a core: right only where cores run one after the other."""
    body = [
        "%core = ktdp.get_compute_tile_id : index\n%one = arith.constant dense<1.0> : tensor<1xf32>",
        view("v", "a", "5", "f32"),
        tile("t", "v", "%core", "1", "5xf32"),
        tile("u", "v", "%core + 1", "1", "5xf32"),
        "%x = ktdp.load %t : <1xindex> -> tensor<1xf32>\n%y = arith.addf %x, %one : tensor<1xf32>",
        "ktdp.store %y, %u : tensor<1xf32>, <1xindex>",
    ]
    text = function("\n".join(body), "%a: index", grid="[4]")
    error = refused(text, torch.zeros(5))
    assert (error.code, error.diagnostics[0].core, error.diagnostics[0].op) == ("KT206", 1, "ktdp.load")
    alone = function("\n".join(body), "%a: index")
    assert result(alone, torch.zeros(5)) == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_arguments(through: Text) -> None:
    text = through("%y = arith.addf %x, %x : tensor<4xf32>", 4, "f32", "f32")
    out = torch.zeros(4)
    assert result(text, X.numpy(), np.zeros(4, dtype=np.float32)) == [2.0, 4.0, 6.0, 8.0]
    assert refused(text, X).code == "KT216"
    assert refused(text, X, out, out).code == "KT216"
    assert refused(text, [1.0, 2.0], out).code == "KT216"
    assert refused(text, X.int(), out).code == "KT216"
    assert refused(text, X.double(), out).code == "KT216"
    literal = refused(text, 4096, out)
    assert literal.code == "KT221"
    assert "--memory 4096=f32[ELEMENTS]" in str(literal)
    assert refused(text, X, out[:3].clone()).code == "KT203"


def test_functions_and_files_that_are_not_there(through: Text, tmp_path: Path) -> None:
    text = through("%y = arith.addf %x, %x : tensor<4xf32>", 4, "f32", "f32")
    with pytest.raises(KtirError) as error:
        Module.parse(text).function("kernl")
    assert error.value.code == "KT115"
    assert "kernel" in str(error.value)
    assert error.value.diagnostics[0].line
    with pytest.raises(OSError, match="nothing"):
        Module.parse(tmp_path / "nothing.ktir")
    with pytest.raises(KtirError) as error:
        Module.parse("this is\nno MLIR")
    assert error.value.code in ("KT101", "KT117")


def test_a_function_defined_twice() -> None:
    one = "func.func @f() attributes {grid = [1]} {\nreturn\n}\n"
    assert verify(parse(one)) == []
    with pytest.raises(KtirError) as error:
        parse(one + one)
    assert [(d.code, d.line) for d in error.value.diagnostics] == [("KT116", 4)]
    assert [d.code for d in verify(parse(one + one, verify=False))] == ["KT116"]
    found = verify(parse("func.func @f() {\nreturn\n}\n"))
    assert [(d.code, d.severity) for d in found] == [("KT110", "warning")]
    # A function that another one calls needs no grid.
    called = "func.func private @g() {\nreturn\n}\nfunc.func @f() attributes {grid = [1]} {\nfunc.call @g() : () -> ()\nreturn\n}\n"
    assert verify(parse(called)) == []


def test_types_of_other_dialects() -> None:
    with pytest.raises(KtirError) as error:
        parse("func.func @f(%p: !tt.ptr<f16>) attributes {grid = [1]} {\nreturn\n}\n")
    assert (error.value.code, error.value.diagnostics[0].line) == ("KT112", 1)


def test_the_address_span_of_a_core(function: Text, view: Text, tile: Text) -> None:
    """More than 256 MiB between the first and the last byte that one core touches."""

    def text(rows: int) -> str:
        body = [
            "%c0 = arith.constant 0 : index\n%zero = arith.constant dense<0.0> : tensor<1x4xf32>",
            f"%last = arith.constant {rows - 1} : index",
            view("v", "a", f"{rows}x4", "f32", "1048576, 1"),
            tile("s", "v", "%c0, %c0", "1x4", f"{rows}x4xf32"),
            tile("t", "v", "%last, %c0", "1x4", f"{rows}x4xf32"),
            "ktdp.store %zero, %s : tensor<1x4xf32>, <1x4xindex>\nktdp.store %zero, %t : tensor<1x4xf32>, <1x4xindex>",
        ]
        return function("\n".join(body), "%a: index")

    for rows, codes in ((64, []), (66, ["KT209"])):
        memory = torch.empty((rows - 1) * 1048576 + 4)
        found = Module.parse(text(rows)).function().run([memory], check=False, inplace=True).diagnostics
        assert [d.code for d in found if d.code != "KT302"] == codes


def test_an_indirect_index_stands_alone(function: Text, view: Text) -> None:
    def text(subscript: str) -> str:
        body = [
            view("x", "a", "8x4", "f32"),
            view("i", "b", "2", "i32"),
            f"%t = ktdp.construct_indirect_access_tile intermediate_variables(%m, %k) %x[{subscript}, (%k)] {{variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, variables_space_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 3 >= 0)>}} : memref<8x4xf32>, memref<2xi32> -> !ktdp.access_tile<2x4xindex>",
            "%v = ktdp.load %t : <2x4xindex> -> tensor<2x4xf32>",
        ]
        return function("\n".join(body), "%a: index, %b: index")

    assert parse(text("ind(%i[%m])"))
    for wrong in ("ind(%i[%m]) * 2", "ind(%i[%m]) + %m", "ind(%i[%m]) floordiv 2"):
        with pytest.raises(KtirError) as error:
            parse(text(wrong))
        assert error.value.code == "KT120"
    with pytest.raises(KtirError) as error:
        parse(text("%i[%m]"))  # the RFC's spelling
    assert error.value.code.startswith("KT1")


def test_coverage_of_what_the_text_cannot_tell(function: Text, view: Text, tile: Text) -> None:
    """A kernel that means a part, by a constant subscript or a constant offset, is left in peace."""

    def text(subscript: str, rows: int = 4) -> str:
        body = [
            "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c4 = arith.constant 4 : index",
            "%x = arith.constant dense<1.0> : tensor<1x4xf32>\n%later = arith.addi %core, %c4 : index",
            view("v", "a", "8x8", "f32"),
            tile("t", "v", subscript, "1x4", "8x8xf32"),
            "ktdp.store %x, %t : tensor<1x4xf32>, <1x4xindex>",
        ]
        return function("\n".join(body), "%a: index", grid=f"[{rows}]")

    def codes(subscript: str, cores: int) -> list[str]:
        return [d.code for d in coverage_findings(Module.parse(text(subscript, cores)).function())]

    assert (
        codes("%core, %c4", 8)
        == codes("%core, 4", 8)
        == codes("%later, %c0", 4)
        == codes("%core + 4, 0", 4)
        == []
    )
    assert codes("%core, %c0", 7) == codes("%later, %c0", 3) == codes("%core + 4, 0", 3) == ["KT302"]
    assert codes("%core floordiv 2, 0", 8) == ["KT302", "KT301"]
