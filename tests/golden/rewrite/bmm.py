import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   in_ptr1: *fp16 = other
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 32
#   x1_size: i32 = 12
#   x2_size: i32 = 12
#   r0_size: i32 = 128
#   in0_stride_x1: i32 = 4096
#   in0_stride_x0: i32 = 128
#   in1_stride_x0: i32 = 1536
#   in1_stride_r0: i32 = 12
#   out0_stride_x0: i32 = 144
#   out0_stride_x1: i32 = 12
#   X1_BLOCK: constexpr = 16
#   X2_BLOCK: constexpr = 16
#   R0_BLOCK: constexpr = 128
#   CORES: constexpr = 32
@triton.jit
def triton_per_fused_bmm_view_0(
    in_ptr0, in_ptr1, out_ptr0,
    x0_size, x1_size, x2_size, r0_size,
    in0_stride_x1, in0_stride_x0,
    in1_stride_x0, in1_stride_r0,
    out0_stride_x0, out0_stride_x1,
    X1_BLOCK: tl.constexpr, X2_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x1_size, x0_size, r0_size],
        strides=[in0_stride_x1, in0_stride_x0, 1],
        block_shape=[X1_BLOCK, 1, R0_BLOCK],
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1,
        shape=[x0_size, r0_size, x2_size],
        strides=[in1_stride_x0, in1_stride_r0, 1],
        block_shape=[1, R0_BLOCK, X2_BLOCK],
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, x2_size],
        strides=[out0_stride_x0, out0_stride_x1, 1],
        block_shape=[1, X1_BLOCK, X2_BLOCK],
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    x2_tiles = tl.cdiv(x2_size, X2_BLOCK)
    tiles = x0_size * x1_tiles * x2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x2 = (tile % x2_tiles) * X2_BLOCK
        outer_x2 = tile // x2_tiles
        x1 = (outer_x2 % x1_tiles) * X1_BLOCK
        x0 = outer_x2 // x1_tiles
        tmp6 = tl.zeros([1, X1_BLOCK, X2_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([x1, x0, r0])
            tmp2 = in1.load([x0, r0, x2])
            tmp6 = tl.dot(tl.permute(tmp0, [1, 0, 2]), tmp2, tmp6, input_precision="ieee")
        out0.store([x0, x1, x2], tmp6.to(tl.float16))
