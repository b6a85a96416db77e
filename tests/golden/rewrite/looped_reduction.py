import triton
import triton.language as tl


# grid (2,)
#   in_ptr0: *fp16 = input
#   out_ptr3: *fp16 = out
#   x0_size: i32 = 2
#   r0_size: i32 = 1000000
#   in0_stride_x0: i32 = 1000000
#   out3_stride_x0: i32 = 1000000
#   R0_BLOCK: constexpr = 8192
#   CORES: constexpr = 2
@triton.jit
def triton_per_fused__softmax_0(
    in_ptr0, out_ptr3,
    x0_size, r0_size,
    in0_stride_x0,
    out3_stride_x0,
    R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    out3 = tl.make_tensor_descriptor(
        out_ptr3, shape=[x0_size, r0_size], strides=[out3_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        tmp5 = tl.full([], float("-inf"), tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            r0_mask = r0 + tl.arange(0, R0_BLOCK) < r0_size
            tmp0 = in0.load([x0, r0]).to(tl.float32)
            tmp5 = tl.maximum(
                tmp5,
                tl.max(tl.where(r0_mask[None, :], tmp0, float("-inf"))),
                propagate_nan=tl.PropagateNan.ALL,
            )
        tmp11 = tl.full([], 0.0, tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            r0_mask = r0 + tl.arange(0, R0_BLOCK) < r0_size
            tmp0 = in0.load([x0, r0]).to(tl.float32)
            tmp6 = tmp0 - tmp5
            tmp7 = tl.exp(tmp6)
            tmp11 = tmp11 + tl.sum(tl.where(r0_mask[None, :], tmp7, 0.0))
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            tmp0 = in0.load([x0, r0]).to(tl.float32)
            tmp6 = tmp0 - tmp5
            tmp7 = tl.exp(tmp6)
            tmp12 = tmp7 / tmp11
            out3.store([x0, r0], tmp12.to(tl.float16))
