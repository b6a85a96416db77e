"""A generated folder as validation sees it. Nothing of it is imported before the first check."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tracer.validate.errors import MalformedFolder, told
from tracer.validate.inputs import floats_without_memory
from tracer.validate.oracle import span_of
from tracer.validate.problem import Problem
from tracer.validate.stage import load_sibling

_current: Folder | None = None


class Folder:
    """One op's folder. What is computed for one check is kept for the next, until another folder is
    checked."""

    def __init__(self, path: Path):
        self.path = path

    def __repr__(self) -> str:
        return f"Folder({self.path.name})"

    @property
    def name(self) -> str:
        """`torch.nn.functional.silu.1`."""
        return self.path.name.removesuffix("_spyre")

    @functools.cached_property
    def wrapper(self) -> ModuleType:
        """The folder's wrapper.py. Raises MalformedFolder."""
        _keep(self)
        try:
            return load_sibling(str(self.path / "wrapper.py"), "wrapper.py")
        except Exception as error:  # Whatever stands there is run.
            raise MalformedFolder(folder=self.path.name, detail=f"wrapper.py: {told(error)}") from error

    def constant(self, name: str, default: Any = None) -> Any:
        """A constant of the wrapper. Raises MalformedFolder where there is none, and no default."""
        found = getattr(self.wrapper, name, default)
        if found is None:
            raise MalformedFolder(folder=self.path.name, detail=f"wrapper.py has no {name}")
        return found

    @functools.cached_property
    def problem(self) -> Problem:
        """The op at the traced size."""
        return Problem(
            source=self.path / "triton_kernel.py",
            stages=tuple(self.constant("STAGES")),
            layouts=self.constant("BUFFERS"),
            outputs=tuple(self.constant("OUTPUTS")),
            views=self.constant("VIEWS", {}),
            make_inputs=self.constant("make_inputs"),
            run=self.constant("run"),
        )

    @property
    def light(self) -> Problem:
        """The op at the traced size with its index tensors; floating inputs take no memory and have no
        values."""
        with floats_without_memory():
            inputs = self.constant("make_inputs")()
        return dataclasses.replace(self.problem, make_inputs=lambda: inputs)

    @functools.cached_property
    def is_large(self) -> bool:
        """Whether a run at the traced size is only for `--slow`."""
        from tracer.emit.render import SLOW_BYTES

        layouts = self.constant("BUFFERS").values()
        return sum(span_of(shape, stride) * dtype.itemsize for shape, stride, dtype in layouts) > SLOW_BYTES

    @functools.cached_property
    def scaled(self) -> Any:
        """The op at another problem size (`scaling.Scaled`), or the reason why there is none (text)."""
        from tracer.validate.scaling import scale

        return scale(self.problem, str(self.constant("CALL")), is_large=self.is_large)

    @functools.cached_property
    def modules(self) -> dict[str, Any]:
        """The parsed KTIR of every stage, by kernel name.

        Raises SimulatorFailed for text that is wrong, MalformedFolder for a file that is not there.
        """
        for stage in self.problem.stages:
            if not (self.path / stage.ktir).is_file():
                raise MalformedFolder(folder=self.path.name, detail=f"there is no {stage.ktir}")
        from tracer.validate.simulate import parse

        return {stage.name: parse(self.path / stage.ktir, stage.name) for stage in self.problem.stages}

    def forget(self) -> None:
        """Drop everything that was computed."""
        for name in ("wrapper", "problem", "scaled", "modules", "is_large"):
            self.__dict__.pop(name, None)


def _keep(folder: Folder) -> None:
    # Inputs and oracle of one op may take a gigabyte: they are kept for one folder at a time.
    global _current
    if _current is not None and _current is not folder:
        _current.forget()
    _current = folder


def use_one_thread() -> None:
    """Tiles are small: threads only cost, and validation runs several processes beside each other."""
    torch.set_num_threads(1)
