import triton
import triton.language as tl


# grid (22,)
#   in_ptr0: *fp16 = input
#   out_ptr0: *fp16 = out
#   x0_size: i32 = 6
#   x1_size: i32 = 11
#   x2_size: i32 = 1
#   y0_size: i32 = 6
#   y1_size: i32 = 11
#   y2_size: i32 = 20
#   z0_size: i32 = 6
#   z1_size: i32 = 11
#   z2_size: i32 = 2
#   out0_stride_x0: i32 = 253
#   out0_stride_x1: i32 = 23
#   out0_stride_x2: i32 = 1
#   in0_stride_y0: i32 = 200
#   in0_low_y1: i32 = 1
#   in0_size_y1: i32 = 10
#   in0_stride_y1: i32 = 20
#   out0_2_stride_y0: i32 = 253
#   out0_2_stride_y1: i32 = 23
#   out0_2_start_y2: i32 = 1
#   out0_3_stride_z0: i32 = 253
#   out0_3_stride_z1: i32 = 23
#   out0_3_start_z2: i32 = 21
#   out0_3_stride_z2: i32 = 1
#   X1_BLOCK: constexpr = 4
#   Y0_BLOCK: constexpr = 4
#   Y2_BLOCK: constexpr = 32
#   Z1_BLOCK: constexpr = 4
#   Z2_BLOCK: constexpr = 2
#   CORES: constexpr = 22
@triton.jit
def triton_poi_fused_constant_pad_nd_0(
    in_ptr0, out_ptr0,
    x0_size, x1_size, x2_size,
    y0_size, y1_size, y2_size,
    z0_size, z1_size, z2_size,
    out0_stride_x0, out0_stride_x1, out0_stride_x2,
    in0_stride_y0, in0_low_y1, in0_size_y1, in0_stride_y1,
    out0_2_stride_y0, out0_2_stride_y1, out0_2_start_y2,
    out0_3_stride_z0, out0_3_stride_z1, out0_3_start_z2, out0_3_stride_z2,
    X1_BLOCK: tl.constexpr, Y0_BLOCK: tl.constexpr, Y2_BLOCK: tl.constexpr, Z1_BLOCK: tl.constexpr,
    Z2_BLOCK: tl.constexpr, CORES: tl.constexpr,
):  # fmt: skip
    # Region x: out0[:, :, : x2_size] = 0.0
    out0 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[x0_size, x1_size, x2_size, 1],
        strides=[out0_stride_x0, out0_stride_x1, out0_stride_x2, 1],
        block_shape=[1, X1_BLOCK, 1, 8],
    )
    x1_tiles = tl.cdiv(x1_size, X1_BLOCK)
    tiles = x0_size * x1_tiles * x2_size
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        x2 = tile % x2_size
        outer_x2 = tile // x2_size
        x1 = (outer_x2 % x1_tiles) * X1_BLOCK
        x0 = outer_x2 // x1_tiles
        # A block is at least 16 bytes: lanes past the one element are clipped.
        out0.store([x0, x1, x2, 0], tl.full([1, X1_BLOCK, 1, 8], 0.0, tl.float16))

    # Region y: out0[:, :, out0_2_start_y2 : out0_2_start_y2 + y2_size] from in0
    in0 = tl.make_tensor_descriptor(
        in_ptr0,
        shape=[y0_size, in0_size_y1, y2_size],
        strides=[in0_stride_y0, in0_stride_y1, 1],
        block_shape=[Y0_BLOCK, 1, Y2_BLOCK],
    )
    out0_2 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[y0_size, y1_size, out0_2_start_y2 + y2_size],
        strides=[out0_2_stride_y0, out0_2_stride_y1, 1],
        block_shape=[Y0_BLOCK, 1, Y2_BLOCK],
    )
    y0_tiles = tl.cdiv(y0_size, Y0_BLOCK)
    y2_tiles = tl.cdiv(y2_size, Y2_BLOCK)
    tiles = y0_tiles * y1_size * y2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        y2 = (tile % y2_tiles) * Y2_BLOCK
        outer_y2 = tile // y2_tiles
        y1 = outer_y2 % y1_size
        y0 = (outer_y2 // y1_size) * Y0_BLOCK
        tmp2 = y1 >= in0_low_y1
        in0_y1 = tl.maximum(y1 - in0_low_y1, 0)
        tmp9 = tl.where(tmp2, in0.load([y0, in0_y1, y2]), 0.0)
        out0_2.store([y0, y1, out0_2_start_y2 + y2], tmp9)

    # Region z: out0[:, :, out0_3_start_z2 : out0_3_start_z2 + z2_size] = 0.0
    out0_3 = tl.make_tensor_descriptor(
        out_ptr0,
        shape=[z0_size, z1_size, out0_3_start_z2 + z2_size, 1],
        strides=[out0_3_stride_z0, out0_3_stride_z1, out0_3_stride_z2, 1],
        block_shape=[1, Z1_BLOCK, Z2_BLOCK, 8],
    )
    z1_tiles = tl.cdiv(z1_size, Z1_BLOCK)
    z2_tiles = tl.cdiv(z2_size, Z2_BLOCK)
    tiles = z0_size * z1_tiles * z2_tiles
    for tile in tl.range(tl.program_id(0), tiles, CORES):
        z2 = (tile % z2_tiles) * Z2_BLOCK
        outer_z2 = tile // z2_tiles
        z1 = (outer_z2 % z1_tiles) * Z1_BLOCK
        z0 = outer_z2 // z1_tiles
        out0_3.store([z0, z1, out0_3_start_z2 + z2, 0], tl.full([1, Z1_BLOCK, Z2_BLOCK, 8], 0.0, tl.float16))
