import triton
import triton.language as tl


# grid (24,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 3
#   x1_size: i32 = 2
#   x2_size: i32 = 2
#   x3_size: i32 = 3
#   x4_size: i32 = 3
#   x5_size: i32 = 2
#   in0_step_x2: i32 = 18
#   in0_step_x1: i32 = 3
#   in0_step_x3: i32 = 1
#   in0_size_d0: i32 = 24
#   in0_stride_d0: i32 = 6
#   in0_stride_x4: i32 = 36
#   in0_stride_x5: i32 = 3
#   in0_stride_x0: i32 = 1
#   out0_step_x1: i32 = 6
#   out0_step_x2: i32 = 3
#   out0_step_x3: i32 = 1
#   out0_size_d0: i32 = 12
#   out0_stride_d0: i32 = 6
#   out0_stride_x0: i32 = 72
#   out0_stride_x4: i32 = 2
#   out0_stride_x5: i32 = 1
#   X0_BLOCK: constexpr = 4
#   X4_BLOCK: constexpr = 2
#   X5_BLOCK: constexpr = 2
#   CORES: constexpr = 24
@triton.jit
def triton_poi_fused_clone_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size, x2_size, x3_size, x4_size, x5_size,
    in0_step_x2, in0_step_x1, in0_step_x3, in0_size_d0, in0_stride_d0, in0_stride_x4, in0_stride_x5,
    in0_stride_x0,
    out0_step_x1, out0_step_x2, out0_step_x3, out0_size_d0, out0_stride_d0, out0_stride_x0, out0_stride_x4,
    out0_stride_x5,
    X0_BLOCK: tl.constexpr, X4_BLOCK: tl.constexpr, X5_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[in0_size_d0, x4_size, x5_size, x0_size, 1],
        strides=[in0_stride_d0, in0_stride_x4, in0_stride_x5, in0_stride_x0, 1],
        block_shape=[1, X4_BLOCK, X5_BLOCK, X0_BLOCK, 8],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[out0_size_d0, x0_size, x4_size, x5_size, 1],
        strides=[out0_stride_d0, out0_stride_x0, out0_stride_x4, out0_stride_x5, 1],
        block_shape=[1, X0_BLOCK, X4_BLOCK, X5_BLOCK, 8],
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x4_tiles = tl.cdiv(x4_size, X4_BLOCK)
    x5_tiles = tl.cdiv(x5_size, X5_BLOCK)
    tiles = x0_tiles * x1_size * x2_size * x3_size * x4_tiles * x5_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x5 = (tile % x5_tiles) * X5_BLOCK
        outer_x5 = tile // x5_tiles
        x4 = (outer_x5 % x4_tiles) * X4_BLOCK
        outer_x4 = outer_x5 // x4_tiles
        x3 = outer_x4 % x3_size
        outer_x3 = outer_x4 // x3_size
        x2 = outer_x3 % x2_size
        outer_x2 = outer_x3 // x2_size
        x1 = outer_x2 % x1_size
        x0 = (outer_x2 // x1_size) * X0_BLOCK
        # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
        tmp0 = tl.reshape(
            tl.permute(
                tl.reshape(
                    tl.sum(
                        in0.load([x2 * in0_step_x2 + x1 * in0_step_x1 + x3 * in0_step_x3, x4, x5, x0, 0]),
                        axis=4,
                    ),
                    [X4_BLOCK, X5_BLOCK, X0_BLOCK],
                ),
                [2, 0, 1],
            ),
            [X0_BLOCK, 1, 1, 1, X4_BLOCK, X5_BLOCK],
        )
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store(
            [x1 * out0_step_x1 + x2 * out0_step_x2 + x3 * out0_step_x3, x0, x4, x5, 0],
            tl.broadcast_to(
                tl.reshape(tmp0, [1, X0_BLOCK, X4_BLOCK, X5_BLOCK, 1]), [1, X0_BLOCK, X4_BLOCK, X5_BLOCK, 8]
            ),
        )
