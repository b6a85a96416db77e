"""From Spyre-aware Triton to KTIR."""

from tracer.lower.ktir_text import Ktir
from tracer.lower.lowering import Profile, lower, lower_source, lower_ttir

__all__ = ["Ktir", "Profile", "lower", "lower_source", "lower_ttir"]
