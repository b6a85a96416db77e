import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 12
#   x1_size: i32 = 32
#   x2_size: i32 = 128
#   in0_stride_x1: i32 = 1536
#   in0_stride_x0: i32 = 128
#   out0_stride_x0: i32 = 4096
#   out0_stride_x1: i32 = 128
#   X0_BLOCK: constexpr = 16
#   X2_BLOCK: constexpr = 128
#   CORES: constexpr = 32
@triton.jit
def triton_poi_fused_clone_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size, x2_size,
    in0_stride_x1, in0_stride_x0,
    out0_stride_x0, out0_stride_x1,
    X0_BLOCK: tl.constexpr, X2_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x1_size, x0_size, x2_size],
        strides=[in0_stride_x1, in0_stride_x0, 1],
        block_shape=[1, X0_BLOCK, X2_BLOCK],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, x2_size],
        strides=[out0_stride_x0, out0_stride_x1, 1],
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
        tmp0 = tl.permute(in0.load([x1, x0, x2]), [1, 0, 2])
        out0.store([x0, x1, x2], tmp0)
