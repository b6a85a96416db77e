from __future__ import annotations

import subprocess
import sys

pytest_plugins = ["pytester"]

TEST = """
import pytest

def test_plain():
    pass

@pytest.mark.slow
def test_huge():
    pass
"""


def test_slow_tests_want_the_option(pytester):
    pytester.makepyfile(TEST)
    plugin = ("-p", "tracer.validate.pytest_plugin")
    pytester.runpytest(*plugin, "--strict-markers").assert_outcomes(passed=1, skipped=1)
    pytester.runpytest(*plugin, "--slow", "--strict-markers").assert_outcomes(passed=2)


def test_the_plugin_brings_in_neither_torch_nor_triton():
    code = "import sys, tracer.validate.pytest_plugin; sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_worker_brings_in_no_torch():
    code = "import sys, tracer.validate.interpreter_worker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
