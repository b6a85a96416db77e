"""Tables and pages for people."""

from tracer.report.summary import as_json, table

__all__ = ["as_json", "table"]
