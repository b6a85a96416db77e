import triton
import triton.language as tl


# grid (24,)
#   in_ptr0: *i64 = index
#   in_ptr1: *fp16 = source
#   out_ptr0: *fp16 = input
#   x0_size: i32 = 8
#   x1_size: i32 = 12
#   x2_size: i32 = 128
#   in0_stride_x1: i32 = 1
#   in1_stride_x1: i32 = 1024
#   in1_stride_x0: i32 = 128
#   out0_stride_x0: i32 = 262144
#   out0_size_d1: i32 = 2048
#   out0_stride_d1: i32 = 128
#   X0_BLOCK: constexpr = 4
#   X2_BLOCK: constexpr = 128
#   CORES: constexpr = 24
@triton.jit
def triton_poi_fused_index_copy_0(
    in_ptr0, in_ptr1, out_ptr0,
    x0_size, x1_size, x2_size,
    in0_stride_x1,
    in1_stride_x1, in1_stride_x0,
    out0_stride_x0, out0_size_d1, out0_stride_d1,
    X0_BLOCK: tl.constexpr, X2_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x1_size, 1], strides=[in0_stride_x1, 1], block_shape=[1, 2]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1,
        shape=[x1_size, x0_size, x2_size],
        strides=[in1_stride_x1, in1_stride_x0, 1],
        block_shape=[1, X0_BLOCK, X2_BLOCK],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, out0_size_d1, x2_size],
        strides=[out0_stride_x0, out0_stride_d1, 1],
        block_shape=[X0_BLOCK, 1, X2_BLOCK],
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x2_tiles = tl.cdiv(x2_size, X2_BLOCK)
    tiles = x0_tiles * x1_size * x2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x2 = (tile % x2_tiles) * X2_BLOCK
        outer_x2 = tile // x2_tiles
        x1 = outer_x2 % x1_size
        x0 = (outer_x2 // x1_size) * X0_BLOCK
        # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
        tmp0 = tl.sum(in0.load([x1, 0]))
        tmp6 = tl.permute(in1.load([x1, x0, x2]), [1, 0, 2])
        # A negative index counts from the end.
        tmp2 = tmp0 + out0_size_d1
        tmp3 = tmp0 < 0
        tmp4 = tl.where(tmp3, tmp2, tmp0)
        out0.store([x0, tmp4.to(tl.int32), x2], tmp6)
