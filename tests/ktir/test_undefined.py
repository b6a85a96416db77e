"""Reads of `tensor.empty` through loops and branches, each beside what never reads an undefined element."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.simulator import Module

Text = Callable[..., str]

T = "tensor<4xf32>"
SET = """%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
%core = ktdp.get_compute_tile_id : index
%first = arith.cmpi eq, %core, %c0 : index
%e = tensor.empty() : tensor<4xf32>
"""
FOR = "%y = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %e) -> (tensor<4xf32>) {\nBODY\nscf.yield %n : tensor<4xf32>\n}"
ADD = "%n = arith.addf %acc, %x : tensor<4xf32>"
IF = "%y = scf.if %first -> (tensor<4xf32>) {\nONE\n} else {\nOTHER\n}"
WHILE = """%y, %count = scf.while (%acc = %e, %i = %c0) : (tensor<4xf32>, index) -> (tensor<4xf32>, index) {
BEFORE
%more = arith.cmpi slt, %i, %c4 : index
scf.condition(%more) %acc, %i : tensor<4xf32>, index
} do {
^bb0(%sum: tensor<4xf32>, %j: index):
BODY
%k = arith.addi %j, %c1 : index
scf.yield %n, %k : tensor<4xf32>, index
}"""
INNER = "%n = scf.for %j = LOW to %c4 step %c1 iter_args(%inner = %acc) -> (tensor<4xf32>) {\n%m = arith.addf %inner, %x : tensor<4xf32>\nscf.yield %m : tensor<4xf32>\n}"
GUARD = "%begin = arith.cmpi eq, %i, %c0 : index\n"
READ = {
    "for": FOR.replace("BODY", ADD),
    "nested": FOR.replace("BODY", INNER.replace("LOW", "%core")),
    "under a condition that stays": FOR.replace(
        "BODY", f"%n = scf.if %first -> ({T}) {{\n%m = arith.addf %acc, %x : {T}\nscf.yield %m : {T}\n}} else {{\nscf.yield %acc : {T}\n}}"
    ),
    "while, before": WHILE.replace("BEFORE", f"%b = math.exp %acc : {T}").replace("BODY", f"%n = arith.addf %x, %x : {T}"),
    "while, body": WHILE.replace("BEFORE\n", "").replace("BODY", f"%n = arith.addf %sum, %x : {T}"),
    "branch": IF.replace("%y", "%z").replace("ONE", f"scf.yield %e : {T}").replace("OTHER", f"scf.yield %x : {T}") + f"\n%y = arith.addf %z, %x : {T}",
    "region": f"%z = scf.execute_region -> ({T}) {{\nscf.yield %e : {T}\n}}\n%y = arith.addf %z, %x : {T}",
    "handed on": FOR.replace("%y", "%z").replace("BODY\n", "").replace("%n", "%acc") + f"\n%y = arith.addf %z, %x : {T}",
    "body of linalg.generic": FOR.replace(
        "BODY",
        f"%n = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = [\"parallel\"]}} ins(%x : {T}) outs(%acc : {T}) {{\n^bb0(%a: f32, %o: f32):\n%s = arith.addf %a, %o : f32\nlinalg.yield %s : f32\n}} -> {T}",
    ),
}  # fmt: skip
UNREAD = {
    "begun in the first iteration": FOR.replace(
        "BODY", f"{GUARD}%n = scf.if %begin -> ({T}) {{\nscf.yield %x : {T}\n}} else {{\n%m = arith.addf %acc, %x : {T}\nscf.yield %m : {T}\n}}"
    ),
    "another in the first iteration": FOR.replace(
        "BODY", f"{GUARD}%old = scf.if %begin -> ({T}) {{\nscf.yield %x : {T}\n}} else {{\nscf.yield %acc : {T}\n}}\n%n = arith.addf %old, %x : {T}"
    ),
    "dropped in the first iteration": FOR.replace(
        "BODY", f"{GUARD}%m = arith.addf %acc, %x : {T}\n%n = arith.select %begin, %x, %m : {T}"
    ),
    "an inner loop that does not run at first": FOR.replace("BODY", INNER.replace("LOW", "%c0").replace("%c4", "%i")),
    "a place for a result": FOR.replace("BODY", f"%n = linalg.add ins(%x, %x : {T}, {T}) outs(%acc : {T}) -> {T}"),
    "filled": FOR.replace(
        "BODY", f"%zero = arith.constant 0.0 : f32\n%f = linalg.fill ins(%zero : f32) outs(%acc : {T}) -> {T}\n%n = arith.addf %f, %x : {T}"
    ),
    "inserted into": FOR.replace(
        "BODY", f"%p = tensor.extract_slice %x[%i] [1] [1] : {T} to tensor<1xf32>\n%n = tensor.insert_slice %p into %acc[%i] [1] [1] : tensor<1xf32> into {T}"
    ),
    "a branch that is not taken": IF.replace("%y", "%z").replace("%first", "%no").replace("ONE", f"scf.yield %e : {T}").replace("OTHER", f"scf.yield %x : {T}").replace("%z", "%no = arith.constant false\n%z", 1) + f"\n%y = arith.addf %z, %x : {T}",
    "read under the same condition": IF.replace("%y", "%z").replace("ONE", f"scf.yield %x : {T}").replace("OTHER", f"scf.yield %e : {T}") + "\n" + IF.replace("ONE", f"%q = arith.addf %z, %x : {T}\nscf.yield %q : {T}").replace("OTHER", f"scf.yield %x : {T}"),
    "body of linalg.generic that overwrites": FOR.replace(
        "BODY",
        f"%n = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = [\"parallel\"]}} ins(%x : {T}) outs(%acc : {T}) {{\n^bb0(%a: f32, %o: f32):\n%s = arith.addf %a, %a : f32\nlinalg.yield %s : f32\n}} -> {T}",
    ),
    "body of linalg.generic that chooses": FOR.replace(
        "BODY",
        f"%n = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = [\"parallel\"]}} ins(%x : {T}) outs(%acc : {T}) {{\n^bb0(%a: f32, %o: f32):\n%d = linalg.index 0 : index\n%t = arith.addi %d, %i : index\n%b = arith.cmpi slt, %t, %c4 : index\n%s = arith.select %b, %a, %o : f32\nlinalg.yield %s : f32\n}} -> {T}",
    ),
}  # fmt: skip


def undefined(through: Text, body: str) -> list[tuple[str, str]]:
    """Operation and message of every KT204, which a run that is right otherwise reports, too."""
    module = Module.parse(through(SET + body, 4, "f32", "f32"))
    found = [d for d in module.warnings if d.code == "KT204"]
    run = module.function().run([torch.ones(4), torch.zeros(4)])
    assert [d for d in run.diagnostics if d.code == "KT204"] == found
    return [(d.op, d.message) for d in found]


@pytest.mark.parametrize("body", READ.values(), ids=list(READ))
def test_read(through: Text, body: str) -> None:
    ((_, message),) = undefined(through, body)
    assert "comes from tensor.empty in line" in message


@pytest.mark.parametrize("body", UNREAD.values(), ids=list(UNREAD))
def test_unread(through: Text, body: str) -> None:
    assert undefined(through, body) == []


def test_the_way_is_told(through: Text) -> None:
    text = through(SET + READ["nested"], 4, "f32", "f32").splitlines()
    empty, outer, inner = (
        next(n for n, line in enumerate(text, 1) if part in line)
        for part in ("tensor.empty", "%y = scf.for", "%n = scf.for")
    )
    assert undefined(through, READ["nested"]) == [
        (
            "arith.addf",
            f"%inner comes from tensor.empty in line {empty} through scf.for in line {outer}, scf.for in line {inner}:"
            " its elements are undefined until something fills them",
        )
    ]


def test_many_branches_are_followed_once(through: Text) -> None:
    """Two values that every branch may exchange: the ways double with each."""
    begin = f"%a0 = arith.addf %x, %x : {T}\n%b0 = arith.mulf %x, %x : {T}"
    steps = [
        f"%a{n + 1}, %b{n + 1} = scf.if %first -> ({T}, {T}) {{\nscf.yield %a{n}, %b{n} : {T}, {T}\n}} else {{\n"
        f"scf.yield %b{n}, %a{n} : {T}, {T}\n}}"
        for n in range(40)
    ]
    assert undefined(through, "\n".join([begin, *steps, f"%y = arith.addf %a40, %b40 : {T}"])) == []
