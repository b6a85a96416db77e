"""Names of ops: `torch.<op>.<n>`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.models.op_call import OpCall


def number(calls: Iterable[OpCall], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Names `torch.<op>.<n>` of `calls`, by identity.

    `known` maps identities to names given before (an earlier manifest); they are kept, and new identities
    get the next free number of their op in order of appearance.
    """
    names = dict(known or {})
    highest: dict[str, int] = {}
    for name in names.values():
        base, _, index = name.rpartition(".")
        highest[base] = max(highest.get(base, 0), int(index))
    found: dict[str, str] = {}
    for call in calls:
        identity = call.identity
        if identity not in names:
            highest[call.name] = highest.get(call.name, 0) + 1
            names[identity] = f"{call.name}.{highest[call.name]}"
        found[identity] = names[identity]
    return found
