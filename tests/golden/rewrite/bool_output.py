import triton
import triton.language as tl


# grid (3,)
#   in_ptr0: *i64 = input
#   in_ptr1: *i64 = other
#   out_ptr0: *i8 = out
#   x0_size: i32 = 12
#   x1_size: i32 = 12
#   out0_stride_x0: i32 = 12
#   X0_BLOCK: constexpr = 4
#   X1_BLOCK: constexpr = 16
#   CORES: constexpr = 3
@triton.jit
def triton_poi_fused_le_0(
    in_ptr0, in_ptr1, out_ptr0,
    x0_size, x1_size,
    out0_stride_x0,
    X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    in1 = tl.make_tensor_descriptor(in_ptr1, shape=[x1_size], strides=[1], block_shape=[X1_BLOCK])
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, x1_size], strides=[out0_stride_x0, 1], block_shape=[X0_BLOCK, X1_BLOCK]
    )
    x0_tiles = tl.cdiv(x0_size, X0_BLOCK)
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = x0_tiles * x1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = (tile % x1_tiles) * X1_BLOCK
        x0 = (tile // x1_tiles) * X0_BLOCK
        tmp0 = in0.load([x0])
        tmp1 = in1.load([x1])
        tmp2 = tmp0[:, None] <= tmp1[None, :]
        out0.store([x0, x1], tmp2.to(tl.int8))
