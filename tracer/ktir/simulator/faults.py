"""A rule broken while a function runs; the runner adds operation, line and core."""

from __future__ import annotations


class Fault(Exception):
    """`code` and `message` as in a Diagnostic, and the coordinates where there are any."""

    def __init__(self, code: str, message: str, coordinates: tuple[int, ...] | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.coordinates = coordinates
