import triton
import triton.language as tl


# grid (1,)
#   in_ptr0: *fp32 = input
#   out_ptr0: *fp32 = out
#   x0_size: i32 = 1
#   r0_size: i32 = 40000
#   R0_BLOCK: constexpr = 65536
#   CORES: constexpr = 1
@triton.jit
def triton_per_fused_sum_0(in_ptr0, out_ptr0, x0_size, r0_size, R0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[r0_size], strides=[1], block_shape=[R0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[1], strides=[1], block_shape=[4])
    for x0 in tl.range(tl.program_id(0), x0_size, CORES):
        tmp0 = in0.load([0])
        tmp4 = tl.sum(tmp0)
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store([0], tl.broadcast_to(tmp4, [4]))
