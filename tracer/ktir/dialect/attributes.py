"""Types and attributes of the `ktdp` dialect."""

# ruff: noqa: D102 - parse_parameters, print_parameters and verify are what xDSL asks for
from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineSetAttr,
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.affine import format_set


@irdl_attr_definition
class AccessTileType(ParametrizedAttribute, TypeAttribute):
    """`!ktdp.access_tile<32x64xindex>`: the coordinates that one load or store touches.

    `AccessTileType([32, 64])`; `?` extents are `DYNAMIC_INDEX`; rank 0 is `<index>`.
    """

    name = "ktdp.access_tile"
    shape: ArrayAttr[IntAttr] = param_def()
    element: Attribute = param_def()

    def __init__(self, shape: Sequence[int] | ArrayAttr[IntAttr], element: Attribute | None = None):
        if not isinstance(shape, ArrayAttr):
            shape = ArrayAttr(IntAttr(d) for d in shape)
        super().__init__(shape, element if element is not None else IndexType())

    def get_shape(self) -> tuple[int, ...]:
        """Extents, `DYNAMIC_INDEX` where dynamic."""
        return tuple(d.data for d in self.shape)

    def verify(self) -> None:
        if self.element != IndexType():
            raise VerifyException(f"access tile elements must be index, not {self.element}")
        if any(d < 0 and d != DYNAMIC_INDEX for d in self.get_shape()):
            raise VerifyException("access tile extents must not be negative")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dims, element = parser.parse_ranked_shape()
        return (ArrayAttr(IntAttr(d) for d in dims), element)

    def print_parameters(self, printer: Printer) -> None:
        dims = "".join("?x" if d == DYNAMIC_INDEX else f"{d}x" for d in self.get_shape())
        printer.print_string(f"<{dims}")
        printer.print_attribute(self.element)
        printer.print_string(">")


@irdl_attr_definition
class TileFutureType(ParametrizedAttribute, TypeAttribute):
    """`!ktdp.tile_future<tensor<1x128xf16>, groups = affine_set<(g) : (g == 0)>>`: partials of groups of
    cores.
    """

    name = "ktdp.tile_future"
    partial: Attribute = param_def()
    groups: Attribute = param_def()

    def __init__(self, partial: Attribute, groups: AffineSetAttr | NoneAttr | None = None):
        super().__init__(partial, groups if groups is not None else NoneAttr())

    def verify(self) -> None:
        if not isinstance(self.partial, TensorType):
            raise VerifyException("a tile future carries one tensor type")
        if isinstance(self.groups, AffineSetAttr) and self.groups.data.num_dims != 1:
            raise VerifyException("groups must be a set of one dimension")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        groups: Attribute = NoneAttr()
        with parser.in_angle_brackets():
            if parser.parse_optional_punctuation("("):
                partial: Attribute = parser.parse_type()
                parser.parse_punctuation(")")
            else:
                partial = parser.parse_type()
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("groups")
                parser.parse_punctuation("=")
                groups = parser.parse_attribute()
                if not isinstance(groups, AffineSetAttr):
                    parser.raise_error("groups must be an affine_set")
        return (partial, groups)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.partial)
        if isinstance(self.groups, AffineSetAttr):
            printer.print_string(f", groups = affine_set<{format_set(self.groups.data)}>")
        printer.print_string(">")


@irdl_attr_definition
class RuntimeArgType(ParametrizedAttribute, TypeAttribute):
    """`!ktdp.runtime_arg<index, granularity = 64, upperbound = 4096>`: a number known at launch only."""

    name = "ktdp.runtime_arg"
    value: Attribute = param_def()
    granularity: IntAttr = param_def()
    upperbound: IntAttr = param_def()

    def __init__(self, value: Attribute, granularity: int = 0, upperbound: int = 0):
        super().__init__(value, IntAttr(granularity), IntAttr(upperbound))

    def verify(self) -> None:
        if not isinstance(self.value, IndexType | IntegerType) and not hasattr(self.value, "bitwidth"):
            raise VerifyException("a runtime argument is an integer, float or index")
        if self.granularity.data < 0 or self.upperbound.data < 0:
            raise VerifyException("granularity and upperbound must be positive")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        found: dict[str, int] = {}
        with parser.in_angle_brackets():
            value = parser.parse_type()
            while parser.parse_optional_punctuation(","):
                pos = parser.pos
                key = parser.parse_identifier()
                parser.parse_punctuation("=")
                number = parser.parse_integer(allow_boolean=False)
                if key not in ("granularity", "upperbound"):
                    parser.raise_error(f"unknown runtime_arg parameter {key}", pos, parser.pos)
                if key in found:
                    parser.raise_error(f"{key} is given twice", pos, parser.pos)
                if number <= 0:
                    parser.raise_error(f"{key} must be positive", pos, parser.pos)
                found[key] = number
        return (value, IntAttr(found.get("granularity", 0)), IntAttr(found.get("upperbound", 0)))

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.value)
        if self.granularity.data:
            printer.print_string(f", granularity = {self.granularity.data}")
        if self.upperbound.data:
            printer.print_string(f", upperbound = {self.upperbound.data}")
        printer.print_string(">")


class MemorySpace(ParametrizedAttribute, ABC):
    """What both spellings share: a kind and, for a scratchpad, the core it belongs to."""

    kind: StringAttr = param_def()  # type: ignore[assignment]
    core: IntAttr = param_def()

    KINDS: ClassVar[tuple[str, ...]] = ()
    LOCAL: ClassVar[tuple[str, ...]] = ()
    CORE: ClassVar[str] = ""

    @property
    def is_local(self) -> bool:
        """Whether the memory is a core's scratchpad (LX)."""
        return self.kind.data in ("ct_local", "LX", "L0")

    @property
    def core_id(self) -> int | None:
        """The core whose scratchpad it is; None for the executing core's own, and for global memory."""
        return self.core.data if self.core.data >= 0 else None

    def verify(self) -> None:
        if self.kind.data not in self.KINDS:
            raise VerifyException(
                f"unknown #{self.name} kind '{self.kind.data}'; expected one of {', '.join(self.KINDS)}"
            )
        if self.core.data >= 0 and self.kind.data not in self.LOCAL:
            raise VerifyException(f"{self.CORE} is allowed only with {' or '.join(self.LOCAL)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        core = -1
        with parser.in_angle_brackets():
            kind = parser.parse_identifier()
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword(cls.CORE)
                parser.parse_punctuation("=")
                core = parser.parse_integer(allow_boolean=False)
                if core < 0:
                    parser.raise_error(f"{cls.CORE} must not be negative")
        return (StringAttr(kind), IntAttr(core))

    def print_parameters(self, printer: Printer) -> None:
        core = f", {self.CORE} = {self.core.data}" if self.core.data >= 0 else ""
        printer.print_string(f"<{self.kind.data}{core}>")


@irdl_attr_definition
class MemorySpaceAttr(MemorySpace):
    """`#ktdp.memory_space<global>` or `<ct_local[, ct_id = N]>`: today's spelling."""

    name = "ktdp.memory_space"
    KINDS: ClassVar[tuple[str, ...]] = ("global", "ct_local")
    LOCAL: ClassVar[tuple[str, ...]] = ("ct_local",)
    CORE: ClassVar[str] = "ct_id"

    def __init__(self, kind: str | StringAttr = "global", core: int | IntAttr = -1):
        super().__init__(
            StringAttr(kind) if isinstance(kind, str) else kind,
            IntAttr(core) if isinstance(core, int) else core,
        )


@irdl_attr_definition
class SpyreMemorySpaceAttr(MemorySpace):
    """`#ktdp.spyre_memory_space<HBM>` or `<LX[, core = N]>`: the spelling of RFC 0682."""

    name = "ktdp.spyre_memory_space"
    KINDS: ClassVar[tuple[str, ...]] = ("unspecified", "HBM", "LX", "L0")
    LOCAL: ClassVar[tuple[str, ...]] = ("LX", "L0")
    CORE: ClassVar[str] = "core"

    def __init__(self, kind: str | StringAttr = "HBM", core: int | IntAttr = -1):
        super().__init__(
            StringAttr(kind) if isinstance(kind, str) else kind,
            IntAttr(core) if isinstance(core, int) else core,
        )
