import triton
import triton.language as tl


# grid (24,)
#   in_ptr0: *fp16 = tensors0
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 384
#   x1_size: i32 = 64
#   in0_stride_x0: i32 = 64
#   out0_stride_x0: i32 = 128
#   X0_BLOCK: constexpr = 16
#   X1_BLOCK: constexpr = 64
#   CORES: constexpr = 24
@triton.jit
def triton_poi_fused_cat_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size,
    in0_stride_x0,
    out0_stride_x0,
    X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, x1_size], strides=[in0_stride_x0, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, x1_size], strides=[out0_stride_x0, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = x0_tiles * x1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = (tile % x1_tiles) * X1_BLOCK
        x0 = (tile // x1_tiles) * X0_BLOCK
        tmp0 = in0.load([x0, x1])
        out0.store([x0, x1], tmp0)


# grid (24,)
#   in_ptr0: *fp16 = tensors1
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 384
#   x1_size: i32 = 64
#   in0_stride_x0: i32 = 64
#   out0_stride_x0: i32 = 128
#   out0_start_x1: i32 = 64
#   X0_BLOCK: constexpr = 16
#   X1_BLOCK: constexpr = 64
#   CORES: constexpr = 24
@triton.jit
def triton_poi_fused_cat_1(
    in_ptr0, out_ptr0,
    x0_size, x1_size,
    in0_stride_x0,
    out0_stride_x0, out0_start_x1,
    X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, x1_size], strides=[in0_stride_x0, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, out0_start_x1 + x1_size],
        strides=[out0_stride_x0, 1],
        block_shape=[X0_BLOCK, X1_BLOCK],
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = x0_tiles * x1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = (tile % x1_tiles) * X1_BLOCK
        x0 = (tile // x1_tiles) * X0_BLOCK
        tmp0 = in0.load([x0, x1])
        out0.store([x0, out0_start_x1 + x1], tmp0)
