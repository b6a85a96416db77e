"""Harvest Triton kernels from Hugging Face models, rewrite them for IBM Spyre, lower them to KTIR."""

__version__ = "0.1.0"
