import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   in_ptr1: *fp16 = other
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 12
#   x1_size: i32 = 32
#   x2_size: i32 = 128
#   in0_stride_x0: i32 = 4096
#   in0_stride_x1: i32 = 128
#   in1_stride_x0: i32 = 128
#   out0_stride_x0: i32 = 4096
#   out0_stride_x1: i32 = 128
#   X0_BLOCK: constexpr = 16
#   X1_BLOCK: constexpr = 2
#   X2_BLOCK: constexpr = 64
#   CORES: constexpr = 32
@triton.jit
def triton_poi_fused_mul_0(
    in_ptr0, in_ptr1, out_ptr0,
    x0_size, x1_size, x2_size,
    in0_stride_x0, in0_stride_x1,
    in1_stride_x0,
    out0_stride_x0, out0_stride_x1,
    X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, X2_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x0_size, x1_size, x2_size],
        strides=[in0_stride_x0, in0_stride_x1, 1],
        block_shape=[X0_BLOCK, X1_BLOCK, X2_BLOCK],
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x0_size, x2_size], strides=[in1_stride_x0, 1], block_shape=[X0_BLOCK, X2_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, x2_size],
        strides=[out0_stride_x0, out0_stride_x1, 1],
        block_shape=[X0_BLOCK, X1_BLOCK, X2_BLOCK],
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    x2_tiles = tl.cdiv(x2_size, X2_BLOCK)
    tiles = x0_tiles * x1_tiles * x2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x2 = (tile % x2_tiles) * X2_BLOCK
        outer_x2 = tile // x2_tiles
        x1 = (outer_x2 % x1_tiles) * X1_BLOCK
        x0 = (outer_x2 // x1_tiles) * X0_BLOCK
        tmp0 = in0.load([x0, x1, x2]).to(tl.float32)
        tmp1 = in1.load([x0, x2]).to(tl.float32)
        tmp2 = tmp0 * tmp1[:, None, :]
        out0.store([x0, x1, x2], tmp2.to(tl.float16))
