"""`linalg.generic` is its loop nest: which loops accumulate follows from the maps of the outputs."""
# ruff: noqa: E501

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
Body = Callable[..., Sequence[float]]

X = torch.tensor([[1.0, -2.0, 5.0, 3.0], [4.0, 0.5, -1.0, 2.0], [7.0, 8.0, -6.0, 9.0]])
BODIES: dict[str, tuple[str, Body]] = {
    "takes the input": ("linalg.yield %p : f32", lambda p, o: [p]),
    "adds": ("%s = arith.addf %o, %p : f32\nlinalg.yield %s : f32", lambda p, o: [o + p]),
    "subtracts": ("%s = arith.subf %p, %o : f32\nlinalg.yield %s : f32", lambda p, o: [p - o]),
    "keeps the output": ("linalg.yield %o : f32", lambda p, o: [o]),
}


@pytest.fixture(name="nest")
def _nest(function: Text, view: Text, tile: Text) -> Text:
    """Outputs that begin as ones, from the 3x4 input, over loops i and j; `maps` are those of the outputs."""

    def build(maps: Sequence[str], kinds: Sequence[str], body: str, extents: Sequence[int] = (3, 4)) -> str:
        sizes = dict(zip("ij", extents, strict=True))
        shapes = ["x".join(str(sizes[d]) for d in m) for m in maps]
        types = [f"tensor<{s}xf32>" for s in shapes]
        names = [f"%e{n}" for n in range(len(maps))]
        whole = "x".join(map(str, extents))
        targets = [("out", "other")[n] for n in range(len(maps))]
        results = "%y:2" if len(maps) > 1 else "%y"
        all_maps = ", ".join(f"affine_map<(i, j) -> ({', '.join(m)})>" for m in ("ij", *maps))
        iterators = ", ".join(f'"{kind}"' for kind in kinds)
        suffixes = [f"#{n}" for n in range(len(maps))] if len(maps) > 1 else [""]
        arguments = ", ".join(f"%{a}: f32" for a in ("p", "o", "q")[: 1 + len(maps)])
        lines = [
            "%c0 = arith.constant 0 : index",
            view("vi", "in", whole, "f32"),
            tile("ti", "vi", "%c0, %c0", whole, f"{whole}xf32"),
            f"%x = ktdp.load %ti : <{whole}xindex> -> tensor<{whole}xf32>",
            *(f"{n} = arith.constant dense<1.0> : {t}" for n, t in zip(names, types, strict=True)),
            f"{results} = linalg.generic {{indexing_maps = [{all_maps}], iterator_types = [{iterators}]}} "
            f"ins(%x : tensor<{whole}xf32>) outs({', '.join(names)} : {', '.join(types)}) {{\n^bb0({arguments}):\n{body}\n}} -> ({', '.join(types)})",
        ]
        for n, (shape, target) in enumerate(zip(shapes, targets, strict=True)):
            starts = ", ".join(["%c0"] * len(maps[n]))
            lines += [
                view(f"v{target}", target, shape, "f32"),
                tile(f"t{target}", f"v{target}", starts, shape, f"{shape}xf32"),
                f"ktdp.store %y{suffixes[n]}, %t{target} : {types[n]}, <{shape}xindex>",
            ]
        return function("\n".join(lines), ", ".join(f"%{a}: index" for a in ("in", *targets)))

    return build


def by_loops(maps: Sequence[str], body: Body, x: Tensor = X) -> list[Tensor]:
    """The outputs after every iteration in the order of the loops."""
    sizes = dict(zip("ij", x.shape, strict=True))
    outs = [torch.ones([sizes[d] for d in m]) for m in maps]
    for point in itertools.product(*map(range, x.shape)):
        places = [tuple(point["ij".index(d)] for d in m) for m in maps]
        values = body(float(x[point]), *(float(o[p]) for o, p in zip(outs, places, strict=True)))
        for out, place, value in zip(outs, places, values, strict=True):
            out[place] = value
    return outs


def ran(text: str, maps: Sequence[str], x: Tensor = X) -> list[Tensor]:
    sizes = dict(zip("ij", x.shape, strict=True))
    outs = [torch.zeros([sizes[d] for d in m]) for m in maps]
    return list(Module.parse(text).function().run([x, *outs]).outputs)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("kept", "kinds"),
    [
        ("ij", ["parallel", "reduction"]),
        ("ij", ["reduction", "reduction"]),
        ("ij", ["parallel", "parallel"]),
        ("ji", ["reduction", "parallel"]),
        ("i", ["reduction", "reduction"]),
        ("i", ["parallel", "reduction"]),
        ("j", ["reduction", "reduction"]),
    ],
)
def test_a_loop_accumulates_where_the_output_leaves_it_out(
    nest: Text, kept: str, kinds: list[str], body: str
) -> None:
    text, step = BODIES[body]
    assert torch.equal(ran(nest([kept], kinds, text), [kept])[0], by_loops([kept], step)[0])


@pytest.mark.parametrize(
    ("maps", "body", "step"),
    [
        (["ij", "i"], "%s = arith.addf %p, %q : f32\nlinalg.yield %s, %s : f32, f32", lambda p, o, q: (p + q, p + q)),
        (["i", "j"], "%s = arith.subf %p, %q : f32\n%t = arith.addf %s, %o : f32\nlinalg.yield %s, %t : f32, f32", lambda p, o, q: (p - q, p - q + o)),
        (["i", "i"], "%s = arith.addf %p, %o : f32\nlinalg.yield %q, %s : f32, f32", lambda p, o, q: (q, p + o)),
        (["i", "i"], "linalg.yield %q, %o : f32, f32", lambda p, o, q: (q, o)),
        (["ij", "ji"], "%s = arith.addf %p, %o : f32\nlinalg.yield %q, %s : f32, f32", lambda p, o, q: (q, p + o)),
    ],
)  # fmt: skip
def test_outputs_that_keep_different_loops(nest: Text, maps: list[str], body: str, step: Body) -> None:
    found = ran(nest(maps, ["reduction", "reduction"], body), maps)
    for out, expected in zip(found, by_loops(maps, step), strict=True):
        assert torch.equal(out, expected)


def test_the_number_of_an_iteration_of_a_kept_reduction(nest: Text) -> None:
    body = "%j = linalg.index 1 : index\n%n = arith.index_cast %j : index to i32\n%f = arith.sitofp %n : i32 to f32\nlinalg.yield %f : f32"
    found = ran(nest(["ij"], ["parallel", "reduction"], body), ["ij"])[0]
    assert torch.equal(found, torch.arange(4.0).expand(3, 4))


def test_a_parallel_loop_that_an_output_leaves_out(nest: Text) -> None:
    text = nest(["i"], ["parallel", "parallel"], BODIES["adds"][0])
    with pytest.raises(KtirError, match="loop 1 is parallel, but output 0 does not keep it") as error:
        ran(text, ["i"])
    found = error.value.diagnostics[0]
    assert (found.code, found.op) == ("KT102", "linalg.generic")
    assert "linalg.generic" in text.splitlines()[found.line - 1]


def test_a_parallel_loop_of_one_iteration_orders_itself(nest: Text) -> None:
    x = X[:, :1].clone()
    text = nest(["i"], ["parallel", "parallel"], BODIES["adds"][0], extents=(3, 1))
    assert torch.equal(ran(text, ["i"], x)[0], 1 + x[:, 0])


def test_a_kept_reduction_sums_nothing(nest: Text) -> None:
    # It is no contraction, of which coverage would ask that all positions are read.
    assert not coverage_findings(Module.parse(nest(["ij"], ["reduction"] * 2, BODIES["adds"][0])).function())
