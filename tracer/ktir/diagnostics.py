"""What the KTIR tools can complain about: typed, coded, and located.

Codes: KT10x text, KT11x-KT13x rules of the language, KT2xx what the simulator finds while a function runs,
KT3xx coverage, KT4xx what the public text parser would misread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from tracer.errors import HarvestError

CODES: dict[str, str] = {
    "KT101": "syntax error",
    "KT102": "rule of an operation violated",
    "KT103": "undefined value",
    "KT104": "type differs from that of the definition",
    "KT110": "no grid",
    "KT111": "grid out of range",
    "KT112": "foreign dialect",
    "KT113": "tile differs from its set",
    "KT114": "element types differ",
    "KT115": "no such function",
    "KT116": "more than one function of a name",
    "KT117": "operation not supported",
    "KT118": "view has overlapping elements",
    "KT119": "terminator missing",
    "KT120": "indirect index is not stand-alone",
    "KT122": "value never used",
    "KT123": "unknown attribute",
    "KT124": "number too large for its type",
    "KT201": "access outside the view",
    "KT202": "access outside the coordinate set",
    "KT203": "access outside the buffer",
    "KT204": "read of an element nobody wrote",
    "KT205": "two cores write one element",
    "KT206": "one core reads what another writes",
    "KT207": "scratchpad over its limit",
    "KT208": "scratchpad above the back end's reserve",
    "KT209": "address span over the limit",
    "KT210": "NaN from finite input",
    "KT211": "output not covered",
    "KT212": "deadlock between cores",
    "KT213": "core belongs to no group, or to several",
    "KT214": "integer division by zero",
    "KT215": "index out of range",
    "KT216": "bad argument",
    "KT217": "duplicate scatter target",
    "KT218": "value not available on this core",
    "KT219": "bounds or step of a loop leave nothing to run",
    "KT220": "distributed view does not fit",
    "KT221": "address in no buffer",
    "KT222": "too many operations",
    "KT223": "two iterations write one element",
    "KT224": "dependencies between cores do not fit",
    "KT225": "extents differ at run time",
    "KT226": "argument laid out unlike its views",
    "KT301": "element written more than once",
    "KT302": "element never written",
    "KT303": "element never read",
    "KT304": "accesses depend on data",
    "KT305": "element summed more than once",
    "KT401": "public parser misreads this",
}


@dataclass(frozen=True)
class Diagnostic:
    """One finding. `line` and `column` count from 1; 0 where the place is unknown."""

    code: str
    message: str
    severity: str = "error"
    filename: str = ""
    line: int = 0
    column: int = 0
    op: str = ""
    core: int | None = None
    coordinates: tuple[int, ...] | None = None
    source: str = ""
    """The source line itself, where it is known."""

    def __str__(self) -> str:
        place = f"{self.filename or '<ktir>'}:{self.line}:{self.column}"
        op = f" {self.op}:" if self.op else ""
        core = f" (core {self.core})" if self.core is not None else ""
        text = f"{place}: {self.severity} {self.code}:{op} {self._said()}{core}"
        if self.source:
            text += f"\n    {self.source.rstrip()}\n    {' ' * max(0, self.column - 1)}^"
        return text

    def _said(self) -> str:
        """The message with the coordinates that end its sentence."""
        return self.message + (f" at {list(self.coordinates)}" if self.coordinates is not None else "")

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, for `--json`; its message names the coordinates, too."""
        return asdict(self) | {"message": self._said(), "title": CODES.get(self.code, "")}


class KtirError(HarvestError):
    """KTIR text or a KTIR run that is wrong; `diagnostics` says where and how, `code` is that of
    the first.
    """

    code = "KT100"
    message = "{reason}"

    def __init__(self, diagnostics: Iterable[Diagnostic]):
        self.diagnostics = tuple(diagnostics)
        super().__init__(reason="\n".join(str(d) for d in self.diagnostics))
        if self.diagnostics:
            self.code = self.diagnostics[0].code  # type: ignore[misc]

    def __str__(self) -> str:
        return str(self.reason)

    def __reduce__(self) -> tuple[object, ...]:
        return KtirError, (self.diagnostics,)


def at(op: Operation | None, code: str, message: str, severity: str = "error", **fields: Any) -> Diagnostic:
    """A diagnostic at the place `op` was parsed from."""
    filename, line, column = location(op)
    return Diagnostic(
        code, message, severity, filename, line, column, op.name if op is not None else "", **fields
    )


def location(op: Operation | None) -> tuple[str, int, int]:
    """File, line and column of `op`; empty and zeros where it was not parsed from text."""
    while op is not None:
        if isinstance(place := op.location, FileLineColLoc):
            return place.filename.data, place.line.data, place.column.data
        op = op.parent_op()
    return "", 0, 0
