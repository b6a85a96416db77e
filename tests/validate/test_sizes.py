from __future__ import annotations

import pytest

from tracer.models.op_call import TensorSpec
from tracer.validate.call_text import parse_identity
from tracer.validate.scaling import canonical
from tracer.validate.sizes import AxisRange, _ratios, proportional, rescaled, scalings
from tracer.validate.stage import Stage


def spec(shape, stride, offset=0):
    return TensorSpec(tuple(shape), tuple(stride), offset, "torch.float16")


@pytest.mark.parametrize(
    ("shape", "stride", "expected"),
    [
        ((1, 12, 64), (768, 64, 1), (15, 5, 1)),
        ((12, 64), (1, 12), (1, 3)),
        ((1, 32, 12, 64), (49152, 128, 4096, 1), (210, 10, 70, 1)),
        ((12, 64), (0, 1), (0, 1)),
        ((12, 64), (64, 0), (64, 0)),
        ((), (), ()),
    ],
)
def test_strides_keep_their_order_and_their_gaps(shape, stride, expected):
    assert rescaled(spec(shape, stride), {12: 3, 64: 5, 32: 7}).stride == expected


def stage(sizes, blocks):
    return Stage(
        None,
        "",
        (1,),
        {f"{a}_size": n for a, n in sizes.items()},
        {f"{a.upper()}_BLOCK": n for a, n in blocks.items()},
    )


def test_extents_change_everywhere_and_to_a_few_ragged_tiles():
    call = parse_identity(
        "torch.nn.functional.linear($0, $1); $0=torch.float16[1, 12, 4096]:[49152, 4096, 1]+0;"
        " $1=torch.float16[1024, 4096]:[4096, 1]+0"
    )
    sizes, other = next(
        scalings(
            call,
            [stage({"x0": 12, "x1": 1024, "r0": 4096}, {"x0": 16, "x1": 64, "r0": 512})],
            source="for r0 in tl.range(0, r0_size, R0_BLOCK):",
        )
    )
    assert set(sizes) == {12, 1024, 4096}
    m, n, k = (sizes[v] for v in (12, 1024, 4096))
    assert [t.shape for t in other.tensors] == [(1, m, k), (n, k)]
    for new, block in ((m, 16), (n, 64), (k, 512)):
        assert block < new < 4 * block
        assert new % block


def test_a_reshape_keeps_its_product():
    call = parse_identity(
        "torch.reshape($0, (1, 12, 4096)); $0=torch.float16[1, 12, 32, 128]:[49152, 4096, 128, 1]+0"
    )
    sizes, other = next(scalings(call, [stage({"x0": 12 * 4096}, {"x0": 2048})]))
    shape = other.tensors[0].shape
    assert other.args[1] == (1, shape[1], shape[2] * shape[3])
    assert sizes[4096] == shape[2] * shape[3]


def test_sizes_that_are_arguments_change_too():
    call = parse_identity("torch.arange(12)")
    assert next(other.args for _, other in scalings(call, [stage({"x0": 12}, {"x0": 16})])) == (23,)


def test_small_arguments_are_tried_both_ways():
    call = parse_identity("torch.Tensor.transpose($0, 2, 3); $0=torch.float16[2, 2, 3, 8]:[48, 24, 8, 1]+0")
    found = [other.args[1:] for _, other in scalings(call, [stage({"x0": 96}, {"x0": 32})])]
    assert (2, 3) in found


def test_an_op_without_extents_has_no_other_size():
    assert not list(scalings(parse_identity("torch.neg($0); $0=torch.float16[1]:[1]+0"), [stage({}, {})]))


def test_sources_are_compared_up_to_the_numbers_of_temporaries():
    assert canonical("tmp3 = f(tmp1, tmp3)") == canonical("tmp7 = f(tmp2, tmp7)")
    assert canonical("tmp3 = f(tmp1, tmp3)") != canonical("tmp7 = f(tmp2, tmp2)")
    assert canonical("tmp3_raw = f(tmp1)") == canonical("tmp7_raw = f(tmp2)")
    assert canonical("tmp0 = x0_size + 1") != canonical("tmp0 = x0_size + 2")


@pytest.mark.parametrize(("source", "blocks"), [("tl.range(0, r0_size, R0_BLOCK)", 3), ("", 1)])
def test_a_loop_over_a_reduction_turns_at_the_other_size(source, blocks):
    call = parse_identity("torch.mean($0, -1); $0=torch.float16[12, 128]:[128, 1]+0")
    sizes, _ = next(scalings(call, [stage({"x0": 12, "r0": 128}, {"r0": 128})], source=source))
    assert -(-sizes[128] // 128) == blocks


def test_proportional_sizes_keep_what_divides_what():
    call = parse_identity("torch.f($0, 768, 12); $0=torch.float16[196, 1, 768]:[768, 768, 1]+0")
    ((mapping, changed),) = proportional(call)
    assert mapping == {12: 9, 196: 147, 768: 576}
    assert changed.args[1:] == (576, 9)
    assert changed.tensors[0].shape == (147, 1, 576)


def test_sizes_that_no_quarter_divides_have_no_proportional_ones():
    assert not list(proportional(parse_identity("torch.neg($0); $0=torch.float16[3, 2]:[2, 1]+0")))


def test_extents_that_are_looped_over_one_by_one_keep_their_ratios():
    call = parse_identity(
        "torch.nn.functional.interpolate($0, mode='bilinear', size=(24, 20));"
        " $0=torch.float16[1, 3, 12, 12]:[432, 144, 12, 1]+0"
    )
    stages = [stage({"x0": 3, "x1": 24, "x2": 20}, {"x0": 4})]
    found = [(sizes, other) for sizes, other in scalings(call, stages)][:6]
    ratios = [(s, o) for s, o in found if s[12] * 2 == s[24] and s[12] * 5 == s[20] * 3]
    assert [s[12] for s, _ in ratios] == [3, 6]
    sizes, other = ratios[0]
    # The channels are still a ragged tile or two, and the argument follows.
    assert sizes[3] % 4
    assert sizes[3] > 4
    assert other.tensors[0].shape == (1, sizes[3], 3, 3)
    assert dict(other.kwargs)["size"] == (6, 5)


@pytest.mark.parametrize(
    ("values", "factors"),
    [
        ([3, 12, 20, 24], [3, 6]),
        ([3, 12, 18, 20], [6]),
        # No common divisor, one extent alone, or one that a block holds.
        ([12, 13, 24, 25], []),
        ([3, 12], []),
        ([24, 64], []),
    ],
)
def test_ratios_need_a_common_divisor_of_extents_that_no_block_holds(values, factors):
    axes = [AxisRange(24, 1, reduced=False), AxisRange(64, 16, reduced=False)]
    assert [kept[12] for kept in _ratios(values, axes, 1)] == factors


def test_extents_that_one_block_reduces_together_still_fit_it():
    call = parse_identity("torch._is_all_true($0); $0=torch.bool[3, 7]:[7, 1]+0")
    sizes, _ = next(scalings(call, [stage({"r0": 21}, {"r0": 32})]))
    assert set(sizes) == {3, 7}
    assert 21 < sizes[3] * sizes[7] <= 32
    looped = "for r0 in tl.range(0, r0_size, R0_BLOCK):"
    sizes, _ = next(scalings(call, [stage({"r0": 21}, {"r0": 16})], source=looped))
    assert sizes[3] * sizes[7] > 32
