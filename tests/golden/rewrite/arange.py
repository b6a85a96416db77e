import triton
import triton.language as tl


# grid (32,)
#   out_ptr0: *i64 = out
#   x0_size: i32 = 1000
#   X0_BLOCK: constexpr = 32
#   CORES: constexpr = 32
@triton.jit
def triton_poi_fused_arange_0(out_ptr0, x0_size, X0_BLOCK: tl.constexpr, CORES: tl.constexpr):
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        x0_index = x0 + tl.arange(0, X0_BLOCK)
        tmp0 = (4 * x0_index + 3).to(tl.int64)
        out0.store([x0], tmp0)
