"""Model id -> configuration -> model on fake tensors -> recorded op calls.

Modules are imported by name (`tracer.models.trace` ...), so that who only needs an OpCall does not pay for
PyTorch.
"""
