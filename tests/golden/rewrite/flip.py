import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 4
#   x1_size: i32 = 100
#   in0_stride_x0: i32 = 100
#   in0_stride_x1: i32 = 1
#   out0_stride_x0: i32 = 100
#   out0_stride_x1: i32 = 1
#   X0_BLOCK: constexpr = 4
#   CORES: constexpr = 32
@triton.jit
def triton_poi_fused_flip_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size,
    in0_stride_x0, in0_stride_x1,
    out0_stride_x0, out0_stride_x1,
    X0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x0_size, x1_size, 1],
        strides=[in0_stride_x0, in0_stride_x1, 1],
        block_shape=[X0_BLOCK, 1, 8],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, 1],
        strides=[out0_stride_x0, out0_stride_x1, 1],
        block_shape=[X0_BLOCK, 1, 8],
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    tiles = x0_tiles * x1_size
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = tile % x1_size
        x0 = (tile // x1_size) * X0_BLOCK
        # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
        tmp0 = tl.sum(in0.load([x0, x1_size - 1 - x1, 0]), axis=2)
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store([x0, x1, 0], tl.broadcast_to(tmp0[:, :, None], [X0_BLOCK, 1, 8]))
