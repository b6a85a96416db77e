"""Where the templates are, and the environment that renders them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tracer.emit.layout import comment, docstring, literal, long_string, quoted, statement

_PACKAGE = Path(__file__).resolve().parent.parent
_INSTALLED = _PACKAGE / "_templates"
TEMPLATES = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "templates"
"""Inside the wheel the templates lie in the package, in a checkout beside it."""


@cache
def environment() -> Environment:
    """The strict environment: an undefined name is an error, nothing is escaped behind one's back."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    env.filters |= {
        "comment": comment,
        "docstring": docstring,
        "literal": literal,
        "long_string": long_string,
        "quoted": quoted,
        "statement": statement,
    }
    return env
