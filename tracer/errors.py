"""Everything the tool can refuse, one class per reason, each with a stable code.

Codes: HV1xx configuration and model, HV2xx capture, HV3xx rewrite, HV4xx lowering, HV5xx emission,
HV6xx validation, HV9xx usage. The message template and the advice live on the class.
"""

from __future__ import annotations

from typing import ClassVar


class HarvestError(Exception):
    """An expected failure: one sentence with a code, and what to try next.

    Subclasses set `code`, `message` (a `str.format` template over the keyword arguments) and `advice`.
    `op` and `line` (the kernel source line) are attached by whoever knows them.
    """

    code: ClassVar[str] = "HV000"
    message: ClassVar[str] = "{reason}"
    advice: ClassVar[str] = ""
    settled: ClassVar[bool] = True
    """Whether the same input must end so again; what the machine may have had a part in is tried anew."""

    def __init__(self, *, op: str | None = None, line: str | None = None, **fields: object) -> None:
        self.op = op
        self.line = line
        self.fields = fields
        super().__init__(self.message.format(**fields))

    @property
    def reason(self) -> str:
        """The message without code, op and advice."""
        return str(self.args[0])

    def __str__(self) -> str:
        where = f" {self.op}:" if self.op else ""
        line = f" (at `{self.line.strip()}`)" if self.line else ""
        advice = f" Try: {self.advice.format(**self.fields)}" if self.advice else ""
        said = f"{self.reason.rstrip('.')}{line}"
        return f"{self.code}{where} {said}{'' if said.endswith('?') else '.'}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.op, self.line, self.fields)


def escaped(text: str) -> str:
    """`text` with the control characters of what it quotes (names in configurations may hold any) escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _rebuild(
    cls: type[HarvestError], op: str | None, line: str | None, fields: dict[str, object]
) -> HarvestError:
    return cls(op=op, line=line, **fields)
