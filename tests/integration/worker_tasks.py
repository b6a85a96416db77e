"""Tasks for worker processes: they must be importable by name in a process of their own."""

from __future__ import annotations

import os
import time


def square(value: int) -> int:
    return value * value


def dies_at_three(value: int) -> int:
    if value == 3:
        os._exit(9)
    return value * value


def sleeps_from_one_on(value: int) -> int:
    time.sleep(60 if value else 0)
    return value


def lost(value: int) -> int:
    return -value
