import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   in_ptr1: *fp16 = weight
#   out_ptr1: *fp16 = out
#   x0_size: i32 = 1024
#   r0_size: i32 = 4096
#   in1_stride_x0: i32 = 4096
#   X0_BLOCK: constexpr = 32
#   R0_BLOCK: constexpr = 512
#   CORES: constexpr = 32
@triton.jit
def triton_per_fused_mm_t_view_0(
    in_ptr0, in_ptr1, out_ptr1,
    x0_size, r0_size,
    in1_stride_x0,
    X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[r0_size], strides=[1], block_shape=[R0_BLOCK])
    in1 = tl.make_tensor_descriptor(
        in_ptr1, shape=[x0_size, r0_size], strides=[in1_stride_x0, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out1 = tl.make_tensor_descriptor(out_ptr1, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        acc = tl.zeros([1, X0_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([r0])
            tmp2 = in1.load([x0, r0])
            acc = tl.dot(tmp0[None, :], tl.trans(tmp2), acc, input_precision="ieee")
        tmp8 = tl.reshape(acc, [X0_BLOCK])
        out1.store([x0], tmp8.to(tl.float16))
