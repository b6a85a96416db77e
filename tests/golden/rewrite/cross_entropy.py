import triton
import triton.language as tl


# grid (4,)
#   in_ptr0: *fp32 = input
#   out_ptr0: *fp32 = buf0
#   out_ptr2: *fp32 = buf1
#   x0_size: i32 = 4
#   r0_size: i32 = 33
#   in0_stride_x0: i32 = 33
#   out2_stride_x0: i32 = 1
#   out0_stride_x0: i32 = 1
#   R0_BLOCK: constexpr = 64
#   CORES: constexpr = 4
@triton.jit
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def triton_per_fused__log_softmax_0(
    in_ptr0, out_ptr0, out_ptr2,
    x0_size, r0_size,
    in0_stride_x0,
    out2_stride_x0,
    out0_stride_x0,
    R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[x0_size, r0_size], strides=[in0_stride_x0, 1], block_shape=[1, R0_BLOCK]
    )
    out2 = tl.make_tensor_descriptor(
        out_ptr2, shape=[x0_size, 1], strides=[out2_stride_x0, 1], block_shape=[1, 4]
    )
    out0 = tl.make_tensor_descriptor(
        out_ptr0, shape=[x0_size, 1], strides=[out0_stride_x0, 1], block_shape=[1, 4]
    )
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        r0_mask = tl.arange(0, R0_BLOCK) < r0_size
        tmp0 = in0.load([x0, 0])
        tmp4 = tl.reduce(tl.where(r0_mask[None, :], tmp0, float("-inf")), None, maximum)
        tmp5 = tmp0 - tmp4
        tmp6 = tl.exp(tmp5)
        tmp10 = tl.sum(tl.where(r0_mask[None, :], tmp6, 0.0))
        tmp11 = tl.log(tmp10)
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out2.store([x0, 0], tl.broadcast_to(tmp11, [1, 4]))
        out0.store([x0, 0], tl.broadcast_to(tmp4, [1, 4]))


# grid (1,)
#   in_ptr0: *i64 = target
#   in_ptr1: *fp32 = input
#   in_ptr2: *fp32 = buf0
#   in_ptr3: *fp32 = buf1
#   out_ptr2: *fp32 = out
#   x0_size: i32 = 1
#   r0_size: i32 = 4
#   in0_stride_r0: i32 = 1
#   in2_stride_r0: i32 = 1
#   in3_stride_r0: i32 = 1
#   in1_stride_r0: i32 = 33
#   in1_size_d1: i32 = 33
#   in1_stride_d1: i32 = 1
#   CORES: constexpr = 1
@triton.jit
def triton_per_fused__log_softmax_nll_loss_forward_1(
    in_ptr0, in_ptr1, in_ptr2, in_ptr3, out_ptr2,
    x0_size, r0_size,
    in0_stride_r0,
    in2_stride_r0,
    in3_stride_r0,
    in1_stride_r0, in1_size_d1, in1_stride_d1,
    CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[r0_size, 1], strides=[in0_stride_r0, 1], block_shape=[1, 2]
    )
    in2 = tl.make_tensor_descriptor(
        in_ptr2, shape=[r0_size, 1], strides=[in2_stride_r0, 1], block_shape=[1, 4]
    )
    in3 = tl.make_tensor_descriptor(
        in_ptr3, shape=[r0_size, 1], strides=[in3_stride_r0, 1], block_shape=[1, 4]
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1,
        shape=[r0_size, in1_size_d1, 1],
        strides=[in1_stride_r0, in1_stride_d1, 1],
        block_shape=[1, 1, 4],
    )
    out2 = tl.make_tensor_descriptor(out_ptr2, shape=[1], strides=[1], block_shape=[4])
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        tmp17 = tl.full([], 0.0, tl.float32)
        tmp22 = tl.full([], 0, tl.int64)
        for r0 in tl.range(0, r0_size, 1):
            # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
            tmp0 = tl.sum(in0.load([r0, 0]))
            tmp7 = tl.sum(in2.load([r0, 0]))
            tmp9 = tl.sum(in3.load([r0, 0]))
            tmp2 = tmp0 != -100
            tmp4 = tl.where(tmp2, tmp0, 0)
            tmp6 = tl.sum(in1.load([r0, tmp4.to(tl.int32), 0]))
            tmp8 = tmp6 - tmp7
            tmp10 = tmp8 - tmp9
            tmp11 = -tmp10
            tmp13 = tl.where(tmp2, tmp11, 0.0)
            tmp18 = tmp2.to(tl.int64)
            tmp17 = tmp17 + tmp13
            tmp22 = tmp22 + tmp18
        tmp23 = tmp22.to(tl.float32)
        tmp24 = tmp17 / tmp23
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out2.store([0], tl.broadcast_to(tmp24, [4]))
