import triton
import triton.language as tl


# grid (28,)
#   in_ptr0: *i64 = index
#   in_ptr1: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 4
#   x1_size: i32 = 7
#   in0_stride_x0: i32 = 7
#   in0_stride_x1: i32 = 1
#   in1_stride_x0: i32 = 100
#   in1_size_d1: i32 = 100
#   in1_stride_d1: i32 = 1
#   out0_stride_x0: i32 = 7
#   out0_stride_x1: i32 = 1
#   CORES: constexpr = 28
@triton.jit
def triton_poi_fused_gather_0(
    in_ptr0, in_ptr1, out_ptr0,
    x0_size, x1_size,
    in0_stride_x0, in0_stride_x1,
    in1_stride_x0, in1_size_d1, in1_stride_d1,
    out0_stride_x0, out0_stride_x1,
    CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, x1_size, 1], strides=[in0_stride_x0, in0_stride_x1, 1], block_shape=[1, 1, 2]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1,
        shape=[x0_size, in1_size_d1, 1],
        strides=[in1_stride_x0, in1_stride_d1, 1],
        block_shape=[1, 1, 8],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, 1],
        strides=[out0_stride_x0, out0_stride_x1, 1],
        block_shape=[1, 1, 8],
    )
    tiles = x0_size * x1_size
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = tile % x1_size
        x0 = tile // x1_size
        # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
        tmp0 = tl.sum(in0.load([x0, x1, 0]))
        tmp2 = tl.sum(in1.load([x0, tmp0.to(tl.int32), 0]))
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store([x0, x1, 0], tl.broadcast_to(tmp2, [1, 1, 8]))
