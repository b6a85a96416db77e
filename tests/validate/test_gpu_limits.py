from __future__ import annotations

import dataclasses

import pytest
import torch

from tracer.validate import gpu
from tracer.validate.buffers import place
from tracer.validate.errors import Disturbed, Mismatch
from tracer.validate.gpu_limits import GRANULE, smaller, steps, undo_overrun
from tracer.validate.stage import Stage

SOURCE = """
def kernel(x0_size, r0_size, r1_size, X0_BLOCK, R0_BLOCK, R1_BLOCK, CORES):
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        whole = tl.load_all(0, r1_size, R1_BLOCK)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            pass
"""
NEG = "torch.neg($0); $0=torch.float32[3, 5]:[5, 1]+0"


class OutOfResources(Exception):
    """As Triton's own, by name."""


def stage(**constexpr: int) -> Stage:
    return Stage(steps, "", (4,), {}, {**constexpr, "CORES": 4})


def test_only_what_a_loop_steps_by_may_change():
    assert steps(SOURCE) == {"X0_BLOCK", "R0_BLOCK"}


def test_tiles_shrink_until_nothing_is_left():
    first = smaller([stage(X0_BLOCK=32, R0_BLOCK=64, R1_BLOCK=4096)], SOURCE)
    assert first is not None
    assert first[0].constexpr == {
        "X0_BLOCK": 32,
        "R0_BLOCK": 64,
        "R1_BLOCK": 4096,
        "CORES": 4,
        "num_stages": 1,
    }
    seen = []
    found: tuple[Stage, ...] | None = first
    while (found := smaller(found, SOURCE)) is not None:
        seen.append((found[0].constexpr["X0_BLOCK"], found[0].constexpr["R0_BLOCK"]))
        assert found[0].grid == (32,)
        assert found[0].constexpr["CORES"] == 32
        assert found[0].constexpr["R1_BLOCK"] == 4096
    assert seen == [(32, 32), (16, 32), (16, 16)]


def test_only_the_last_16_bytes_are_put_back():
    places, size = place({"out": ((3,), (1,), torch.float32)})
    before = torch.zeros(size, dtype=torch.uint8)
    end = places["out"].start + places["out"].length
    memory = before.clone()
    memory[places["out"].start : end + GRANULE] = 1
    assert undo_overrun(memory, before, places) == {"out": 4}
    assert bool((memory[places["out"].start : end] == 1).all())
    assert bool((memory[end : end + 4] == 0).all())
    assert bool((memory[end + 4 : end + GRANULE] == 1).all())


def test_nothing_to_put_back_behind_whole_16_bytes():
    places, size = place({"out": ((4,), (1,), torch.float32)})
    before = torch.zeros(size, dtype=torch.uint8)
    memory = torch.ones(size, dtype=torch.uint8)
    assert undo_overrun(memory, before, places) == {}
    assert bool((memory == 1).all())


def launched(monkeypatch, change=lambda out: None, fails=0):
    """Launches become: fail `fails` times, then write the right output and apply `change` to it."""
    calls = []

    def run_stages(stages, tensors, device):
        calls.append([s.constexpr for s in stages])
        if len(calls) <= fails:
            raise OutOfResources
        tensors["out"].copy_(-tensors["input"])
        change(tensors["out"])

    monkeypatch.setattr(gpu, "run_stages", run_stages)
    return calls


def test_right_outputs_pass_without_notes(monkeypatch, make_folder):
    launched(monkeypatch)
    assert gpu.check_device(make_folder(NEG).problem, torch.device("cpu")) == {}


def test_an_overrun_within_16_bytes_is_a_note(monkeypatch, make_folder):
    def past_the_end(out):
        out.as_strided((1,), (1,), out.storage_offset() + 15).fill_(0)

    launched(monkeypatch, past_the_end)
    assert gpu.check_device(make_folder(NEG).problem, torch.device("cpu")) == {"overrun": {"out": 4}}


def test_an_overrun_beyond_16_bytes_is_refused(monkeypatch, make_folder):
    def far_past_the_end(out):
        out.as_strided((1,), (1,), out.storage_offset() + 16).fill_(0)

    launched(monkeypatch, far_past_the_end)
    with pytest.raises(Disturbed):
        gpu.check_device(make_folder(NEG).problem, torch.device("cpu"))


def test_a_wrong_output_is_refused(monkeypatch, make_folder):
    def wrong(out):
        out[2, 4] += 1

    launched(monkeypatch, wrong)
    with pytest.raises(Mismatch):
        gpu.check_device(make_folder(NEG).problem, torch.device("cpu"))


def test_smaller_tiles_are_tried_and_noted(monkeypatch, make_folder):
    problem = make_folder(NEG).problem
    roomy = [dataclasses.replace(s, constexpr={**s.constexpr, "X0_BLOCK": 64}) for s in problem.stages]
    problem = dataclasses.replace(problem, stages=tuple(roomy))
    calls = launched(monkeypatch, fails=2)
    notes = gpu.check_device(problem, torch.device("cpu"))
    assert [c[0].get("num_stages") for c in calls] == [None, 1, 1]
    assert notes["blocks"][0]["X0_BLOCK"] == 32


def test_no_tile_fits(monkeypatch, make_folder):
    launched(monkeypatch, fails=99)
    with pytest.raises(OutOfResources):
        gpu.check_device(make_folder(NEG).problem, torch.device("cpu"))
