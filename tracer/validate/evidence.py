"""Evidence for a folder's tiers, naming the digest of what it was taken on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tracer.emit.digest import folder_digest
from tracer.errors import HarvestError
from tracer.validate import public_simulator, tiers
from tracer.validate.errors import CheckStopped, NotProved, told
from tracer.validate.folder import Folder

Status = Literal["pass", "fail", "skip"]

MUST_PASS = ("T0 interpreter", "T2 builtin", "controls")
MAY_SKIP = ("T1", "T2 ktir_cpu")
"""Evidence that may stay open with a reason, as pytest skips it: an op may have no other problem size
(HV613), and the public simulator may be absent or know too little. The rest of what is taken must pass."""


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: what came out, on which digest, why where it is no pass, and what to try."""

    status: Status
    digest: str
    reason: str = ""
    advice: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready form without empty fields."""
        data = {
            "status": self.status,
            "digest": self.digest,
            "reason": self.reason,
            "advice": self.advice,
            **self.notes,
        }
        return {key: value for key, value in data.items() if value not in ("", {}, [])}


@dataclass(frozen=True)
class Tiers:
    """All evidence that one validation took. What it did not take (a GPU, a person) is not in it."""

    t0_interpreter: Evidence
    t1: Evidence
    t2_builtin: Evidence
    t2_ktir_cpu: Evidence
    controls: Evidence

    @property
    def passed(self) -> bool:
        """Whether everything passed but what may be skipped, and that did not fail: what pytest says, too."""
        return not wrong(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The `tiers` entry of kernels.json."""
        return {
            "T0": {"interpreter": self.t0_interpreter.to_json()},
            "T1": self.t1.to_json(),
            "T2": {"builtin": self.t2_builtin.to_json(), "ktir_cpu": self.t2_ktir_cpu.to_json()},
            "controls": self.controls.to_json(),
        }

    def merged(self, earlier: dict[str, Any]) -> dict[str, Any]:
        """An entry with this evidence in place of the like; a GPU's and a person's stay."""
        data = self.to_json()
        for tier, found in earlier.items():
            if tier not in data:
                data[tier] = found
            elif tier in ("T0", "T2"):
                data[tier] = {**found, **data[tier]}
        return {tier: data[tier] for tier in sorted(data)}


def pieces(tiers: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """Every piece of a `tiers` entry by name (`T0 interpreter`, `T1`, `controls`), whatever its depth."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, entry in tiers.items():
        if isinstance(entry, Mapping) and "status" in entry:
            found.append((f"{prefix}{name}", entry))
        elif isinstance(entry, Mapping):
            found += pieces(entry, f"{prefix}{name} ")
    return found


def wrong(tiers: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The pieces that failed, and those that were skipped and must pass."""
    return [
        (name, entry)
        for name, entry in pieces(tiers)
        if entry["status"] == "fail" or (entry["status"] == "skip" and name in MUST_PASS)
    ]


def validate_folder(path: str | Path, *, full_size: bool = False) -> Tiers:
    """Take all evidence for one folder. What a folder does wrong is in the evidence; nothing is raised for
    it.

    A large op is run at a reduced size unless `full_size`; the evidence says so.
    """
    folder = Folder(Path(path).resolve())
    digest = folder_digest(folder.path)

    def open_(status: Status, error: HarvestError) -> Evidence:
        # The same on every machine: a file is called by its name in the folder.
        reason = f"{error.code} {error.reason}".replace(f"{folder.path}/", "")
        return Evidence(
            status,
            digest,
            reason.replace(str(folder.path), folder.path.name),
            error.advice.format(**error.fields),
        )

    def take(check: Callable[[], Any]) -> Evidence:
        try:
            notes = check() or {}
        except NotProved as error:
            return open_("skip", error)
        except HarvestError as error:
            return open_("fail", error)
        except Exception as error:  # A folder may hold anything; one must not end the validation of all.
            return open_("fail", CheckStopped(detail=told(error)))
        return Evidence("pass", digest, notes=notes)

    def size() -> dict[str, Any]:
        return {"size": f"reduced: {folder.scaled}"} if folder.is_large and not full_size else {}

    def t0() -> dict[str, Any]:
        tiers.check_t0(folder, full_size=full_size)
        return size()

    def t1() -> dict[str, Any]:
        live = tiers.check_t1(folder)
        return {"lx_bytes": live, "sizes": str(folder.scaled)}

    def t2() -> dict[str, Any]:
        tiers.check_t2(folder, full_size=full_size)
        return size()

    def controls() -> dict[str, Any]:
        found = tiers.check_controls(folder)
        return {"score": str(found), "excluded": found.excluded}

    def public() -> Evidence:
        if reason := public_simulator.unavailable():
            return Evidence("skip", digest, reason)
        try:
            if reason := public_simulator.unsupported(folder.problem):
                return Evidence("skip", digest, reason)
            if folder.is_large and not full_size:
                return Evidence("skip", digest, "its buffers are large; run with full_size")
        except HarvestError as error:
            return open_("fail", error)
        return take(lambda: public_simulator.check(folder))

    return Tiers(take(t0), take(t1), take(t2), public(), take(controls))
