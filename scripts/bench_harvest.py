"""Time a harvest against what Inductor alone takes for the same ops, in one process.

Both sides are warmed up with one small op, so that imports and first-use costs count for neither. Prints the
ratio, the time of each stage, the slowest five ops, and peak memory.

    python scripts/bench_harvest.py [--model Meta-Llama-3.1-8B-Instruct] [--layers N] [--repeat 3]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

GOAL_RATIO = 2.5
GOAL_BYTES = 4 * 1024**3


def inductor_seconds(model: str, layers: int | None) -> float:
    """Seconds of tracing the model and generating Inductor's code for each of its distinct compute ops."""
    from tracer.capture import capture
    from tracer.errors import HarvestError
    from tracer.models.config import resolve
    from tracer.models.trace import trace

    calls = [op.call for op in trace(resolve(model, offline=True), layers=layers).ops if op.kind == "compute"]
    start = time.perf_counter()
    for call in calls:
        try:
            capture(call)
        except HarvestError:
            continue
    return time.perf_counter() - start


def main() -> int:
    """Run the benchmark; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="Meta-Llama-3.1-8B-Instruct")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    import torch

    from tracer.pipeline import Options, harvest_model

    torch.set_num_threads(1)
    reports, codegen = [], []
    with tempfile.TemporaryDirectory() as name:
        harvest_model(options.model, Options(out=Path(name) / "warm", only="silu", layers=1, offline=True))
        for index in range(options.repeat):
            codegen.append(inductor_seconds(options.model, options.layers))
            out = Path(name) / str(index)
            reports.append(
                harvest_model(options.model, Options(out=out, layers=options.layers, offline=True))
            )
    best = min(reports, key=lambda report: report.wall)
    ratio = best.wall / min(codegen)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    print(f"{best.model}: {best.entry.calls}")
    print(
        f"harvest           {best.wall:8.2f} s  (median {statistics.median(r.wall for r in reports):.2f} s)"
    )
    print(f"inductor codegen  {min(codegen):8.2f} s  (median {statistics.median(codegen):.2f} s)")
    print(f"ratio             {ratio:8.2f}    (goal: at most {GOAL_RATIO})")
    print(f"peak memory       {peak / 1024**3:8.2f} GiB (goal: at most {GOAL_BYTES / 1024**3:.0f})")
    print("\nstage       seconds")
    for stage in ("trace", "capture", "rewrite", "lower", "emit"):
        print(f"{stage:10}  {best.seconds.get(stage, 0.0):7.2f}")
    print("\nslowest ops  seconds")
    for op, seconds in best.slowest[:5]:
        print(f"{seconds:7.2f}  {op}")
    return 0 if ratio <= GOAL_RATIO and peak <= GOAL_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
