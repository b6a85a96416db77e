"""What the text may look like, and what is said about text that is wrong."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.rules.verifier import public_parser_findings, verify
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]


def doubled(through: Text, body: str, header: str = "") -> list[float]:
    text = through(body, 4, "f32", "f32", header=header)
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return Module.parse(text).function().run([x, torch.zeros(4)]).outputs[0].tolist()


@pytest.mark.parametrize(
    "body",
    [
        # scf.if with else and results
        "%t = arith.constant true\n%y = scf.if %t -> (tensor<4xf32>) {\n%z = arith.addf %x, %x : tensor<4xf32>\nscf.yield %z : tensor<4xf32>\n} else {\nscf.yield %x : tensor<4xf32>\n}",
        # else on its own line
        "%t = arith.constant false\n%y = scf.if %t -> (tensor<4xf32>)\n{\nscf.yield %x : tensor<4xf32>\n}\nelse\n{\n%z = arith.addf %x, %x : tensor<4xf32>\nscf.yield %z : tensor<4xf32>\n}",
        # generic form
        '%y = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
        # one-line region
        "%c1 = arith.constant 1 : index\n%y = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> (tensor<4xf32>) { %z = arith.addf %a, %x : tensor<4xf32> scf.yield %z : tensor<4xf32> }",
        # bundled results
        "%c1 = arith.constant 1 : index\n%r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<4xf32>, tensor<4xf32>) {\nscf.yield %a, %b : tensor<4xf32>, tensor<4xf32>\n}\n%y = arith.addf %r#0, %r#1 : tensor<4xf32>",
        # names with dots, dollars and signs
        "%c-1 = arith.constant -1 : index\n%c = arith.constant 100 : index\n%p.q$ = arith.addf %x, %x : tensor<4xf32>\n%c1 = arith.constant 1 : index\n%k = arith.addi %c-1, %c1 : index\n%y = scf.for %i = %k to %c1 step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {\nscf.yield %p.q$ : tensor<4xf32>\n}",
        # generic with map aliases and a block label of its own
        "%e = tensor.empty() : tensor<4xf32>\n%y = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = [\"parallel\"]} ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {\n^body(%p: f32, %q: f32, %o: f32):\n%s = arith.addf %p, %q : f32\nlinalg.yield %s : f32\n} -> tensor<4xf32>",
        # while
        "%c1 = arith.constant 1 : index\n%n, %y = scf.while (%i = %c0, %a = %x) : (index, tensor<4xf32>) -> (index, tensor<4xf32>) {\n%g = arith.cmpi slt, %i, %c1 : index\nscf.condition(%g) %i, %a : index, tensor<4xf32>\n} do {\n^bb0(%j: index, %b: tensor<4xf32>):\n%k = arith.addi %j, %c1 : index\n%z = arith.addf %b, %b : tensor<4xf32>\nscf.yield %k, %z : index, tensor<4xf32>\n}",
        # map and named ops
        "%e = tensor.empty() : tensor<4xf32>\n%y = linalg.map { arith.addf } ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>)",
        "%e = tensor.empty() : tensor<4xf32>\n%two = arith.constant dense<0.5> : tensor<4xf32>\n%y = linalg.div ins(%x, %two : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>",
        # dynamic tensor.empty, insert_slice, concat
        "%n = arith.constant 4 : index\n%e = tensor.empty(%n) : tensor<?xf32>\n%d = arith.addf %x, %x : tensor<4xf32>\n%s = tensor.extract_slice %d[0] [2] [1] : tensor<4xf32> to tensor<2xf32>\n%t = tensor.extract_slice %d[2] [2] [1] : tensor<4xf32> to tensor<2xf32>\n%y = tensor.concat dim(0) %s, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>",
        "%d = arith.addf %x, %x : tensor<4xf32> loc(\"a.py\":1:2)\n%y = tensor.insert_slice %d into %x[0] [4] [1] : tensor<4xf32> into tensor<4xf32>",
        # generate reads its tensor
        "%d = arith.addf %x, %x fastmath<contract> : tensor<4xf32>\n%y = tensor.generate {\n^bb0(%i: index):\n%v = tensor.extract %d[%i] : tensor<4xf32>\ntensor.yield %v : f32\n} : tensor<4xf32>",
    ],
)  # fmt: skip
def test_forms_that_double(through: Text, body: str) -> None:
    header = "#map = affine_map<(d0) -> (d0)>"
    assert doubled(through, body, header) == [2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize("bounds", ["(%i, %j) in (%two, 4)", "(%i, %j) = (0, 0) to (%two, 8) step (1, 2)"])
def test_forall_covers_every_point(function: Text, view: Text, tile: Text, bounds: str) -> None:
    scale = 2 if "in" in bounds else 1
    text = function(
        "\n".join(
            [
                f"%two = arith.constant 2 : index\n%scale = arith.constant {scale} : index",
                view("v", "a", "2x8", "f32"),
                f"scf.forall {bounds} {{",
                "%column = arith.muli %j, %scale : index",
                tile("t", "v", "%i, %column", "1x2", "2x8xf32"),
                "%one = arith.constant dense<1.0> : tensor<1x2xf32>",
                "ktdp.store %one, %t : tensor<1x2xf32>, <1x2xindex>\n}",
            ]
        ),
        "%a: index",
    )
    printed = print_module(parse(text))
    assert print_module(parse(printed)) == printed
    for source in (text, printed):
        result = Module.parse(source).function().run([torch.zeros(2, 8)], uninitialized=(0,))
        assert torch.equal(result.outputs[0], torch.ones(2, 8))
    assert not coverage(Module.parse(text).function()).repeated_writes(0, (2, 8), (8, 1))


def test_sizes_and_symbols_known_at_run_time(function: Text) -> None:
    """A view and a tile whose extents are arguments: the tile's set is that of its symbol."""
    text = function(
        "%c0 = arith.constant 0 : index\n"
        "%v = ktdp.construct_memory_view %a, sizes: [%n], strides: [1] {coordinate_set = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<?xf32>\n"
        "%w = ktdp.construct_memory_view %b, sizes: [4], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>\n"
        "%t = ktdp.construct_access_tile %v[%c0] symbols(%m) {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>} : memref<?xf32> -> !ktdp.access_tile<4xindex>\n"
        "%u = ktdp.construct_access_tile %w[%c0] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<4xf32> -> !ktdp.access_tile<4xindex>\n"
        "%x = ktdp.load %t : <4xindex> -> tensor<4xf32>\nktdp.store %x, %u : tensor<4xf32>, <4xindex>",
        "%a: index, %b: index, %n: index, %m: index",
    )
    x = torch.arange(8.0)
    run = Module.parse(text).function().run
    assert run([x, torch.zeros(4), 6, 4]).outputs[0].tolist() == [0, 1, 2, 3]
    for n, m, code in ((3, 4, "KT202"), (6, 3, "KT113")):
        with pytest.raises(KtirError) as error:
            run([x, torch.zeros(4), n, m])
        assert error.value.code in (code, "KT201")


def test_forms_print_and_parse_alike(through: Text) -> None:
    body = "%c1 = arith.constant 1 : index\n%r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<4xf32>, tensor<4xf32>) {\nscf.yield %a, %b : tensor<4xf32>, tensor<4xf32>\n}\n%y = arith.addf %r#0, %r#1 : tensor<4xf32>"
    text = print_module(parse(through(body, 4, "f32", "f32")))
    assert "#0" not in text
    assert "%r_0, %r_1 = scf.for" in text
    assert print_module(parse(text)) == text


def test_calls_are_followed() -> None:
    text = """
module {
  func.func private @twice(%v: index) -> index {
    %w = arith.addi %v, %v : index
    return %w : index
  }
  func.func @kernel(%out: index) attributes {grid = [1]} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %n = func.call @twice(%c2) : (index) -> index
    %i = arith.index_cast %n : index to i32
    %t = tensor.splat %i : tensor<1xi32>
    %v = ktdp.construct_memory_view %out, sizes: [1], strides: [1] {coordinate_set = affine_set<(d0) : (d0 == 0)>, memory_space = #ktdp.memory_space<global>} : memref<1xi32>
    %b = ktdp.construct_access_tile %v[%c0] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 == 0)>} : memref<1xi32> -> !ktdp.access_tile<1xindex>
    ktdp.store %t, %b : tensor<1xi32>, <1xindex>
    return
  }
}
"""
    assert (
        Module.parse(text).function("kernel").run([torch.zeros(1, dtype=torch.int32)]).outputs[0].item() == 4
    )


def test_two_lanes_reduce_together(through: Text) -> None:
    body = """
    %i = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
    %low = arith.constant dense<0xFF800000> : tensor<f32>
    %none = arith.constant dense<-1> : tensor<i32>
    %m, %k = linalg.reduce ins(%x, %i : tensor<4xf32>, tensor<4xi32>) outs(%low, %none : tensor<f32>, tensor<i32>) dimensions = [0]
      (%a: f32, %ai: i32, %b: f32, %bi: i32) {
        %g = arith.cmpf ogt, %b, %a : f32
        %v = arith.select %g, %b, %a : f32
        %w = arith.select %g, %bi, %ai : i32
        linalg.yield %v, %w : f32, i32
      }
    %s = tensor.extract %k[] : tensor<i32>
    %f = arith.sitofp %s : i32 to f32
    %y = tensor.splat %f : tensor<4xf32>"""
    text = through(body, 4, "f32", "f32")
    out = Module.parse(text).function().run([torch.tensor([1.0, 7.0, 3.0, 4.0]), torch.zeros(4)]).outputs[0]
    assert out.tolist() == [1.0] * 4
    assert print_module(parse(print_module(parse(text)))) == print_module(parse(text))


REDUCED = """
    %z = arith.constant dense<0.0> : tensor<f32>
    %s, %t = "linalg.reduce"(OPERANDS) <{dimensions = array<i64: 0>SIZES}> ({
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
      %p = arith.addf %a, %c : f32
      %q = arith.maximumf %b, %d : f32
      "linalg.yield"(%p, %q) : (f32, f32) -> ()
    }) : (TYPES) -> (tensor<f32>, tensor<f32>)
    %u = tensor.extract %s[] : tensor<f32>
    %v = tensor.extract %t[] : tensor<f32>
    %w = tensor.from_elements %u, %v : tensor<2xf32>
    %y = tensor.concat dim(0) %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>"""


def reduced(through: Text, inputs: int, inits: int, sizes: str = "") -> str:
    operands = ", ".join(["%x"] * inputs + ["%z"] * inits)
    types = ", ".join(["tensor<4xf32>"] * inputs + ["tensor<f32>"] * inits)
    body = REDUCED.replace("OPERANDS", operands).replace("TYPES", types).replace("SIZES", sizes)
    return through(body, 4, "f32", "f32")


@pytest.mark.parametrize("sizes", ["", ", operandSegmentSizes = array<i32: 2, 2>"])
def test_two_lanes_reduce_together_in_generic_form(through: Text, sizes: str) -> None:
    text = reduced(through, 2, 2, sizes)
    out = Module.parse(text).function().run([torch.tensor([1.0, 7.0, 3.0, 4.0]), torch.zeros(4)]).outputs[0]
    assert out.tolist() == [15.0, 7.0] * 2
    assert print_module(parse(print_module(parse(text)))) == print_module(parse(text))


@pytest.mark.parametrize(
    ("inputs", "inits", "message"),
    [
        (2, 1, "as many inits as inputs are needed"),
        (3, 1, "the result has the type of the output"),
        (1, 0, "Expected 2 operands, but got 1"),
    ],
)
def test_a_generic_form_with_an_operand_too_few(through: Text, inputs: int, inits: int, message: str) -> None:
    with pytest.raises(KtirError) as error:
        parse(reduced(through, inputs, inits))
    (found,) = error.value.diagnostics
    assert (found.code, found.op) == ("KT102", "linalg.reduce")
    assert message in found.message


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("memory_space = #ktdp.memory_space<global>", "memory_space = #ktdp.memory_space<HBM>", "KT101"),
        ("memory_space = #ktdp.memory_space<global>", 'memory_space = "HBM"', "KT101"),
        ("memory_space = #ktdp.memory_space<global>}", "memory_space = #ktdp.memory_space<global>", "KT101"),
        ("grid = [2]", "grid = [0]", "KT111"),
        ("grid = [2]", "grid = [33]", "KT111"),
        ("grid = [2]", "grid = [1, 1, 1, 1]", "KT111"),
        ("grid = [2]", "grid = array<i64: 2>", "KT111"),
        ("arith.addf %x, %x", "arith.frobnicate %x, %x", "KT117"),
        ("arith.addf %x, %x", "arith.addf %x, %nope", "KT103"),
        ("%y = arith.addf", "%y = tt.addf", "KT112"),
        ("-> tensor<4x64xf16>", "-> tensor<8x64xf16>", "KT104"),
        ("sizes: [12, 64], strides: [64, 1]", "sizes: [12, 64], strides: [64]", "KT102"),
        ("sizes: [12, 64]", "sizes: [12, 65]", "KT102"),
        ("!ktdp.access_tile<4x64xindex>", "!ktdp.access_tile<4x64xf16>", "KT101"),
        ("-d0 + 3 >= 0", "-d0 + 5 >= 0", "KT113"),
        ("-d0 + 3 >= 0", "-d9 + 3 >= 0", "KT101"),
        ("%row = arith.muli %t, %extent : index", "%t = arith.muli %t, %extent : index", "KT101"),
    ],
)
def test_wrong_text_is_named_with_its_line(elementwise: Text, old: str, new: str, code: str) -> None:
    text = elementwise(12, 64, 4, 2)
    assert old in text
    wrong = text.replace(old, new)
    with pytest.raises(KtirError) as error:
        Module.parse(wrong, "kernel.ktir")
    found = error.value.diagnostics[0]
    assert found.code == code, str(error.value)
    assert found.filename == "kernel.ktir"
    assert found.line >= next(i for i, line in enumerate(wrong.splitlines(), 1) if new.split("\n")[0] in line)
    assert found.source


def test_element_types_of_tile_and_tensor_agree(elementwise: Text) -> None:
    text = elementwise(4, 64, 4, 1).replace("tensor<4x64xf16>", "tensor<4x64xbf16>")
    assert {d.code for d in verify(parse(text))} == {"KT114"}


def test_what_the_public_parser_misreads_is_a_warning(through: Text) -> None:
    body = "%w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>\n%y = arith.addf %x, %x : tensor<4xf32>"
    found = public_parser_findings(parse(through(body, 4, "f32", "f32")))
    assert [d.code for d in found] == ["KT401"]
    assert (
        public_parser_findings(parse(through("%y = arith.addf %x, %x : tensor<4xf32>", 4, "f32", "f32")))
        == []
    )


def test_an_open_string_does_not_hang() -> None:
    with pytest.raises(KtirError) as error:
        parse('module attributes {a = "' + "x" * 5000 + "\n}")
    assert error.value.code == "KT101"


@pytest.mark.parametrize("text", ["", "\n", "// only a remark\n"])
def test_a_text_without_operations_says_so(text: str) -> None:
    with pytest.raises(KtirError, match=r"KT101.*there is no operation"):
        parse(text)
