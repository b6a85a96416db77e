"""A folder's files belong together: its Triton source is what the tool makes of its op, and its KTIR is what
that source lowers to. The proof of one is a proof of the other.

For ops so large that they run at a reduced size, this is what ties the committed files to what was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from tracer.emit.naming import unique_kernels
from tracer.emit.read_folder import read_kernels
from tracer.emit.render import kernel_code
from tracer.errors import HarvestError
from tracer.validate.call_text import parse_identity
from tracer.validate.errors import MalformedFolder, StaleKtir, StaleSource, told
from tracer.validate.problem import Problem


def check_fresh(path: Path, problem: Problem, fault: HarvestError | None = None) -> None:
    """Lower the folder at `path` again and compare, line by line, without comments.

    `fault` is what running the KTIR brought to light, which the message then holds as well. Raises StaleKtir,
    and MalformedFolder for a file that is not there.
    """
    from tracer.lower import lower

    kernels = {kernel.name: kernel for kernel in read_kernels(path)}
    for stage in problem.stages:
        lowered = lower(kernels[stage.name]).text.rstrip("\n").splitlines()
        if found := _difference(path / stage.ktir, lowered, "//"):
            number, text, wanted = found
            raise StaleKtir(
                file=stage.ktir,
                number=number,
                text=text,
                wanted=wanted,
                effect=f"; {fault.reason}" if fault else "",
            ) from fault


def check_source(path: Path, identity: str) -> None:
    """Make the kernels of the op `identity` again and compare the text of triton_kernel.py in the folder at
    `path` with theirs, line by line, without the comments at its head.

    An edit that keeps the result right at the traced size (a softmax that subtracts no maximum) may show in
    nothing else. Raises StaleSource, MalformedFolder, and what capture and rewriting raise.
    """
    from tracer.capture import capture
    from tracer.models.quiet import quiet
    from tracer.rewrite import rewrite
    from tracer.target import SPYRE

    try:
        call = parse_identity(identity)
    except ValueError as error:
        raise MalformedFolder(
            folder=path.name, detail=f"its CALL is no op's identity: {told(error)}"
        ) from error
    with quiet():
        captured = capture(call, SPYRE)
    made = kernel_code(unique_kernels(rewrite(captured, SPYRE))).splitlines()
    if found := _difference(path / "triton_kernel.py", made, "#"):
        number, text, wanted = found
        raise StaleSource(file="triton_kernel.py", number=number, text=text, wanted=wanted)


def _difference(file: Path, wanted: Sequence[str], mark: str) -> tuple[int, str, str] | None:
    """Number, text and what was wanted of the first line of `file` that differs, where one does.

    Comments at the head do not count, nor do empty lines at either end. Raises MalformedFolder.
    """
    if not file.is_file():
        raise MalformedFolder(folder=file.parent.name, detail=f"there is no {file.name}")
    try:
        lines = file.read_text(encoding="utf-8").rstrip("\n").splitlines()
    except (OSError, UnicodeError) as error:
        raise MalformedFolder(folder=file.parent.name, detail=f"{file.name}: {told(error)}") from error
    start = next((n for n, line in enumerate(lines) if line and not line.startswith(mark)), len(lines))
    for number, (line, other) in enumerate(zip_longest(lines[start:], wanted), start + 1):
        if line != other:
            return number, (line or "the end").strip(), (other or "the end").strip()
    return None
