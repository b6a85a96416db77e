"""Generated programs: text round trips, lanes agree with cores, coverage agrees with a run."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]

UNARY = ["arith.negf", "math.absf", "math.exp", "math.floor", "math.tanh", "math.erf"]
BINARY = ["arith.addf", "arith.subf", "arith.mulf", "arith.maximumf", "arith.minnumf", "arith.divf"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["unary", "binary", "select", "wide", "int", "reduce", "scalar"]),
        st.integers(0, 100),
        st.integers(0, 100),
        st.integers(0, 100),
    ),
    max_size=8,
)


def program(steps: list[tuple[str, int, int, int]], rows: int, columns: int) -> str:
    """A straight-line body over f16 tiles; step i defines %s<i>, and the last one is %y."""
    t, w, b, i, r = (f"tensor<{rows}x{columns}x{e}>" for e in ("f16", "f32", "i1", "i32", "f16"))
    row = f"tensor<{columns}xf16>"
    names, lines = ["x"], []
    for n, (kind, choice, first, second) in enumerate(steps):
        a, c = names[first % len(names)], names[second % len(names)]
        out = f"s{n}"
        match kind:
            case "unary":
                lines.append(f"%{out} = {UNARY[choice % len(UNARY)]} %{a} : {t}")
            case "binary":
                lines.append(f"%{out} = {BINARY[choice % len(BINARY)]} %{a}, %{c} : {t}")
            case "select":
                lines.append(f"%{out}_c = arith.cmpf ogt, %{a}, %{c} : {t}")
                lines.append(f"%{out} = arith.select %{out}_c, %{c}, %{a} : {b}, {t}")
            case "wide":
                lines.append(
                    f"%{out}_w = arith.extf %{a} : {t} to {w}\n%{out}_v = arith.mulf %{out}_w, %{out}_w : {w}"
                )
                lines.append(f"%{out} = arith.truncf %{out}_v : {w} to {t}")
            case "int":
                lines.append(
                    f"%{out}_c = arith.cmpf olt, %{a}, %{c} : {t}\n%{out}_i = arith.extui %{out}_c : {b} to {i}"
                )
                lines.append(f"%{out} = arith.sitofp %{out}_i : {i} to {t}")
            case "reduce":
                lines.append(f"%{out}_z = arith.constant dense<0.0> : {row}")
                lines.append(
                    f"%{out}_r = linalg.reduce {{{{ arith.{'addf' if choice % 2 else 'maximumf'} }}}} ins(%{a} : {r}) "
                    f"outs(%{out}_z : {row}) dimensions = [0]"
                )
                lines.append(f"%{out}_e = tensor.empty() : {t}")
                lines.append(
                    f"%{out} = linalg.broadcast ins(%{out}_r : {row}) outs(%{out}_e : {t}) dimensions = [0]"
                )
            case _:
                lines.append(
                    f"%{out}_s = tensor.extract %{a}[%c0, %c0] : {t}\n%{out} = tensor.splat %{out}_s : {t}"
                )
        names.append(out)
    lines.append(f"%y = arith.addf %{names[-1]}, %x : {t}")
    return "\n".join(lines)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, tile=st.integers(1, 3), tiles=st.integers(1, 9), cores=st.integers(1, 32))
def test_generated_programs(
    elementwise: Text, steps: list[tuple[str, int, int, int]], tile: int, tiles: int, cores: int
) -> None:
    text = elementwise(tile * tiles, 4, tile, cores, program(steps, tile, 4))
    module = parse(text)
    printed = print_module(module)
    again = parse(printed)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == printed

    x = torch.randn(tile * tiles, 4, generator=torch.Generator().manual_seed(len(steps))).half()
    args = [x, torch.zeros_like(x)]
    fast, slow, reprinted = (Module.parse(t).function() for t in (text, text, printed))
    slow.lanes = False
    # Overflow makes NaN of finite input here, which is not what is tested.
    results = [f.run(args, check=False).outputs[0] for f in (fast, slow, reprinted)]
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(results[0], results[2], rtol=0, atol=0, equal_nan=True)

    found = coverage(fast)
    assert not found.uncovered_writes(1, x.shape, x.stride())
    assert not found.repeated_writes(1, x.shape, x.stride())
    assert not found.unread(0, x.shape, x.stride())
