"""That triton_kernel.py is what the tool makes, and how it is said what is wrong or missing in a folder."""

from __future__ import annotations

import pytest

from tracer.emit.render import kernel_code
from tracer.validate import scaling, tiers, validate_folder
from tracer.validate.errors import MalformedFolder, NotProved, StaleSource
from tracer.validate.evidence import wrong

SOFTMAX = "torch.nn.functional.softmax($0, dim=-1); $0=torch.float32[6, 12]:[12, 1]+0"
SILU = "torch.nn.functional.silu($0); $0=torch.float16[3, 100]:[100, 1]+0"
LINEAR = (
    "torch.nn.functional.linear($0, $1, None); $0=torch.float16[1, 5, 300]:[1500, 300, 1]+0;"
    " $1=torch.float16[40, 300]:[300, 1]+0"
)
ROWS = "torch.nn.functional.embedding($0, $1); $0=torch.int64[3]:[1]+0; $1=torch.float16[50, 64]:[64, 1]+0"
ONE = "torch.add($0, 1); $0=torch.int64[1]:[1]+0"


def source_of(folder) -> str:
    return (folder.path / "triton_kernel.py").read_text()


def without_maximum(make_folder):
    """A softmax that is right wherever nothing overflows."""
    old = next(line for line in source_of(make_folder(SOFTMAX)).splitlines() if " - " in line)
    name, _, value = old.partition(" = ")
    new = f"{name} = {value.partition(' - ')[0]}"
    return make_folder(SOFTMAX, triton_kernel=(old, new)), old.strip(), new.strip()


def test_t1_names_the_first_line_that_was_edited(make_folder):
    folder, old, new = without_maximum(make_folder)
    tiers.check_t0(folder)
    number = source_of(folder).splitlines().index(f"        {new}") + 1
    with pytest.raises(StaleSource) as caught:
        tiers.check_t1(folder)
    assert f"triton_kernel.py:{number} has `{new}`" in caught.value.reason
    assert f"makes `{old}`" in caught.value.reason
    assert "--force" in str(caught.value)


@pytest.mark.parametrize("identity", [SOFTMAX, SILU, LINEAR, ROWS, ONE])
def test_what_the_tool_made_is_fresh(identity, make_folder):
    folder = make_folder(identity)
    tiers.check_source(folder.path, identity)


def test_a_comment_at_the_head_is_no_edit_and_a_definition_at_the_end_is(make_folder):
    folder = make_folder(SILU)
    text = source_of(folder)
    file = folder.path / "triton_kernel.py"
    file.write_text(f"# read by a person\n{text}")
    tiers.check_source(folder.path, SILU)
    file.write_text(f"{text}\n\ntl.exp = tl.exp2\n")
    with pytest.raises(StaleSource, match="makes `the end`"):
        tiers.check_source(folder.path, SILU)


def test_an_edited_kernel_of_one_element_is_told(make_folder):
    # It has no other size, and the one value that it gives is right.
    folder = make_folder(ONE, triton_kernel=(" + 1", " + 1 + 0"))
    tiers.check_t0(folder)
    with pytest.raises(StaleSource):
        tiers.check_t1(folder)


def test_an_edited_source_of_an_op_that_runs_at_a_reduced_size_fails_everywhere(make_folder, monkeypatch):
    folder = make_folder(ROWS, triton_kernel=(".to(tl.int32)", ".to(tl.int64).to(tl.int32)"))
    monkeypatch.setattr(type(folder), "is_large", True)
    found = validate_folder(folder.path)
    assert not found.passed
    for evidence in (found.t0_interpreter, found.t1, found.controls):
        assert evidence.status == "fail"
        assert evidence.reason.startswith("HV615 ")


def test_an_op_without_another_size_leaves_t1_open_and_passes(make_folder, monkeypatch):
    monkeypatch.setattr(scaling, "scalings", lambda *_: ())
    monkeypatch.setattr(scaling, "proportional", lambda *_: ())
    folder = make_folder(SILU)
    with pytest.raises(NotProved, match="no other problem size"):
        tiers.check_t1(folder)
    found = validate_folder(folder.path)
    assert found.t1.status == "skip"
    assert found.passed
    monkeypatch.setattr(type(folder), "is_large", True)
    found = validate_folder(folder.path)
    assert [name for name, _ in wrong(found.to_json())] == ["T0 interpreter", "T2 builtin", "controls"]
    assert not found.passed


def test_a_missing_ktir_is_named_with_a_code_and_no_path(make_folder):
    folder = make_folder(SILU)
    (ktir,) = folder.path.glob("*.ktir")
    ktir.unlink()
    with pytest.raises(MalformedFolder, match=f"there is no {ktir.name}"):
        tiers.check_t2(folder)
    found = validate_folder(folder.path)
    for evidence in (found.t1, found.t2_builtin):
        assert evidence.reason == f"HV610 {folder.path.name} is not as generated: there is no {ktir.name}"
        assert evidence.advice


def test_a_fault_of_the_ktir_is_named_without_another_tier(make_folder):
    folder = make_folder(SILU)
    (ktir,) = folder.path.glob("*.ktir")
    text = ktir.read_text()
    ktir.write_text(text[: text.index("%", text.index("func.func")) + 1])
    found = validate_folder(folder.path)
    assert found.t1.reason.startswith("HV612 the parser stopped at ")
    assert "Expected suffix identifier after %" in found.t1.reason
    assert str(folder.path) not in found.t1.reason


def test_whatever_a_wrapper_raises_has_a_code_and_no_path(make_folder):
    folder = make_folder(SILU, wrapper=("kernels = load", "kernels = None; open('/no/such/file'); load"))
    found = validate_folder(folder.path)
    said = f"HV610 {folder.path.name} is not as generated: wrapper.py: no such file or directory: file"
    assert {e.reason for e in (found.t0_interpreter, found.t1, found.t2_builtin)} == {said}
    folder = make_folder(SILU, wrapper=("kernels = load", "nothing; load"))
    found = validate_folder(folder.path)
    assert found.t1.reason.endswith("wrapper.py: NameError: name 'nothing' is not defined")
    folder = make_folder(SILU, wrapper=("    x = widened(inputs)", "    x = widened(inputs); 1 / 0"))
    found = validate_folder(folder.path)
    assert found.t0_interpreter.reason == "HV617 the check stopped: ZeroDivisionError: division by zero"


def test_the_code_of_a_file_is_what_stands_below_its_comments(make_folder):
    from tracer.emit.read_folder import read_kernels

    folder = make_folder(LINEAR)
    text = source_of(folder)
    assert text.endswith(f"\n\n{kernel_code(read_kernels(folder.path))}")
