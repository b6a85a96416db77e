import triton
import triton.language as tl


# grid (25,)
#   in_ptr0: *fp16 = input
#   in_ptr1: *fp16 = weight
#   in_ptr2: *fp16 = bias
#   out_ptr1: *fp16 = out
#   x0_size: i32 = 12
#   x1_size: i32 = 100
#   r0_size: i32 = 500
#   in0_stride_x0: i32 = 500
#   in1_stride_x1: i32 = 500
#   in2_stride_x1: i32 = 1
#   out1_stride_x0: i32 = 100
#   out1_stride_x1: i32 = 1
#   X0_BLOCK: constexpr = 16
#   X1_BLOCK: constexpr = 4
#   R0_BLOCK: constexpr = 512
#   CORES: constexpr = 25
@triton.jit
def triton_per_fused_addmm_t_0(
    in_ptr0, in_ptr1, in_ptr2, out_ptr1,
    x0_size, x1_size, r0_size,
    in0_stride_x0,
    in1_stride_x1,
    in2_stride_x1,
    out1_stride_x0, out1_stride_x1,
    X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x1_size, r0_size], strides=[in1_stride_x1, 1], block_shape=[X1_BLOCK, R0_BLOCK]
    )
    in2 = tl.make_tensor_descriptor(
        in_ptr2, shape=[x1_size, 1], strides=[in2_stride_x1, 1], block_shape=[X1_BLOCK, 8]
    )
    out1 = tl.make_tensor_descriptor(
        out_ptr1,
        shape=[x0_size, x1_size, 1],
        strides=[out1_stride_x0, out1_stride_x1, 1],
        block_shape=[X0_BLOCK, X1_BLOCK, 8],
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = x0_tiles * x1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = (tile % x1_tiles) * X1_BLOCK
        x0 = (tile // x1_tiles) * X0_BLOCK
        # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
        tmp12 = tl.sum(in2.load([x1, 0]), axis=1).to(tl.float32)
        tmp8 = tl.zeros([X0_BLOCK, X1_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([x0, r0])
            tmp2 = in1.load([x1, r0])
            tmp8 = tl.dot(tmp0, tl.trans(tmp2), tmp8, input_precision="ieee")
        tmp16 = tmp12[None, :] + tmp8
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out1.store([x0, x1, 0], tl.broadcast_to(tmp16[:, :, None].to(tl.float16), [X0_BLOCK, X1_BLOCK, 8]))
