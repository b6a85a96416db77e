import triton
import triton.language as tl


# grid (32,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 172032
#   X0_BLOCK: constexpr = 2048
#   CORES: constexpr = 32
@triton.jit
def triton_poi_fused_silu_0(in_ptr0, out_ptr0, x0_size, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        tmp0 = in0.load([x0]).to(tl.float32)
        tmp2 = -tmp0
        tmp3 = tl.exp(tmp2)
        tmp5 = tmp3 + 1.0
        tmp6 = tmp0 / tmp5
        out0.store([x0], tmp6.to(tl.float16))
