"""Structured IR + plan -> readable Triton source."""

from tracer.rewrite.emit.body import region_lines
from tracer.rewrite.emit.tiles import Tiles

__all__ = ["Tiles", "region_lines"]
