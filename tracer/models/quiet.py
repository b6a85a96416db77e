"""Keep libraries from talking while models are built and traced: what went wrong is in our own errors."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

_LOGGERS = (
    "torch",
    "torch._subclasses.fake_tensor",
    "torch._inductor",
    "torch._dynamo",
    "transformers",
    "huggingface_hub",
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings and the loggers of PyTorch and transformers below CRITICAL; undone on exit."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
