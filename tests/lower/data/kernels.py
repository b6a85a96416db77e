# ruff: noqa: N803
"""Kernels of the form that the rewriter emits; the tests read this file as text."""

import triton
import triton.language as tl


@triton.jit
def silu(in_ptr0, out_ptr0, x0_size, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        tmp0 = in0.load([x0]).to(tl.float32)
        tmp1 = tmp0 / (1.0 + tl.exp(-tmp0))
        out0.store([x0], tmp1.to(tl.float16))


@triton.jit
def softmax(
    in_ptr0,
    out_ptr0,
    x0_size,
    r0_size,
    in0_stride_x0,
    X0_BLOCK: tl.constexpr,
    R0_BLOCK: tl.constexpr,
    CORES: tl.constexpr,
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        r0_mask = (tl.arange(0, R0_BLOCK) < r0_size)[None, :]
        tmp0 = in0.load([x0, 0]).to(tl.float32)
        tmp1 = tl.where(r0_mask, tmp0, float("-inf"))
        tmp2 = tl.max(tmp1, axis=1, keep_dims=True)
        tmp3 = tl.exp(tmp0 - tmp2)
        tmp4 = tl.where(r0_mask, tmp3, 0.0)
        tmp5 = tl.sum(tmp4, axis=1, keep_dims=True)
        out0.store([x0, 0], (tmp3 / tmp5).to(tl.float32))


@triton.jit
def unmasked_max(
    in_ptr0, out_ptr0, x0_size, r0_size, X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        out0.store([x0], tl.max(in0.load([x0, 0]), axis=1))


@triton.jit
def mean(
    in_ptr0, out_ptr0, x0_size, r0_size, X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        tmp0 = tl.zeros([X0_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 += tl.sum(in0.load([x0, r0]).to(tl.float32), axis=1)
        out0.store([x0], tmp0 / r0_size)


# The accumulator keeps the reduced dimension, so a ragged last block has to be padded, not narrowed.
@triton.jit
def wide_sum(
    in_ptr0, out_ptr0, x0_size, r0_size, X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        tmp0 = tl.zeros([X0_BLOCK, R0_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 += in0.load([x0, r0]).to(tl.float32)
        out0.store([x0], tl.sum(tmp0, axis=1))


@triton.jit
def linear(
    in_ptr0,
    in_ptr1,
    out_ptr0,
    x0_size,
    x1_size,
    r0_size,
    X0_BLOCK: tl.constexpr,
    X1_BLOCK: tl.constexpr,
    R0_BLOCK: tl.constexpr,
    CORES: tl.constexpr,
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x1_size, r0_size], strides=[r0_size, 1], block_shape=[X1_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, x1_size], strides=[x1_size, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = tl.cdiv(x0_size, X0_BLOCK) * x1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = tile % x1_tiles * X1_BLOCK
        x0 = tile // x1_tiles * X0_BLOCK
        tmp2 = tl.zeros([X0_BLOCK, X1_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([x0, r0])
            tmp1 = in1.load([x1, r0])
            tmp2 = tl.dot(tmp0, tl.trans(tmp1), tmp2, input_precision="ieee")
        out0.store([x0, x1], tmp2.to(tl.float16))


@triton.jit
def near_linear(
    in_ptr0,
    in_ptr1,
    out_ptr0,
    x0_size,
    x1_size,
    r0_size,
    X0_BLOCK: tl.constexpr,
    X1_BLOCK: tl.constexpr,
    R0_BLOCK: tl.constexpr,
    CORES: tl.constexpr,
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x1_size, r0_size], strides=[r0_size, 1], block_shape=[X1_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, x1_size], strides=[x1_size, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = tl.cdiv(x0_size, X0_BLOCK) * x1_tiles
    core_tiles = tl.cdiv(tiles, CORES)
    first = tl.program_id(0) * core_tiles
    for tile in tl.range(first, tl.minimum(first + core_tiles, tiles)):
        x1 = tile % x1_tiles * X1_BLOCK
        x0 = tile // x1_tiles * X0_BLOCK
        tmp2 = tl.zeros([X0_BLOCK, X1_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([x0, r0])
            tmp1 = in1.load([x1, r0])
            tmp2 = tl.dot(tmp0, tl.trans(tmp1), tmp2, input_precision="ieee")
        out0.store([x0, x1], tmp2.to(tl.float16))


@triton.jit
def batched(
    in_ptr0,
    in_ptr1,
    out_ptr0,
    z_size,
    x0_size,
    x1_size,
    r0_size,
    Z_BLOCK: tl.constexpr,
    X0_BLOCK: tl.constexpr,
    X1_BLOCK: tl.constexpr,
    R0_BLOCK: tl.constexpr,
    CORES: tl.constexpr,
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[z_size, x0_size, r0_size],
        strides=[x0_size * r0_size, r0_size, 1],
        block_shape=[Z_BLOCK, X0_BLOCK, R0_BLOCK],
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1,
        shape=[z_size, r0_size, x1_size],
        strides=[x1_size * r0_size, x1_size, 1],
        block_shape=[Z_BLOCK, R0_BLOCK, X1_BLOCK],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[z_size, x0_size, x1_size],
        strides=[x0_size * x1_size, x1_size, 1],
        block_shape=[Z_BLOCK, X0_BLOCK, X1_BLOCK],
    )
    for tile in tl.range(tl.program_id(0), tl.cdiv(z_size, Z_BLOCK), CORES):
        z = tile * Z_BLOCK
        tmp0 = tl.dot(in0.load([z, 0, 0]), in1.load([z, 0, 0]), input_precision="ieee")
        out0.store([z, 0, 0], tmp0)


@triton.jit
def rope_mul(
    in_ptr0,
    in_ptr1,
    out_ptr0,
    x0_size,
    x1_size,
    x2_size,
    X0_BLOCK: tl.constexpr,
    X1_BLOCK: tl.constexpr,
    X2_BLOCK: tl.constexpr,
    CORES: tl.constexpr,
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x1_size, x0_size, x2_size],
        strides=[x0_size * x2_size, x2_size, 1],
        block_shape=[X1_BLOCK, X0_BLOCK, X2_BLOCK],
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x1_size, x2_size], strides=[x2_size, 1], block_shape=[X1_BLOCK, X2_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, x2_size],
        strides=[x1_size * x2_size, x2_size, 1],
        block_shape=[X0_BLOCK, X1_BLOCK, X2_BLOCK],
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    x2_tiles = tl.cdiv(x2_size, X2_BLOCK)
    tiles = tl.cdiv(x0_size, X0_BLOCK) * x1_tiles * x2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x2 = tile % x2_tiles * X2_BLOCK
        x1 = tile // x2_tiles % x1_tiles * X1_BLOCK
        x0 = tile // x2_tiles // x1_tiles * X0_BLOCK
        tmp0 = in0.load([x1, x0, x2]).permute([1, 0, 2]).to(tl.float32)
        tmp1 = in1.load([x1, x2])[None, :, :].to(tl.float32)
        out0.store([x0, x1, x2], (tmp0 * tmp1).to(tl.float16))


@triton.jit
def embedding(
    in_ptr0, in_ptr1, out_ptr0, x0_size, x1_size, rows, X1_BLOCK: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size, 1], strides=[1, 1], block_shape=[1, 2])
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[rows, x1_size], strides=[x1_size, 1], block_shape=[1, X1_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, x1_size], strides=[x1_size, 1], block_shape=[1, X1_BLOCK]
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    for tile in tl.range(tl.program_id(0), x0_size * x1_tiles, CORES):
        x1 = tile % x1_tiles * X1_BLOCK
        x0 = tile // x1_tiles
        tmp0 = tl.sum(in0.load([x0, 0]))
        out0.store([x0, x1], in1.load([tmp0.to(tl.int32), x1]))


@triton.jit
def scatter(in_ptr0, in_ptr1, out_ptr0, x0_size, x1_size, rows, X1_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size, 1], strides=[1, 1], block_shape=[1, 2])
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x0_size, x1_size], strides=[x1_size, 1], block_shape=[1, X1_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[rows, x1_size], strides=[x1_size, 1], block_shape=[1, X1_BLOCK]
    )
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        tmp0 = tl.sum(in0.load([x0, 0]))
        out0.store([tmp0.to(tl.int32), 0], in1.load([x0, 0]))


@triton.jit
def wide_gather(in_ptr0, in_ptr1, out_ptr0, x0_size, rows, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size, 1], strides=[1, 1], block_shape=[1, 2])
    in1 = tl.make_tensor_descriptor(in_ptr1, shape=[rows], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[rows], strides=[1], block_shape=[X0_BLOCK])
    tmp0 = tl.sum(in0.load([0, 0]))
    out0.store([0], in1.load([tmp0.to(tl.int32)]))


@triton.jit
def arange(out_ptr0, x0_size, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        x0 = tile * X0_BLOCK
        out0.store([x0], (x0 + tl.arange(0, X0_BLOCK)).to(tl.int64))


@triton.jit
def triangle(
    in_ptr0, out_ptr0, x0_size, x1_size, X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, x1_size], strides=[x1_size, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, x1_size], strides=[x1_size, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        x0 = tile * X0_BLOCK
        rows = (x0 + tl.arange(0, X0_BLOCK))[:, None]
        columns = tl.arange(0, X1_BLOCK)[None, :]
        out0.store([x0, 0], tl.where(columns <= rows, in0.load([x0, 0]), 0.0))


# A view read from below its beginning: the first lanes are padding.
@triton.jit
def shifted(in_ptr0, out_ptr0, x0_size, shift, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        x0 = tile * X0_BLOCK
        out0.store([x0], in0.load([x0 - shift]))


@triton.jit
def argmax(
    in_ptr0, out_ptr0, x0_size, r0_size, X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        x0 = tile * X0_BLOCK
        r0_mask = (tl.arange(0, R0_BLOCK) < r0_size)[None, :]
        tmp0 = tl.where(r0_mask, in0.load([x0, 0]).to(tl.float32), float("-inf"))
        out0.store([x0], tl.argmax(tmp0, axis=1).to(tl.int64))


@triton.jit
def cumsum(
    in_ptr0,
    out_ptr0,
    x0_size,
    r0_size,
    X0_BLOCK: tl.constexpr,
    R0_BLOCK: tl.constexpr,
    REVERSE: tl.constexpr,
    CORES: tl.constexpr,
):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        x0 = tile * X0_BLOCK
        out0.store([x0, 0], tl.cumsum(in0.load([x0, 0]), axis=1, reverse=REVERSE))


@triton.jit
def _welford(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    ratio = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * weight_a * ratio, weight


@triton.jit
def variance(in_ptr0, out_ptr0, x0_size, X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, R0_BLOCK], strides=[R0_BLOCK, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0_BLOCK), CORES):
        x0 = tile * X0_BLOCK
        tmp0 = in0.load([x0, 0]).to(tl.float32)
        zeros = tl.zeros_like(tmp0)
        _, m2, weight = tl.reduce((tmp0, zeros, zeros + 1.0), 1, _welford)
        out0.store([x0], m2 / (weight - 1.0))


@triton.jit
def flat_sum(in_ptr0, out_ptr0, x0_size, r0_size, R0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[r0_size, 1], block_shape=[4, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[1, 1], strides=[1, 1], block_shape=[1, 4])
    tmp0 = tl.sum(in0.load([0, 0]).to(tl.float32))
    out0.store([0, 0], tl.full([1, 4], 0.0, tl.float32) + tmp0)


@triton.jit
def pointers(in_ptr0, out_ptr0, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    offsets = tl.arange(0, X0_BLOCK)
    tmp0 = tl.load(in_ptr0 + offsets)
    tl.store(out_ptr0 + offsets, tmp0)


@triton.jit
def histogram(in_ptr0, out_ptr0, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[X0_BLOCK], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[X0_BLOCK], strides=[1], block_shape=[X0_BLOCK])
    out0.store([0], tl.histogram(in0.load([0]), X0_BLOCK))
