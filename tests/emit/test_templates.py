from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from tracer.emit.templates import TEMPLATES, environment


def test_an_undefined_name_is_an_error():
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nobody }}").render()


def test_every_template_of_a_folder_is_there():
    names = {path.name for path in TEMPLATES.glob("*.j2")}
    assert names >= {
        "inductor_kernel.py.j2",
        "triton_kernel.py.j2",
        "wrapper.py.j2",
        "kernel.ktir.j2",
        "test_ktir.py.j2",
    }
