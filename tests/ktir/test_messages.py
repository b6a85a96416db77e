"""One wrong line in a KTIR file: the message alone says where it is and what to do."""
# ruff: noqa: E501

from __future__ import annotations

import re

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import CODES, Diagnostic, KtirError
from tracer.ktir.rules.overlap import overlapping
from tracer.ktir.rules.verifier import verify
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse

LINEAR = """// y[n] = sum over k of w[n, k] x[k]; 4 cores, %x is a comment
module {
  func.func @linear(%x_ptr: index, %w_ptr: index, %y_ptr: index) attributes {grid = [4]} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %k_step = arith.constant 32 : index
    %k_end = arith.constant 128 : index
    %zero = arith.constant dense<0.0> : tensor<1x16xf32>
    %core = ktdp.get_compute_tile_id : index
    %x = ktdp.construct_memory_view %x_ptr, sizes: [1, 128], strides: [128, 1] {coordinate_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 127 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<1x128xf16>
    %w = ktdp.construct_memory_view %w_ptr, sizes: [64, 128], strides: [128, 1] {coordinate_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 63 >= 0, d1 >= 0, -d1 + 127 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<64x128xf16>
    %y = ktdp.construct_memory_view %y_ptr, sizes: [1, 64], strides: [64, 1] {coordinate_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 63 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<1x64xf32>
    %n = arith.muli %core, %c16 : index
    %sum = scf.for %k = %c0 to %k_end step %k_step iter_args(%part = %zero) -> (tensor<1x16xf32>) {
      %x_tile = ktdp.construct_access_tile %x[%c0, %k] {access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 31 >= 0)>} : memref<1x128xf16> -> !ktdp.access_tile<1x32xindex>
      %a = ktdp.load %x_tile : !ktdp.access_tile<1x32xindex> -> tensor<1x32xf16>
      %w_tile = ktdp.construct_access_tile %w[%n, %k] {access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 15 >= 0, d1 >= 0, -d1 + 31 >= 0)>} : memref<64x128xf16> -> !ktdp.access_tile<16x32xindex>
      %b = ktdp.load %w_tile : !ktdp.access_tile<16x32xindex> -> tensor<16x32xf16>
      %empty = tensor.empty() : tensor<32x16xf16>
      %bt = linalg.transpose ins(%b : tensor<16x32xf16>) outs(%empty : tensor<32x16xf16>) permutation = [1, 0]
      %next = linalg.matmul ins(%a, %bt : tensor<1x32xf16>, tensor<32x16xf16>) outs(%part : tensor<1x16xf32>) -> tensor<1x16xf32>
      scf.yield %next : tensor<1x16xf32>
    }
    %y_tile = ktdp.construct_access_tile %y[%c0, %n] {access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 15 >= 0)>} : memref<1x64xf32> -> !ktdp.access_tile<1x16xindex>
    ktdp.store %sum, %y_tile : tensor<1x16xf32>, !ktdp.access_tile<1x16xindex>
    return
  }
}
"""


def findings(text: str) -> list[Diagnostic]:
    """All that parser, verifier, coverage and a run say."""
    torch.manual_seed(0)
    args = [torch.randn(1, 128).half(), torch.randn(64, 128).half(), torch.zeros(1, 64)]
    found: list[Diagnostic] = []
    try:
        module = Module.parse(text, "linear.ktir")
        function = module.function()
        found += [*module.warnings, *coverage_findings(function)]
        return found + list(function.run(args, check=False, uninitialized=[2]).diagnostics)
    except KtirError as error:
        return [*found, *error.diagnostics]


def changed(old: str, new: str) -> tuple[str, int]:
    """The text with one change, and its line."""
    assert LINEAR.count(old) >= 1, old
    return LINEAR.replace(old, new, 1), LINEAR[: LINEAR.index(old)].count("\n") + 1


def test_a_right_file_has_no_findings() -> None:
    assert findings(LINEAR) == []
    x, w = torch.randn(1, 128).half(), torch.randn(64, 128).half()
    out = Module.parse(LINEAR).function().run([x, w, torch.zeros(1, 64)]).outputs[0]
    torch.testing.assert_close(out, x.float() @ w.float().T)


# (old, new, code, lines below the change, a part of the message)
WRONG = [
    ("sizes: [64, 128], strides: [128, 1]", "sizes: [64, 128], strides: [128]", "KT102", 0, "2 sizes but 1 strides"),
    ("sizes: [64, 128]", "sizes: [128, 64]", "KT102", 0, "size 128 of axis 0 differs from extent 64"),
    ("-d0 + 63 >= 0, d1", "-d0 + 63 >= 0, d2", "KT101", 0, "d2 is not among the dimensions"),
    ("-d0 + 63 >= 0, d1", "-d0 + 31 >= 0, d1", "KT202", 7, "the set of the view holds 0 to 31; %w is memref<64x128xf16> of line 11, its tile begins at [%n, %k] in line 17"),
    ("%w[%n, %k]", "%w[%k, %n]", "KT201", 1, "of a view of 64; %w is memref<64x128xf16> of line 11, its tile begins at [%k, %n] in line 17"),
    ("%w[%n, %k]", "%w[%n]", "KT102", 0, "1 subscripts for a base of rank 2"),
    ("%w[%n, %k]", "%w[%n * %k, %k]", "KT101", 0, "product of two variables"),
    ("%w[%n, %k]", "%w[%n, %k + 1]", "KT201", 1, "axis 1: coordinates 97 to 128 of a view of 128"),
    ("%w[%n, %k]", "%w[%N, %k]", "KT103", 0, "%N is not defined"),
    ("%w[%n, %k]", "%x[%n, %k]", "KT104", 0, "%x is used as memref<64x128xf16> here, but defined as memref<1x128xf16> in line 10"),
    ("%w[%n, %k]", "%w[%n-1, %k]", "KT103", 0, "%n-1 is not defined; did you mean %n - 1? A name may hold a minus sign"),
    ("%w[%n, %k]", "%w[%n - 1, %k]", "KT201", 1, "axis 0: coordinates -1 to 14 of a view of 64"),
    ("%w[%n, %k]", "%w[%m-1, %k]", "KT103", 0, "%m-1 is not defined"),
    ("%core, %c16 : index", "%cors, %c16 : index", "KT103", 0, "%cors is not defined; did you mean %core?"),
    ("%x_ptr: index", "%x_pt: index", "KT103", 7, "%x_ptr is not defined; did you mean %x_pt?"),
    ("%w_ptr: index", "%w_ptr: f16", "KT104", 8, "%w_ptr is used as index here, but it is an argument of type f16"),
    ("memory_space<global>", "memory_space<globl>", "KT101", 0, "expected one of global, ct_local"),
    ("memory_space<global>}", "memory_space<global>", "KT101", 0, "'}' expected"),
    ("linalg.matmul", "linalg.matmull", "KT117", 0, "did you mean linalg.matmul?"),
    ("ktdp.load", "ktdp.laod", "KT117", 0, "did you mean ktdp.load?"),
    ("ktdp.load", "tt.load", "KT112", 0, "dialect tt does not belong to KTIR"),
    ("module {", "modul {", "KT117", 0, "did you mean module?"),
    ("ins(%a, %bt : tensor<1x32xf16>, tensor<32x16xf16>)", "ins(%bt, %a : tensor<32x16xf16>, tensor<1x32xf16>)", "KT102", 0, "does not fit"),
    ("ins(%a, %bt : tensor<1x32xf16>", "ins(%a, %bt : tensor<1x32xf32>", "KT104", 0, "defined as tensor<1x32xf16> in line 16"),
    ("ktdp.load %x_tile : !ktdp.access_tile<1x32xindex> -> tensor<1x32xf16>", "ktdp.load %x_tile : !ktdp.access_tile<1x32xindex> -> tensor<1x64xf16>", "KT104", 5, "in line 16"),
    ("outs(%part : tensor<1x16xf32>)", "outs(%zero : tensor<1x16xf32>)", "KT122", -7, "no iteration uses %part: only the last one counts"),
    ("scf.yield %next", "scf.yield %part", "KT122", -8, "the loop computes nothing"),
    ("      scf.yield %next : tensor<1x16xf32>\n", "", "KT119", -1, "the body of scf.for must end with scf.yield"),
    ("scf.yield %next : tensor<1x16xf32>", "scf.yield", "KT102", -8, "must yield its loop-carried variables"),
    ("    return\n", "", "KT119", -1, "the body of func.func must end with return"),
    ("    return\n  }\n", "    return\n", "KT101", 1, "a closing brace is missing: nothing closes the one of line 3"),
    ("    }\n", "", "KT101", 4, "a closing brace is missing: nothing closes the one of line 14"),
    ("permutation = [1, 0]", "permutation = [0, 1]", "KT102", 0, "doesn't match"),
    ("arith.constant 128 : index", "arith.constant 64 : index", "KT303", 9, "loop in line 14"),
    ("arith.constant 128 : index", "arith.constant 64 : index", "KT303", 9, "%k_end = 64 of line 7"),
    ("%n = arith.muli %core, %c16", "%n = arith.muli %c0, %c16", "KT205", 12, "(%c0 = 0 of line 4, %n of line 13, %c16 = 16 of line 5)"),
    ("grid = [4]", "grid = [5]", "KT201", 15, "%core of line 9 in the grid of line 3"),
    ("access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 == 0", "access_tile_order = affine_map<(d0, d1) -> (d1, d0)>, access_tile_set = affine_set<(d0, d1) : (d0 == 0", "KT113", 0, "the set spans [32, 1] in its order (d1, d0), the tile [1, 32]"),
    ("arith.constant 32 : index", "arith.constant 64 : index", "KT303", 10, "64 of 128 positions of x_ptr along axis 1 are never read: linalg.matmul in line 21"),
    ("arith.constant 32 : index", "arith.constant 0 : index", "KT219", 8, "the step of the loop is 0"),
    ("arith.constant 16 : index", "arith.constant 8 : index", "KT205", 20, "core 0 writes this element too"),
    ("arith.constant 16 : index", "arith.constant 8 : index", "KT302", 20, "24 of 64 elements of y_ptr are never written"),
    ("arith.constant 16 : index", "arith.constant 32 : index", "KT201", 13, "of a view of 64"),
    ("= %c0 to %k_end step", "= %k_end to %c0 step", "KT219", 0, "the loop never runs: it goes from 128 up to 0; are the bounds swapped?"),
    ("constant 128 : index", "constant 0 : index", "KT219", 7, "the loop never runs: it goes from 0 up to 0"),
    ("grid = [4]", "grid = [3]", "KT302", 22, "16 of 64 elements of y_ptr are never written"),
    ("grid = [4]", "grid = [3]", "KT211", 22, "16 of 64 elements are never written (check the grid"),
    ("grid = [4]", "grid = [5]", "KT201", 15, "coordinates 64 to 79"),
    ("grid = [4]", "grid = [64]", "KT111", 0, "64 cores, the accelerator 32"),
    ("grid = [4]", "grd = [4]", "KT123", 0, "did you mean grid?"),
    ("grid = [4]", "grd = [4]", "KT110", 0, "it runs on one core"),
    ("    ktdp.store %sum, %y_tile : tensor<1x16xf32>, !ktdp.access_tile<1x16xindex>\n", "", "KT302", -22, "linear stores nothing"),
    ("ktdp.store %sum, %y_tile", "ktdp.store %y_tile, %sum", "KT104", 0, "%y_tile is used as tensor<1x16xf32> here"),
    ("construct_memory_view %w_ptr", "construct_memory_view %x_ptr", "KT122", 0, "nothing uses argument %w_ptr"),
    ("%core = ktdp.get_compute_tile_id : index", "%core = ktdp.get_compute_tile_id : i32", "KT104", 4, "defined as i32 in line 9"),
    ("%n = arith.muli %core, %c16 : index", "%n = arith.muli %core, %c16", "KT101", 0, "Expected ':'"),
    ("%n = arith.muli %core, %c16 : index", "%n = arith.mulf %core, %c16 : index", "KT101", 0, "does not take index here"),
    ("%n = arith.muli %core, %c16 : index", "%n = arith.addi %core, %c16 : index", "KT205", 12, "core 0 writes"),
    ("dense<0.0> : tensor<1x16xf32>", "dense<[0.0, 1.0]> : tensor<1x16xf32>", "KT101", 0, "Expected [1, 16] shape"),
    ("strides: [64, 1]", "strides: [0, 1]", None, 0, ""),
    ("strides: [64, 1]", "strides: [64, 0]", "KT118", 0, "share memory"),
    ("strides: [64, 1]", "strides: [64, 0]", "KT118", 13, "share memory"),
    ("iter_args(%part", "iter_arg(%part", "KT101", 0, "needs a region"),
    (") -> (tensor<1x16xf32>) {", ") {", "KT101", 0, "1 iter_args but 0 result types"),
    ("access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0", "access_tile_order = affine_map<(d0, d1) -> (d0, d0)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0", "KT113", 0, "does not say where d1 comes"),
    ("{access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0", "{access_tile_oder = affine_map<(d0, d1) -> (d1, d0)>, access_tile_set = affine_set<(d0, d1) : (d0 >= 0", "KT123", 0, "did you mean access_tile_order?"),
    ("access_tile_set", "access_tile_sets", "KT101", 0, "needs access_tile_set"),
    ("-d1 + 31 >= 0)>} : memref<1x128xf16>", "-d1 + 15 >= 0)>} : memref<1x128xf16>", "KT113", 0, "the set spans [1, 16], the tile [1, 32]"),
    ("-d1 + 31 >= 0)>} : memref<1x128xf16>", "-d1 + 31)>} : memref<1x128xf16>", "KT101", 0, "a constraint needs"),
    ("%x_tile = ktdp.construct_access_tile", "ktdp.construct_access_tile", "KT103", 1, "%x_tile is not defined; the result of ktdp.construct_access_tile in line 15 has no name"),
    ("%a = ktdp.load", "ktdp.load", "KT103", 5, "the result of ktdp.load in line 16 has no name"),
    ("%b = ktdp.load", "%a = ktdp.load", "KT101", 0, "%a is already defined in line 16"),
    ("%core = ktdp", "%x_ptr = ktdp", "KT101", 0, "%x_ptr is already defined as an argument"),
    (" iter_args(%part = %zero)", "", "KT101", 0, "results need iter_args before them"),
    ("access_tile_set", "acces_tile_set", "KT101", 0, "it needs access_tile_set; did you mean it by acces_tile_set?"),
    ("construct_memory_view %y_ptr", "construct_memory_view %w_ptr", "KT122", 0, "nothing uses argument %y_ptr, but %w_ptr has several views"),
    ("[64, 1] {coordinate_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 63 >= 0)>, memory_space = #ktdp.memory_space<global>", "[64, 1] {coordinate_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 63 >= 0)>, memory_space = #ktdp.memory_space<ct_local>", "KT302", 0, "linear stores nothing to global memory: this view is of a scratchpad"),
    ("arith.constant 16 : index", "arith.constant 8 : index", "KT302", 20, "(check the grid of line 3, %n of line 13, %c16 = 8 of line 5 and the tile in line 24, unless another function writes them)"),
    ("access_tile_set", "tile_set", "KT101", 0, "it needs access_tile_set; did you mean it by tile_set?"),
    ("affine_map", "affine_mp", "KT101", 0, "there is no attribute affine_mp; did you mean affine_map?"),
    ("coordinate_set = affine_set", "coordinate_set = affine_st", "KT101", 0, "there is no attribute affine_st; did you mean affine_set?"),
    (": tensor<1x32xf16>, tensor<32x16xf16>", ": tensr<1x32xf16>, tensor<32x16xf16>", "KT101", 0, "there is no type tensr; did you mean tensor?"),
    (": tensor<1x32xf16>, tensor<32x16xf16>", ": affine_map<1x32xf16>, tensor<32x16xf16>", "KT101", 0, "there is no type affine_map"),
    ("access_tile_order = affine_map<(d0, d1) -> (d0, d1)>", "access_tile_order = affine_set<(d0, d1) : (d0 >= 0)>", "KT101", 0, "access_tile_order must be an affine_map"),
    ("access_tile_set = affine_set<(d0, d1) : (d0 == 0, d1 >= 0, -d1 + 31 >= 0)>", "access_tile_set = affine_map<(d0, d1) -> (d0, d1)>", "KT101", 0, "access_tile_set must be an affine_set"),
    ("{access_tile_order", "{base_map = 1 : index, access_tile_order", "KT101", 0, "base_map must be an affine_map"),
    ("ktdp.store %sum", "ktdp.store %next", "KT103", 0, "%next is not defined here; that of line 21 is in another block"),
    ("%y[%c0, %n]", "%y[%c0, %k]", "KT103", 0, "%k is not defined here; that of line 14 is in another block"),
    ("arith.constant 16 : index", "arith.constant 8 : index", "KT301", 20, "(check the grid of line 3, %n of line 13, %c16 = 8 of line 5 and the tile in line 24)"),
    ("arith.constant 16 : index", "arith.constant 8 : index", "KT205", 20, "its tile begins at [%c0, %n] in line 24 (%c0 = 0 of line 4, %n of line 13, %core of line 9 in the grid of line 3, %c16 = 8 of line 5)"),
    ("arith.constant 16 : index", "arith.constant 32 : index", "KT201", 13, "(%n of line 13, scf.for in line 14, %core of line 9 in the grid of line 3, %c16 = 32 of line 5, %c0 = 0 of line 4, "),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "below", "message"), WRONG)
def test_a_wrong_line(old: str, new: str, code: str | None, below: int, message: str) -> None:
    text, line = changed(old, new)
    found = findings(text)
    shown = "\n".join(map(str, found))
    if code is None:
        assert found == []
        return
    named = [d for d in found if d.code == code and d.line == line + below]
    assert named, shown
    assert message in named[0].message, shown
    assert named[0].source == text.splitlines()[named[0].line - 1], shown
    assert named[0].column <= len(named[0].source) + 1
    assert named[0].filename == "linear.ktir"


def test_what_lies_behind_a_load_is_not_told() -> None:
    """The tile begins at an element that is loaded, and at a sum of more numbers than a message names."""
    names = [f"%s{i}" for i in range(12)]
    chain = [f"{n} = arith.addi {b}, %one : index" for n, b in zip(names[1:], names[:-1], strict=True)]
    text = """module { func.func @f(%p: index, %q: index) attributes {grid = [1]} {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %v = ktdp.construct_memory_view %p, sizes: [4], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xindex>
    %u = ktdp.construct_memory_view %q, sizes: [4], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
    %t = ktdp.construct_access_tile %v[%c0] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 >= 0)>} : memref<4xindex> -> !ktdp.access_tile<1xindex>
    %x = ktdp.load %t : !ktdp.access_tile<1xindex> -> tensor<1xindex>
    %s0 = tensor.extract %x[%c0] : tensor<1xindex>
    CHAIN
    %w = ktdp.construct_access_tile %u[LAST] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 >= 0)>} : memref<4xf32> -> !ktdp.access_tile<1xindex>
    %y = ktdp.load %w : !ktdp.access_tile<1xindex> -> tensor<1xf32>
    ktdp.store %y, %w : tensor<1xf32>, !ktdp.access_tile<1xindex>
    return
    } }"""

    def behind(steps: int) -> str:
        run = text.replace("CHAIN", "\n".join(chain[:steps])).replace("LAST", names[steps])
        with pytest.raises(KtirError) as error:
            Module.parse(run).function().run([torch.full((4,), 7), torch.zeros(4)])
        (found,) = error.value.diagnostics
        assert (found.code, found.coordinates) == ("KT201", (7 + steps,))
        return found.message.rpartition(" (")[2]

    assert behind(1) == "%s1 of line 9, %s0 of line 8, %one = 1 of line 3, %x of line 7, %c0 = 0 of line 2)"
    assert behind(11).count(" of line ") == 8
    assert behind(11).startswith("%s11 of line 19, %s10 of line 18, %one = 1 of line 3, %s9 of line 17, ")


@pytest.mark.parametrize(
    ("cast", "source", "target", "message"),
    [
        ("extf", "f32", "f16", "did you mean arith.truncf?"),
        ("truncf", "f16", "f32", "did you mean arith.extf?"),
        ("truncf", "f16", "bf16", "the cast narrows"),
        ("extsi", "i64", "i32", "did you mean arith.trunci?"),
        ("trunci", "i32", "i64", "did you mean arith.extsi?"),
        ("sitofp", "f32", "f16", "cannot cast from tensor<4xf32>"),
        ("fptosi", "f32", "f16", "cannot cast to tensor<4xf16>"),
        ("index_cast", "f32", "i32", "cannot cast from"),
        ("truncf", "f32", "f16", ""),
        ("extsi", "i1", "i32", ""),
        ("sitofp", "i32", "f16", ""),
        ("index_cast", "index", "i32", ""),
    ],
)
def test_casts(cast: str, source: str, target: str, message: str) -> None:
    value = "0.0" if source.startswith("f") else "0"
    text = f"""func.func @f() {{
  %x = arith.constant dense<{value}> : tensor<4x{source}>
  %y = arith.{cast} %x : tensor<4x{source}> to tensor<4x{target}>
  return
}}
""".replace("dense<0> : tensor<4xi1>", "dense<false> : tensor<4xi1>")
    if not message:
        assert {d.code for d in verify(parse(text))} <= {"KT110", "KT122"}
        return
    with pytest.raises(KtirError) as error:
        parse(text)
    assert error.value.code == "KT102"
    assert message in str(error.value)
    assert error.value.diagnostics[0].line == 3


@pytest.mark.parametrize(
    ("groups", "source", "target", "message"),
    [
        ("[[0, 1]]", "2x3", "6", ""),
        ("[[0], [1, 2]]", "2x3x4", "2x12", ""),
        ("[[0, 1]]", "2x3", "5", "make a shape of [6], not [5]"),
        ("[[0], [1]]", "1x1", "1", "make a shape of [1, 1], not [1]"),
        ("[[0]]", "2x3", "2", "do not name each of the 2 axes"),
        ("[]", "1x1", "", ""),
        ("[]", "1x2", "", "do not name each of the 2 axes"),
        ("[]", "1x1", "1", "make a shape of [], not [1]"),
    ],
)
def test_shapes_that_collapse(groups: str, source: str, target: str, message: str) -> None:
    text = f"""func.func @f() attributes {{grid = [1]}} {{
  %x = arith.constant dense<0.0> : tensor<{source}xf32>
  %y = tensor.collapse_shape %x {groups} : tensor<{source}xf32> into tensor<{target}xf32>
  return
}}
""".replace("tensor<xf32>", "tensor<f32>")
    found = [d for d in verify(parse(text)) if d.severity == "error"]
    assert [(d.code, d.line) for d in found] == ([("KT102", 3)] if message else [])
    assert not found or message in found[0].message


@pytest.mark.parametrize(
    ("source", "groups", "output", "target", "message"),
    [
        ("6", "[[0, 1]]", "[2, 3]", "2x3", ""),
        ("6", "[[0, 1]]", "[3, 2]", "2x3", "output_shape [3, 2] is not the shape of the result"),
        ("6", "[[0, 1]]", "[6]", "2x3", "output_shape [6] is not the shape of the result"),
        ("6", "[[0, 1]]", "[2, 2]", "2x2", "make a shape of [4], not [6]"),
        ("", "[]", "[1, 1]", "1x1", ""),
        ("", "[]", "[1, 2]", "1x2", "do not name each of the 2 axes"),
    ],
)
def test_shapes_that_expand(source: str, groups: str, output: str, target: str, message: str) -> None:
    text = f"""func.func @f() attributes {{grid = [1]}} {{
  %x = arith.constant dense<0.0> : tensor<{source}xf32>
  %y = tensor.expand_shape %x {groups} output_shape {output} : tensor<{source}xf32> into tensor<{target}xf32>
  return
}}
""".replace("tensor<xf32>", "tensor<f32>")
    try:
        found = [d for d in verify(parse(text)) if d.severity == "error"]
    except KtirError as error:
        found = list(error.diagnostics)
    assert [(d.code, d.line) for d in found] == ([("KT102", 3)] if message else [])
    assert not found or message in found[0].message, str(found[0])


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("%q = arith.addf %a, %b : f32\nlinalg.yield %q : f32", None, ""),
        ("linalg.yield %a : f32", "KT122", "does not use %b, the result so far"),
        (
            "%q = arith.addf %a, %x : f32\nlinalg.yield %q : f32",
            "KT104",
            "%x is used as f32 here, but defined as tensor<4xf32> in line 2",
        ),
    ],
)
def test_bodies_of_reductions(body: str, code: str | None, message: str) -> None:
    text = f"""func.func @f(%p: index) -> tensor<f32> attributes {{grid = [1]}} {{
  %x = arith.constant dense<0.0> : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %y = linalg.reduce ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0] (%a: f32, %b: f32) {{
    {body}
  }}
  return %y : tensor<f32>
}}
"""
    try:
        found = verify(parse(text))
    except KtirError as error:
        found = list(error.diagnostics)
    assert [d.code for d in found] == ([code] if code else [])
    assert not found or message in found[0].message


def test_an_axis_that_is_not_there() -> None:
    text = """func.func @f(%p: index) -> tensor<f32> attributes {grid = [1]} {
  %x = arith.constant dense<0.0> : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %y = linalg.reduce { arith.addf } ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [2]
  return %y : tensor<f32>
}
"""
    with pytest.raises(KtirError) as error:
        parse(text)
    assert (error.value.code, error.value.diagnostics[0].line) == ("KT102", 4)
    assert "range" not in str(error.value)


def test_the_result_of_a_named_operation_thrown_away() -> None:
    """As the RFC writes `linalg.add`: its value is the result, not the tensor in outs."""
    text = """func.func @f() attributes {grid = [1]} {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  %o = tensor.empty() : tensor<4xf32>
  %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  return
}
"""
    (found,) = verify(parse(text))
    assert (found.code, found.severity, found.line) == ("KT122", "warning", 4)


def test_windows_that_overlap() -> None:
    assert not overlapping([64, 128], [128, 1])
    assert not overlapping([128, 64], [1, 128])
    assert not overlapping([4, 1, 8], [8, 3, 1])
    assert overlapping([64, 128], [64, 1])
    assert overlapping([10, 3], [1, 1])
    assert overlapping([4, 2], [1, 0])
    assert not overlapping([2, 3], [3, 2]), "0 2 4 and 3 5 7 interleave"
    assert overlapping([3, 4], [3, 2]), "2 * 3 is 3 * 2"


def test_a_tile_of_another_rank_than_its_set() -> None:
    found = findings(LINEAR.replace("access_tile<1x32xindex>", "access_tile<32xindex>"))[0]
    assert (found.code, found.message, found.line) == ("KT102", "the tile has rank 1, the set 2 dims", 15)


@pytest.mark.parametrize("name", ["%next", "%part"])
def test_a_value_out_of_its_scope_is_reported_where_it_is_used(name: str) -> None:
    text, line = changed("ktdp.store %sum", f"ktdp.store {name}")
    (found,) = findings(text)
    shown = text.splitlines()[line - 1]
    assert (found.code, found.line, found.column) == ("KT103", line, shown.index(name) + 1)


def test_a_name_that_is_bound_again_after_its_scope_is_fine() -> None:
    again = "    %a = arith.constant 0 : index\n    %y_tile = ktdp.construct_access_tile %y[%a, %n]"
    assert findings(changed("    %y_tile = ktdp.construct_access_tile %y[%c0, %n]", again)[0]) == []


@pytest.mark.parametrize(
    ("combiner", "message"),
    [
        ("arith.addf", ""),
        ("arith.addi", "arith.addi cannot combine f32, f32; did you mean arith.addf?"),
        ("arith.muli", "arith.muli cannot combine f32, f32; did you mean arith.mulf?"),
        ("arith.negf", "arith.negf cannot combine f32, f32: Expected 1 operand, but got 2"),
    ],
)
@pytest.mark.parametrize("form", ["reduce", "map"])
def test_the_op_of_a_short_form(form: str, combiner: str, message: str) -> None:
    reduce = "ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]"
    rest = (
        reduce if form == "reduce" else "ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>)"
    )
    text = f"""func.func @f() attributes {{grid = [1]}} {{
  %x = arith.constant dense<0.0> : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %y = linalg.{form} {{ {combiner} }} {rest}
  return
}}
"""
    if not message:
        assert [d for d in verify(parse(text)) if d.severity == "error"] == []
        return
    with pytest.raises(KtirError) as error:
        parse(text)
    (found,) = error.value.diagnostics
    assert (found.code, found.op, found.line) == ("KT101", f"linalg.{form}", 4)
    assert (found.message, found.column) == (message, text.splitlines()[3].index(combiner) + 1)


def test_json_says_as_much_as_the_text() -> None:
    found = next(d for d in findings(changed("constant 16", "constant 8")[0]) if d.code == "KT302")
    said = found.to_json()
    assert found.message.endswith("the first is")
    assert said["message"] == f"{found.message} at [0, 40]"
    assert said["message"] in str(found)
    assert said["coordinates"] == (0, 40)
    assert Diagnostic("KT101", "no place").to_json()["message"] == "no place"


SIZED = """func.func @f(%p: index, %n: index) attributes {{grid = [1]}} {{
  %v = ktdp.construct_memory_view %p, sizes: [%n], strides: [1] {{coordinate_set = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>, memory_space = #ktdp.memory_space<global>}} : memref<{size}xf32>
  return
}}
"""


@pytest.mark.parametrize(
    ("size", "n", "message"),
    [
        ("?", 0, ""),
        ("4", 4, ""),
        ("4", 5, "size 5 of axis 0 differs from the memref's 4"),
        ("?", -1, "size -1 of axis 0 is negative"),
        ("4", -1, "size -1 of axis 0 is negative"),
    ],
)
def test_sizes_of_a_view(size: str, n: int, message: str) -> None:
    function = Module.parse(SIZED.format(size=size)).function()
    if not message:
        assert function.run([torch.zeros(4), n]).errors == ()
        return
    with pytest.raises(KtirError) as error:
        function.run([torch.zeros(4), n])
    (found,) = error.value.diagnostics
    assert (found.code, found.message, found.line) == ("KT215", message, 2)


@pytest.mark.parametrize(("shift", "code"), [(0, None), (-1, "KT203")])
def test_a_pointer_before_memory_whose_end_is_not_known(shift: int, code: str | None) -> None:
    text = f"""func.func @f(%p: index, %q: index) attributes {{grid = [1]}} {{
  %s = arith.constant {shift} : index
  %m = arith.addi %p, %s : index
  %v = ktdp.construct_memory_view %m, sizes: [4], strides: [1] {{coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>}} : memref<4xf32>
  %w = ktdp.construct_memory_view %q, sizes: [4], strides: [1] {{coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>}} : memref<4xf32>
  %z = arith.constant 0 : index
  %a = ktdp.construct_access_tile %v[%z] {{access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>}} : memref<4xf32> -> !ktdp.access_tile<4xindex>
  %x = ktdp.load %a : <4xindex> -> tensor<4xf32>
  %b = ktdp.construct_access_tile %w[%z] {{access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>}} : memref<4xf32> -> !ktdp.access_tile<4xindex>
  ktdp.store %x, %b : tensor<4xf32>, <4xindex>
  return
}}
"""
    found = coverage_findings(Module.parse(text).function())
    assert [d.code for d in found] == ([code] if code else [])
    assert all(d.message.startswith("elements -1 to 2 of p, which begins at element 0; %v is") for d in found)


def test_every_code_is_emitted_somewhere() -> None:
    from pathlib import Path

    import tracer.ktir

    sources = Path(tracer.ktir.__file__).parent.rglob("*.py")
    text = "\n".join(p.read_text() for p in sources if p.name != "diagnostics.py")
    used = set(re.findall(r"\"(KT\d{3})\"", text))
    assert used == set(CODES)
