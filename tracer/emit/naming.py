"""Names of folders, files and functions. Whatever a config or a model says is made safe here."""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Sequence

from tracer.models.config import safe_name
from tracer.rewrite.kernel import SpyreKernel


def folder_name(op: str) -> str:
    """Folder of an op: `torch.nn.functional.silu.1_spyre`."""
    return f"{safe_name(op)}_spyre"


def test_name(op: str) -> str:
    """Test file of an op: `test_ktir_torch_nn_functional_silu_1_spyre.py`."""
    return f"test_ktir_{identifier(safe_name(op))}_spyre.py"


def identifier(text: str) -> str:
    """`text` as a Python identifier: every other character becomes `_`."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


def launcher_name(op: str) -> str:
    """Function that launches an op: the last word of its name, without the underscores of a Python protocol.

    >>> launcher_name("torch.nn.functional.silu.1"), launcher_name("torch.Tensor.__getitem__.2")
    ('silu', 'getitem')
    """
    word = op.rpartition(".")[0].rpartition(".")[2]
    return identifier(word.strip("_") if word.startswith("__") else word)


def ktir_name(kernel: str) -> str:
    """File of a stage's KTIR."""
    return f"{safe_name(kernel)}.ktir"


def unique_kernels(kernels: Sequence[SpyreKernel]) -> tuple[SpyreKernel, ...]:
    """The same kernels, where no two different ones share a name; a later one gets `_2`, `_3` ...

    Launches of one kernel at different sizes count as different, because their KTIR differs.
    """
    taken: dict[str, SpyreKernel] = {}
    unique: list[SpyreKernel] = []
    for kernel in kernels:
        name, count = kernel.name, 1
        while name in taken and not _same(taken[name], kernel):
            count += 1
            name = f"{kernel.name}_{count}"
        renamed = _renamed(kernel, name)
        taken.setdefault(name, kernel)
        unique.append(renamed)
    return tuple(unique)


def _same(one: SpyreKernel, other: SpyreKernel) -> bool:
    numbers = [
        [(p.name, p.type, p.value) for p in kernel.parameters if isinstance(p.value, int)]
        for kernel in (one, other)
    ]
    return one.source == other.source and numbers[0] == numbers[1] and one.grid == other.grid


def _renamed(kernel: SpyreKernel, name: str) -> SpyreKernel:
    if name == kernel.name:
        return kernel
    return dataclasses.replace(
        kernel, name=name, source=kernel.source.replace(f"def {kernel.name}(", f"def {name}(")
    )
