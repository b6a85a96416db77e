import triton
import triton.language as tl


# grid (9,)
#   in_ptr0: *i8 = condition
#   in_ptr1: *fp16 = x1
#   in_ptr2: *fp16 = y
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 144
#   X0_BLOCK: constexpr = 16
#   CORES: constexpr = 9
@triton.jit
def triton_poi_fused_where_0(
    in_ptr0, in_ptr1, in_ptr2, out_ptr0,
    x0_size,
    X0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    in1 = tl.make_tensor_descriptor(in_ptr1, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    in2 = tl.make_tensor_descriptor(in_ptr2, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size], strides=[1], block_shape=[X0_BLOCK])
    tiles = tl.cdiv(x0_size, X0_BLOCK)
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x0 = tile * X0_BLOCK
        tmp0 = in0.load([x0]).to(tl.int1)
        tmp1 = in1.load([x0]).to(tl.float32)
        tmp2 = in2.load([x0]).to(tl.float32)
        tmp3 = tl.where(tmp0, tmp1, tmp2)
        out0.store([x0], tmp3.to(tl.float16))
