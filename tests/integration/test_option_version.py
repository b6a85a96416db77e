from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "triton", "transformers", "xdsl", "sympy", "numpy", "jinja2")


def test_all_versions_are_shown(harvest):
    outcome = harvest("--version")
    assert outcome.code == 0
    assert all(name in outcome.out for name in ("harvest ", "torch ", "triton ", "transformers ", "xdsl "))


def test_version_and_help_import_nothing_heavy():
    code = (
        "import sys\nfrom tracer import cli\n"
        "try:\n    cli.main([sys.argv[1]])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    for option in ("--version", "--help"):
        ran = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=True)
        assert ran.stderr.strip() == "[]"
        assert ran.stdout
