"""CapturedKernel -> SpyreKernel: Inductor's source in, Spyre-aware Triton source out."""

from tracer.rewrite.kernel import Parameter, Plan, SpyreKernel
from tracer.rewrite.rewriter import rewrite, rewrite_kernel

__all__ = ["Parameter", "Plan", "SpyreKernel", "rewrite", "rewrite_kernel"]
