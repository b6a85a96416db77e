from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emit.conftest import SPYRE, spyre_kernel
from tracer.capture.kernel import Buffer
from tracer.emit.naming import unique_kernels
from tracer.emit.read_folder import read_kernels
from tracer.emit.render import render_folder
from tracer.lower.ktir_text import Ktir
from tracer.models.op_call import OpCall, TensorRef, TensorSpec

ROOT = Path(__file__).parents[2]
HOSTILE = 'x"""\nimport os; os.abort()\n\\N{BEE} # \u202e {{ 7 * 7 }} {% raw %}'


def names_of(text: str) -> set[str]:
    """Names that a module assigns or defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


def two_stages(record):
    """A record of two launches of one kernel name at different sizes, with a buffer between them."""
    one = record()
    captured = one.captured
    middle = Buffer("buf0", "intermediate", captured.buffers[0].spec)
    first = one.kernels[0]
    second = dataclasses.replace(
        first,
        parameters=tuple(
            dataclasses.replace(p, value={"input": "buf0", 24: 12}.get(p.value, p.value))
            for p in first.parameters
        ),
    )
    kernels = unique_kernels([first, second])
    return dataclasses.replace(
        one,
        captured=dataclasses.replace(
            captured, buffers=(captured.buffers[0], middle, captured.buffers[1]), kernels=captured.kernels * 2
        ),
        kernels=kernels,
        ktirs=tuple(Ktir(kernel.name, "module {\n}\n") for kernel in kernels),
    )


def test_files_of_a_folder(record):
    assert list(render_folder(record())) == [
        "inductor_kernel.py",
        "triton_kernel.py",
        "wrapper.py",
        "triton_poi_fused_silu_0.ktir",
        "test_ktir_torch_nn_functional_silu_1_spyre.py",
    ]


def test_the_wrapper_has_the_names_that_others_rely_on(record):
    wrapper = render_folder(record())["wrapper.py"]
    assert {"SIGNATURE", "STAGES", "BUFFERS", "OUTPUTS", "make_inputs", "run", "silu"} <= names_of(wrapper)
    assert 'torch.nn.functional.silu(x["input"], inplace=False)' in wrapper


def test_several_stages_have_signatures_and_files_each(record):
    files = render_folder(two_stages(record))
    assert {"SIGNATURES", "STAGES"} <= names_of(files["wrapper.py"])
    assert {"triton_poi_fused_silu_0.ktir", "triton_poi_fused_silu_0_2.ktir"} <= set(files)
    assert {"triton_poi_fused_silu_0", "triton_poi_fused_silu_0_2"} <= names_of(files["triton_kernel.py"])


def test_inductors_kernel_is_untouched(record):
    one = record()
    source = one.captured.kernels[0].source.strip("\n")
    assert source in render_folder(one)["inductor_kernel.py"]


def test_the_same_record_gives_the_same_bytes(record):
    assert render_folder(record()) == render_folder(record())


def test_every_file_names_model_op_tool_and_inputs(record):
    one = record()
    for name, text in render_folder(one).items():
        if name.startswith("test_"):
            continue
        assert "tiny" in text
        joined = "".join(line.lstrip("#/ ") for line in text.splitlines())
        assert one.captured.call.identity.replace(" ", "") in joined.replace(" ", "")
        assert f"harvest 0.1.0 from inputs {one.inputs_digest}" in text


def test_numbers_that_may_follow_an_extent_are_named(record):
    head = "Only for the traced extents"
    assert head not in render_folder(record())["triton_kernel.py"]
    ends_at = spyre_kernel(source=SPYRE.replace("x0 * X0_BLOCK]).to", "11 - x0 * X0_BLOCK]).to"))
    text = render_folder(record(kernels=(ends_at,)))["triton_kernel.py"]
    assert f"# {head}, which 11 may follow: harvest the op again for others.\n" in text


def test_an_in_place_op_says_so(record):
    spec = TensorSpec((4,), (1,), 0, "torch.float16")
    call = OpCall("torch.Tensor.add_", (spec,), (TensorRef(0), 1.0))
    one = record()
    captured = dataclasses.replace(
        one.captured, call=call, buffers=(Buffer("input", "input", spec),), outputs=("input",)
    )
    kernel = dataclasses.replace(
        one.kernels[0],
        parameters=tuple(
            dataclasses.replace(p, value="input" if p.value == "out" else p.value)
            for p in one.kernels[0].parameters
        ),
    )
    wrapper = render_folder(
        dataclasses.replace(one, name="torch.Tensor.add_.1", captured=captured, kernels=(kernel,))
    )["wrapper.py"]
    assert "written in place" in wrapper
    assert "writes to input" in wrapper
    assert 'OUTPUTS = ("input",)' in wrapper


@pytest.mark.parametrize("field", ["model", "name", "modules", "phases"])
def test_hostile_names_are_only_ever_comments(record, field):
    value = (
        (HOSTILE,)
        if field in ("modules", "phases")
        else f"torch.f{HOSTILE}.1"
        if field == "name"
        else HOSTILE
    )
    changes = {field: value}
    if field == "name":
        changes["captured"] = record().captured
    for name, text in render_folder(record(**changes)).items():
        if name.endswith(".py"):
            tree = ast.parse(text)
            assert not any(
                isinstance(node, ast.Attribute) and node.attr == "abort" for node in ast.walk(tree)
            )
        else:
            head = text.split("module {")[0]
            assert all(line.startswith("//") for line in head.splitlines())
        assert "49" not in text
        assert "\u202e" not in text


def test_hostile_string_arguments_stay_strings(record):
    one = record()
    call = dataclasses.replace(one.captured.call, kwargs=(("mode", HOSTILE),))
    changed = dataclasses.replace(one, captured=dataclasses.replace(one.captured, call=call))
    tree = ast.parse(render_folder(changed)["wrapper.py"])
    (constant,) = [n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "mode"]
    assert ast.literal_eval(constant.value) == HOSTILE


def test_a_huge_op_is_marked_slow(record):
    spec = TensorSpec((1 << 28,), (1,), 0, "torch.float16")
    one = record()
    huge = dataclasses.replace(
        one.captured, buffers=(Buffer("input", "input", spec), Buffer("out", "output", spec))
    )
    test = "test_ktir_torch_nn_functional_silu_1_spyre.py"
    assert "@pytest.mark.slow" in render_folder(dataclasses.replace(one, captured=huge))[test]
    assert "slow" not in render_folder(one)[test]


def test_generated_python_needs_no_formatter(record, tmp_path):
    for index, one in enumerate(
        [record(), two_stages(record), record(modules=tuple("abcdefgh" * 9), calls=1)]
    ):
        folder = tmp_path / str(index)
        folder.mkdir()
        for name, text in render_folder(one).items():
            (folder / name).write_text(text)
    for command in (["format", "--check"], ["check"]):
        ran = subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *command,
                "--no-cache",
                "--config",
                str(ROOT / "pyproject.toml"),
                str(tmp_path),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_folder_is_read_back(record, tmp_path):
    for one in (record(), two_stages(record)):
        for name, text in render_folder(one).items():
            (tmp_path / name).write_text(text)
        found = read_kernels(tmp_path)
        assert [kernel.parameters for kernel in found] == [kernel.parameters for kernel in one.kernels]
        assert [kernel.source for kernel in found] == [kernel.source for kernel in one.kernels]
        assert [kernel.grid for kernel in found] == [kernel.grid for kernel in one.kernels]
