import triton
import triton.language as tl


# grid (4,)
#   in_ptr0: *fp16 = input
#   in_ptr1: *fp16 = weight
#   in_ptr2: *fp16 = bias
#   out_ptr3: *fp16 = out
#   x0_size: i32 = 4
#   r0_size: i32 = 768
#   in0_stride_x0: i32 = 768
#   out3_stride_x0: i32 = 768
#   R0_BLOCK: constexpr = 1024
#   CORES: constexpr = 4
@triton.jit
def triton_per_fused_native_layer_norm_0(
    in_ptr0, in_ptr1, in_ptr2, out_ptr3,
    x0_size, r0_size,
    in0_stride_x0,
    out3_stride_x0,
    R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    in1 = tl.make_tensor_descriptor(in_ptr1, shape=[r0_size], strides=[1], block_shape=[R0_BLOCK])
    in2 = tl.make_tensor_descriptor(in_ptr2, shape=[r0_size], strides=[1], block_shape=[R0_BLOCK])
    out3 = tl.make_tensor_descriptor(
        out_ptr3, shape=[x0_size, r0_size], strides=[out3_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        r0_mask = tl.arange(0, R0_BLOCK) < r0_size
        tmp0 = in0.load([x0, 0]).to(tl.float32)
        tmp19 = in1.load([0]).to(tl.float32)
        tmp22 = in2.load([0]).to(tl.float32)
        tmp5 = tl.sum(tmp0)
        tmp7 = tmp5 / r0_size
        tmp8 = tmp0 - tmp7
        tmp9 = tmp8 * tmp8
        tmp13 = tl.sum(tl.where(r0_mask[None, :], tmp9, 0.0))
        tmp14 = tmp13 / r0_size
        tmp16 = tmp14 + 1e-05
        tmp17 = tl.rsqrt(tmp16)
        tmp18 = tmp8 * tmp17
        tmp21 = tmp18 * tmp19[None, :]
        tmp24 = tmp21 + tmp22[None, :]
        out3.store([x0, 0], tmp24.to(tl.float16))
