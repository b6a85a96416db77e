import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   in_ptr1: *fp16 = weight
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 12
#   x1_size: i32 = 1024
#   r0_size: i32 = 4096
#   in0_stride_x0: i32 = 4096
#   in1_stride_x1: i32 = 4096
#   out0_stride_x0: i32 = 1024
#   X0_BLOCK: constexpr = 16
#   X1_BLOCK: constexpr = 32
#   R0_BLOCK: constexpr = 512
#   CORES: constexpr = 32
@triton.jit
def triton_per_fused_mm_t_view_0(
    in_ptr0, in_ptr1, out_ptr0,
    x0_size, x1_size, r0_size,
    in0_stride_x0,
    in1_stride_x1,
    out0_stride_x0,
    X0_BLOCK: tl.constexpr, X1_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x1_size, r0_size], strides=[in1_stride_x1, 1], block_shape=[X1_BLOCK, R0_BLOCK]
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
        tmp6 = tl.zeros([X0_BLOCK, X1_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([x0, r0])
            tmp2 = in1.load([x1, r0])
            tmp6 = tl.dot(tmp0, tl.trans(tmp2), tmp6, input_precision="ieee")
        out0.store([x0, x1], tmp6.to(tl.float16))
