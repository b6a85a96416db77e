"""Which kernel source line every row of a TTIR text comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator

KERNEL_FILE = "<triton "
"""Beginning of the file name under which kernels are compiled."""

_ALIAS = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)
_REFERENCE = re.compile(r"#loc\d*")
_LINE = re.compile(rf'"{re.escape(KERNEL_FILE)}[^"]*":(\d+):')


def rows_with_lines(text: str) -> list[tuple[str, int]]:
    """The rows of `text` that are not blank, without indentation and locations, and the source line of each.

    The line is 0 where unknown. An operation with regions has its location in the row that closes them.
    """
    aliases = dict(_ALIAS.findall(text))
    known: dict[str, int] = {}
    rows: list[tuple[str, int]] = []
    for row in _ALIAS.sub("", text).splitlines():
        code, locations = _strip(row.strip())
        if code:
            rows.append((code, _resolve(locations[-1], aliases, known) if locations else 0))
    return rows


def _strip(row: str) -> tuple[str, list[str]]:
    """A line without its `loc(...)`s, and these."""
    found: list[str] = []
    kept: list[str] = []
    position = 0
    for start, stop in _spans(row):
        kept.append(row[position:start].rstrip())
        found.append(row[start:stop])
        position = stop
    kept.append(row[position:])
    return "".join(kept), found


def _spans(row: str) -> Iterator[tuple[int, int]]:
    start = row.find(" loc(")
    while start >= 0:
        depth, stop = 1, start + len(" loc(")
        while depth:
            depth += {"(": 1, ")": -1}.get(row[stop], 0)
            stop += 1
        yield start + 1, stop
        start = row.find(" loc(", stop)


def _resolve(location: str, aliases: dict[str, str], known: dict[str, int]) -> int:
    """The line in the kernel's own file; a call site counts from the innermost place outwards."""
    if location not in known:
        known[location] = 0
        if match := _LINE.search(location):
            known[location] = int(match[1])
        else:
            for reference in _REFERENCE.findall(location):
                if line := _resolve(aliases.get(reference, ""), aliases, known):
                    known[location] = line
                    break
    return known[location]
