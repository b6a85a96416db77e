import triton
import triton.language as tl


# grid (4,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *i64 = out
#   x0_size: i32 = 4
#   r0_size: i32 = 1000
#   in0_stride_x0: i32 = 1000
#   out0_stride_x0: i32 = 1
#   R0_BLOCK: constexpr = 1024
#   CORES: constexpr = 4
@triton.jit
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def triton_per_fused_argmax_0(
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
        out_ptr0, shape=[x0_size, 1], strides=[out0_stride_x0, 1], block_shape=[1, 2]
    )
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        r0_index = tl.arange(0, R0_BLOCK)
        r0_mask = r0_index < r0_size
        tmp0 = in0.load([x0, 0]).to(tl.float32)
        tmp_2 = r0_index
        tmp_1 = tmp_2.to(tl.int64)
        tmp2_val = tl.reduce(tl.where(r0_mask[None, :], tmp0, float("-inf")), None, maximum)
        tmp_3 = tmp0 == tmp2_val
        tmp_4 = tmp0 != tmp0
        tmp_5 = tmp_3 | tmp_4
        tmp_6 = tl.where(tmp_5, tmp_1[None, :], 9223372036854775807)
        tmp2_idx = tl.min(tl.where(r0_mask[None, :], tmp_6, 9223372036854775807))
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store([x0, 0], tl.broadcast_to(tmp2_idx, [1, 2]))
