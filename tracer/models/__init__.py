"""Model id -> configuration -> model on fake tensors -> recorded op calls.

Modules are imported by name (`tracer.models.trace` ...): those that only need an OpCall do not pay for PyTorch.
"""
