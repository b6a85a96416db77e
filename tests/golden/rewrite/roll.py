import triton
import triton.language as tl


# grid (20,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 2
#   x1_size: i32 = 10
#   x2_size: i32 = 20
#   in0_stride_x0: i32 = 200
#   in0_size_d1: i32 = 10
#   in0_stride_d1: i32 = 20
#   out0_stride_x0: i32 = 200
#   out0_stride_x1: i32 = 20
#   X2_BLOCK: constexpr = 32
#   CORES: constexpr = 20
@triton.jit
def triton_poi_fused_roll_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size, x2_size,
    in0_stride_x0, in0_size_d1, in0_stride_d1,
    out0_stride_x0, out0_stride_x1,
    X2_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x0_size, in0_size_d1, x2_size],
        strides=[in0_stride_x0, in0_stride_d1, 1],
        block_shape=[1, 1, X2_BLOCK],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, x2_size],
        strides=[out0_stride_x0, out0_stride_x1, 1],
        block_shape=[1, 1, X2_BLOCK],
    )
    x2_tiles = tl.cdiv(x2_size, X2_BLOCK)
    tiles = x0_size * x1_size * x2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x2 = (tile % x2_tiles) * X2_BLOCK
        outer_x2 = tile // x2_tiles
        x1 = outer_x2 % x1_size
        x0 = outer_x2 // x1_size
        tmp_index0 = (x1 + 7) % in0_size_d1
        tmp0 = in0.load([x0, tmp_index0, x2])
        out0.store([x0, x1, x2], tmp0)
