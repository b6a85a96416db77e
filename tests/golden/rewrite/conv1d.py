import triton
import triton.language as tl


# grid (8,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = buf0
#   x0_size: i32 = 8
#   x1_size: i32 = 1
#   y0_size: i32 = 8
#   y1_size: i32 = 30
#   z0_size: i32 = 8
#   z1_size: i32 = 1
#   out0_stride_x0: i32 = 32
#   out0_stride_x1: i32 = 1
#   in0_stride_y0: i32 = 30
#   out0_2_stride_y0: i32 = 32
#   out0_2_start_y1: i32 = 1
#   out0_3_stride_z0: i32 = 32
#   out0_3_start_z1: i32 = 31
#   out0_3_stride_z1: i32 = 1
#   Y1_BLOCK: constexpr = 32
#   CORES: constexpr = 8
@triton.jit
def triton_poi_fused_convolution_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size,
    y0_size, y1_size,
    z0_size, z1_size,
    out0_stride_x0, out0_stride_x1,
    in0_stride_y0,
    out0_2_stride_y0, out0_2_start_y1,
    out0_3_stride_z0, out0_3_start_z1, out0_3_stride_z1,
    Y1_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    # Region x: out0[:, : x1_size] = 0.0
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, 1],
        strides=[out0_stride_x0, out0_stride_x1, 1],
        block_shape=[1, 1, 8],
    )
    tiles = x0_size * x1_size
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = tile % x1_size
        x0 = tile // x1_size
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store([x0, x1, 0], tl.full([1, 1, 8], 0.0, tl.float16))

    # Region y: out0[:, out0_2_start_y1 : out0_2_start_y1 + y1_size] from in0
    in0 = tl.make_tensor_descriptor(
        in_ptr0, shape=[y0_size, y1_size], strides=[in0_stride_y0, 1], block_shape=[1, Y1_BLOCK]
    )
    out0_2 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[y0_size, out0_2_start_y1 + y1_size],
        strides=[out0_2_stride_y0, 1],
        block_shape=[1, Y1_BLOCK],
    )
    y1_tiles = tl.cdiv(y1_size, Y1_BLOCK)
    tiles = y0_size * y1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        y1 = (tile % y1_tiles) * Y1_BLOCK
        y0 = tile // y1_tiles
        tmp6 = in0.load([y0, y1])
        out0_2.store([y0, out0_2_start_y1 + y1], tmp6)

    # Region z: out0[:, out0_3_start_z1 : out0_3_start_z1 + z1_size] = 0.0
    out0_3 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[z0_size, out0_3_start_z1 + z1_size, 1],
        strides=[out0_3_stride_z0, out0_3_stride_z1, 1],
        block_shape=[1, 1, 8],
    )
    tiles = z0_size * z1_size
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        z1 = tile % z1_size
        z0 = tile // z1_size
        out0_3.store([z0, out0_3_start_z1 + z1, 0], tl.full([1, 1, 8], 0.0, tl.float16))


# grid (6,)
#   in_ptr0: *fp16 = weight
#   in_ptr1: *fp16 = buf0
#   in_ptr2: *fp16 = bias
#   out_ptr1: *fp16 = out
#   x0_size: i32 = 6
#   x1_size: i32 = 30
#   r0_size: i32 = 8
#   r1_size: i32 = 3
#   in0_stride_x0: i32 = 24
#   in0_stride_r0: i32 = 3
#   in0_stride_r1: i32 = 1
#   in1_stride_r0: i32 = 32
#   in1_stride_r1: i32 = 1
#   in2_stride_x0: i32 = 1
#   out1_stride_x0: i32 = 30
#   X1_BLOCK: constexpr = 32
#   R0_BLOCK: constexpr = 16
#   CORES: constexpr = 6
@triton.jit
def triton_per_fused_convolution_1(
    in_ptr0, in_ptr1, in_ptr2, out_ptr1,
    x0_size, x1_size, r0_size, r1_size,
    in0_stride_x0, in0_stride_r0, in0_stride_r1,
    in1_stride_r0, in1_stride_r1,
    in2_stride_x0,
    out1_stride_x0,
    X1_BLOCK: tl.constexpr, R0_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[x0_size, r0_size, r1_size, 1],
        strides=[in0_stride_x0, in0_stride_r0, in0_stride_r1, 1],
        block_shape=[1, R0_BLOCK, 1, 8],
    )
    in1 = tl.make_tensor_descriptor(
        in_ptr1,
        shape=[r0_size, r1_size, x1_size],
        strides=[in1_stride_r0, in1_stride_r1, 1],
        block_shape=[R0_BLOCK, 1, X1_BLOCK],
    )
    in2 = tl.make_tensor_descriptor(
        in_ptr2, shape=[x0_size, 1], strides=[in2_stride_x0, 1], block_shape=[1, 8]
    )
    out1 = tl.make_tensor_descriptor(
        out_ptr1, shape=[x0_size, x1_size], strides=[out1_stride_x0, 1], block_shape=[1, X1_BLOCK]
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = x0_size * x1_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x1 = (tile % x1_tiles) * X1_BLOCK
        x0 = tile // x1_tiles
        # A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them.
        tmp12 = tl.sum(in2.load([x0, 0])).to(tl.float32)
        tmp8 = tl.zeros([1, X1_BLOCK], tl.float32)
        for r0 in tl.range(0, r0_size, R0_BLOCK):
            for r1 in tl.range(0, r1_size, 1):
                tmp0 = tl.sum(in0.load([x0, r0, r1, 0]), axis=3)
                tmp2 = in1.load([r0, r1, x1])
                tmp8 = tl.dot(
                    tl.reshape(tmp0, [1, R0_BLOCK]),
                    tl.reshape(tmp2, [R0_BLOCK, X1_BLOCK]),
                    tmp8,
                    input_precision="ieee",
                )
        tmp13 = tmp8 + tmp12
        out1.store([x0, x1], tmp13.to(tl.float16))
