"""Time the simulator on seven kernels beside whole-array torch and, where it is importable, the public
simulator.

    python scripts/bench_simulator.py [--only NAME ...] [--repeat N] [--no-public] [--json]

Each kernel is compiled once and checked against its reference before it is timed; the best of N runs counts.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_kernels import Kernel, kernels

from tracer.ktir.simulator import Module


def best(function: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def public(kernel: Kernel, args: list[Any], repeat: int) -> float | None:
    """Seconds that the public simulator takes; None where it is not importable."""
    try:
        from ktir_cpu import KTIRInterpreter
    except ImportError:
        return None
    interpreter = KTIRInterpreter()
    interpreter.load(kernel.text)
    names = [n.lstrip("%") for n in interpreter.arg_names(kernel.name)]
    arrays = {n: a.numpy() for n, a in zip(names, args, strict=True)}
    # Its results are not checked: it rounds differently, and what is measured here is time.
    return best(lambda: interpreter.execute_function(kernel.name, **arrays), repeat)


def check(kernel: Kernel, args: list[Any], got: torch.Tensor) -> None:
    want = kernel.reference(args)
    torch.testing.assert_close(
        got.float().reshape(want.shape), want.float(), rtol=kernel.tolerance, atol=kernel.tolerance
    )


def measure(kernel: Kernel, repeat: int, with_public: bool) -> dict[str, Any]:
    args = kernel.args(0)
    function = Module.parse(kernel.text).function()
    start = time.perf_counter()
    check(kernel, args, function.run(args).outputs[0])
    first = time.perf_counter() - start
    return {
        "kernel": kernel.name,
        "first": first,
        "ours": best(lambda: function.run(args), repeat),
        "unchecked": best(lambda: function.run(args, sanitize=False), repeat),
        "torch": best(lambda: kernel.reference(args), repeat),
        "public": public(kernel, args, max(1, repeat // 3)) if with_public else None,
    }


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="names of kernels")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-public", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [k for k in kernels() if not options.only or k.name in options.only]
    rows = [measure(k, options.repeat, not options.no_public) for k in chosen]
    if options.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    print(
        f"{'kernel':<16} {'ours':>10} {'first run':>10} {'unchecked':>10} {'torch':>10} {'x torch':>8} {'public':>10} {'speed-up':>9}"
    )
    for r in rows:
        shown = (
            f"{r['public']:>10.4f} {r['public'] / r['ours']:>8.1f}x" if r["public"] else f"{'-':>10} {'-':>9}"
        )
        print(
            f"{r['kernel']:<16} {r['ours']:>10.4f} {r['first']:>10.4f} {r['unchecked']:>10.4f} {r['torch']:>10.4f} "
            f"{r['ours'] / r['torch']:>8.1f} {shown}"
        )
    ratios = [r["public"] / r["ours"] for r in rows if r["public"]]
    if ratios:
        print(f"geometric mean of speed-ups over the public simulator: {mean(ratios):.1f}x")
    print(f"geometric mean of the sanitizer's cost: {mean([r['ours'] / r['unchecked'] for r in rows]):.2f}x")


if __name__ == "__main__":
    main()
