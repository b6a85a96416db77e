import triton
import triton.language as tl


# grid (4,)
#   in_ptr0: *fp32 = input
#   out_ptr0: *fp32 = out
#   x0_size: i32 = 4
#   r0_size: i32 = 1000
#   in0_stride_x0: i32 = 1000
#   out0_stride_x0: i32 = 1000
#   R0_BLOCK: constexpr = 1024
#   CORES: constexpr = 4
@triton.jit
def triton_per_fused_cumsum_0(
    in_ptr0, out_ptr0,
    x0_size, r0_size,
    in0_stride_x0,
    out0_stride_x0,
    R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, r0_size], strides=[out0_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        tmp0 = in0.load([x0, 0])
        tmp3 = tl.cumsum(tmp0, axis=1)
        out0.store([x0, 0], tmp3)
