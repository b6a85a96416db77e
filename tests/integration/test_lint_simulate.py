from __future__ import annotations

import json

import pytest

GOOD = """module {
  func.func @double(%source: index, %target: index) attributes {grid = [2]} {
    %core = ktdp.get_compute_tile_id : index
    %c4 = arith.constant 4 : index
    %from = ktdp.construct_memory_view %source, sizes: [8], strides: [1] \
{coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>, \
memory_space = #ktdp.memory_space<global>} : memref<8xf32>
    %to = ktdp.construct_memory_view %target, sizes: [8], strides: [1] \
{coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>, \
memory_space = #ktdp.memory_space<global>} : memref<8xf32>
    %x = arith.muli %core, %c4 : index
    %a = ktdp.construct_access_tile %from[%x] {access_tile_order = affine_map<(d0) -> (d0)>, \
access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<8xf32> -> !ktdp.access_tile<4xindex>
    %v = ktdp.load %a : !ktdp.access_tile<4xindex> -> tensor<4xf32>
    %w = arith.addf %v, %v : tensor<4xf32>
    %b = ktdp.construct_access_tile %to[%x] {access_tile_order = affine_map<(d0) -> (d0)>, \
access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<8xf32> -> !ktdp.access_tile<4xindex>
    ktdp.store %w, %b : tensor<4xf32>, !ktdp.access_tile<4xindex>
    return
  }
}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "double.ktir"
    path.write_text(GOOD)
    return path


def test_good_text_has_no_findings(harvest, file):
    outcome = harvest("lint", file)
    assert (outcome.code, outcome.out) == (0, "")


def test_bad_text_is_named_with_file_and_line(harvest, file):
    file.write_text(GOOD.replace("arith.muli %core", "arith.muli %nobody"))
    outcome = harvest("lint", file)
    assert outcome.code == 1
    assert "double.ktir:7:" in outcome.out


def test_findings_as_json(harvest, file):
    file.write_text("module {")
    findings = json.loads(harvest("lint", file, "--json").out)
    assert findings[0]["code"].startswith("KT1")


def test_simulate_makes_arguments_up(harvest, file):
    outcome = harvest("simulate", file)
    assert outcome.code == 0
    assert outcome.out.startswith("double on 2 cores\ntarget: float32[8] ")


def test_simulate_takes_arguments(harvest, file, tmp_path):
    import numpy

    numpy.save(tmp_path / "x.npy", numpy.arange(8, dtype=numpy.float32))
    outcome = harvest("simulate", file, "--arg", f"source={tmp_path / 'x.npy'}", "--json")
    assert json.loads(outcome.out)["outputs"]["target"]["values"] == [2.0 * value for value in range(8)]


def test_a_fault_is_an_error(harvest, file):
    outcome = harvest("simulate", file, "--arg", "source=f32[5]")
    assert outcome.code == 1
    assert "KT203" in outcome.out + outcome.err


@pytest.mark.parametrize("spec", ["nobody=f32[8]", "source", "source=f99[8]", "source=no-such-file"])
def test_a_wrong_argument_is_one_sentence(harvest, file, spec):
    outcome = harvest("simulate", file, "--arg", spec)
    assert outcome.code == 4
    assert outcome.err.startswith("HV902 ")


def test_a_missing_file_is_one_sentence(harvest):
    for command in ("lint", "simulate"):
        outcome = harvest(command, "no-such-file.ktir")
        assert outcome.code == 4
        assert outcome.err.startswith("HV901 ")


def test_simulate_says_what_lint_says(harvest, file):
    file.write_text(GOOD.replace("grid = [2]", "grid = [1]"))
    linted, simulated = harvest("lint", file), harvest("simulate", file)
    assert (linted.code, simulated.code) == (0, 0)
    assert "KT302" in linted.out
    assert linted.out in simulated.out
    found = json.loads(harvest("simulate", file, "--json").out)["diagnostics"]
    assert [(d["code"], d["severity"]) for d in found] == [("KT302", "warning")]


def test_simulate_of_wrong_text_keeps_json(harvest, file):
    file.write_text(GOOD.replace("arith.addf", "arith.addg"))
    outcome = harvest("simulate", file, "--json")
    assert outcome.code == 1
    assert [d["code"] for d in json.loads(outcome.out)["diagnostics"]] == ["KT117"]


def test_lint_leaves_literal_addresses_to_whoever_has_the_memory(harvest, file):
    file.write_text(
        GOOD.replace("%source: index, ", "").replace(
            "    %c4 =", "    %source = arith.constant 64 : index\n    %c4 ="
        )
    )
    assert (harvest("lint", file).code, harvest("simulate", file).code) == (0, 0)
    assert harvest("simulate", file, "--memory", "64=f32[8]").code == 0
    assert harvest("simulate", file, "--memory", "64=f32[4]").code == 1


@pytest.mark.parametrize("command", ["lint", "simulate"])
def test_help_says_the_exit_codes(harvest, command):
    assert "Exit codes: 0 " in " ".join(harvest(command, "--help").out.split())


def test_simulate_ends_a_loop_at_max_steps(harvest, file):
    looped = """%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %v) -> (tensor<4xf32>) {
      %sum = arith.addf %s, %v : tensor<4xf32>
      scf.yield %sum : tensor<4xf32>
    }"""
    file.write_text(GOOD.replace("%w = arith.addf %v, %v : tensor<4xf32>", looped))
    assert harvest("simulate", file, "--max-steps", "8").code == 0
    ended = harvest("simulate", file, "--max-steps", "7")
    assert ended.code == 1
    assert "KT222" in ended.out
    assert "8 operations, more than 7" in ended.out
