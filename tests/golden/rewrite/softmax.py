import triton
import triton.language as tl


# grid (24,)
#   in_ptr0: *fp16 = input
#   out_ptr3: *fp32 = out
#   x0_size: i32 = 384
#   r0_size: i32 = 12
#   in0_stride_x0: i32 = 12
#   out3_stride_x0: i32 = 12
#   X0_BLOCK: constexpr = 16
#   R0_BLOCK: constexpr = 16
#   CORES: constexpr = 24
@triton.jit
def triton_per_fused__softmax__to_copy_0(
    in_ptr0, out_ptr3,
    x0_size, r0_size,
    in0_stride_x0,
    out3_stride_x0,
    X0_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    out3 = tl.make_tensor_descriptor(
        out_ptr3, shape=[x0_size, r0_size], strides=[out3_stride_x0, 1], block_shape=[X0_BLOCK, R0_BLOCK]
    )
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        r0_mask = tl.arange(0, R0_BLOCK) < r0_size
        tmp0 = in0.load([x0, 0]).to(tl.float32)
        tmp5 = tl.max(tl.where(r0_mask[None, :], tmp0, float("-inf")), axis=1)
        tmp6 = tmp0 - tmp5[:, None]
        tmp7 = tl.exp(tmp6)
        tmp11 = tl.sum(tl.where(r0_mask[None, :], tmp7, 0.0), axis=1)
        tmp12 = tmp7 / tmp11[:, None]
        out3.store([x0, 0], tmp12)
