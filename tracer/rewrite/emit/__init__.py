"""Structured IR + plan -> readable Triton source."""

from tracer.rewrite.emit.body import region_lines
from tracer.rewrite.emit.comments import cut_of, region_comment
from tracer.rewrite.emit.tiles import Tiles

__all__ = ["Tiles", "cut_of", "region_comment", "region_lines"]
