"""What a trace of accesses asks of a function, so that the runs themselves can ask for traces."""

# ruff: noqa: D102 - documented where they are implemented, in `run`
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp


class Text(Protocol):
    """A module and the lines that it was parsed from."""

    module: ModuleOp
    lines: list[str]


class Traceable(Protocol):
    """A function, as `run.Function` is one."""

    op: func.FuncOp

    @property
    def module(self) -> Text: ...

    @property
    def argument_names(self) -> tuple[str, ...]: ...

    @property
    def stored(self) -> tuple[int, ...]: ...

    @property
    def loaded(self) -> tuple[int, ...]: ...

    def on_grid(self, grid: Sequence[int] | None) -> tuple[int, int, int]: ...

    def number(self, value: Any, type_: Any, name: str) -> Any: ...
