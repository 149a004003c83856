// SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace: blocks of spatial
// dimensions become batch or depth, and back.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// One spatial dimension of a space-batch op. Position p of the padded space is
// index p / block of the batch part p % block.
struct BlockDim {
  int64_t block = 1;
  int64_t before = 0, after = 0;  // paddings, or crops
  int64_t space = 0;              // size of the unpadded or cropped dimension
  int64_t cells = 0;              // size of the dimension in blocks
};
using BlockDims = boost::container::small_vector<BlockDim, 4>;

// SpaceToBatch, BatchToSpace and their ND twins.
class SpaceBatchKernel : public BytesKernel {
 public:
  explicit SpaceBatchKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.3),
        to_batch_(info.node().op().starts_with("Space")),
        block_size_(attr_of<int64_t>(info, "block_size")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    BlockDims dims;
    TAGFLOW_RETURN_IF_ERROR(read_blocks(context, dims));
    TAGFLOW_RETURN_IF_ERROR(read_margins(context, dims));
    const int spatial = int(dims.size());
    if (input.rank() < 1 + spatial)
      return context.fail("{} has no batch and {} spatial dimensions",
                          input.describe(), spatial);
    int64_t blocks = 1;
    for (int i = 0; i < spatial; ++i) {
      TAGFLOW_RETURN_IF_ERROR(
          resolve(context, i, input.dim(i + 1), dims[size_t(i)]));
      const auto count = checked_multiply(blocks, dims[size_t(i)].block);
      if (!count) return context.fail("the size of a block overflows");
      blocks = *count;
    }
    Shape shape = input.shape();
    int64_t batch = input.dim(0);  // of the space
    if (to_batch_) {
      const auto count = checked_multiply(batch, blocks);
      if (!count) return context.fail("the batch dimension overflows");
      shape.set_dim(0, *count);
    } else {
      if (batch % blocks != 0)
        return context.fail(
            "the batch of {} is not a multiple of the block of {}",
            input.describe(), blocks);
      batch /= blocks;
      shape.set_dim(0, batch);
    }
    for (int i = 0; i < spatial; ++i)
      shape.set_dim(i + 1,
                    to_batch_ ? dims[size_t(i)].cells : dims[size_t(i)].space);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    if (blocks == 1 && shape == input.shape()) {
      context.set_output(0, input);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    if (to_batch_ && output->num_elements() != input.num_elements())
      zero_elements(context, *output);
    if (input.num_elements() > 0)
      for (int64_t part = 0; part < blocks; ++part)
        copy_part(context, dims, part, batch, *output);
    return {};
  }

 private:
  Status read_blocks(const KernelContext& context, BlockDims& dims) const {
    Shape::Dims sizes{block_size_, block_size_};
    if (context.num_inputs() == 3) {
      TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "block_shape", sizes));
    } else if (context.input(0).rank() != 4) {
      return context.fail("the input must be of rank 4, is {}",
                          context.input(0).describe());
    }
    for (int64_t size : sizes) {
      if (size < 1) return context.fail("block size {} is not positive", size);
      dims.emplace_back().block = size;
    }
    return {};
  }

  static Status read_margins(const KernelContext& context, BlockDims& dims) {
    const Tensor& margins = context.input(context.num_inputs() - 1);
    if (margins.rank() != 2 || margins.dim(1) != 2 ||
        margins.dim(0) != int64_t(dims.size()))
      return context.fail("paddings or crops must be [{},2], are {}",
                          dims.size(), margins.describe());
    for (size_t i = 0; i < dims.size(); ++i) {
      dims[i].before = index_at(margins, 2 * int64_t(i));
      dims[i].after = index_at(margins, 2 * int64_t(i) + 1);
      if (dims[i].before < 0 || dims[i].after < 0)
        return context.fail("padding or crop [{},{}] is negative",
                            dims[i].before, dims[i].after);
    }
    return {};
  }

  Status resolve(const KernelContext& context, int i, int64_t input_dim,
                 BlockDim& dim) const {
    int64_t margin = 0;
    if (__builtin_add_overflow(dim.before, dim.after, &margin))
      return context.fail("the paddings or crops {} overflow", i);
    if (to_batch_) {
      dim.space = input_dim;
      int64_t padded = 0;
      if (__builtin_add_overflow(input_dim, margin, &padded) ||
          padded % dim.block != 0)
        return context.fail(
            "dimension {} of {} with paddings [{},{}] is not a multiple of {}",
            i + 1, context.input(0).describe(), dim.before, dim.after,
            dim.block);
      dim.cells = padded / dim.block;
      return {};
    }
    dim.cells = input_dim;
    const auto padded = checked_multiply(input_dim, dim.block);
    if (!padded || margin > *padded)
      return context.fail("crops [{},{}] do not fit {} blocks of {}",
                          dim.before, dim.after, input_dim, dim.block);
    dim.space = *padded - margin;
    return {};
  }

  // Moves what batch part `part` holds. Its cell c is position
  // c * block + offset - before of the space, if that exists.
  void copy_part(const KernelContext& context, const BlockDims& dims,
                 int64_t part, int64_t batch, Tensor& output) const {
    const Tensor& input = context.input(0);
    const Shape space_shape = to_batch_ ? input.shape() : output.shape();
    const Shape batch_shape = to_batch_ ? output.shape() : input.shape();
    const auto space = row_major_strides(space_shape.dims());
    const auto cells = row_major_strides(batch_shape.dims());
    StridedCopy copy;  // from space to batch
    copy.to = part * batch * cells[0];
    copy.add(batch, space[0], cells[0]);
    for (size_t i = dims.size(); i-- > 0;) {
      const BlockDim& dim = dims[i];
      const int64_t offset = part % dim.block - dim.before;
      part /= dim.block;
      // The first and last cell with 0 <= c * block + offset < space.
      const int64_t first =
          offset >= 0 ? 0 : (dim.block - 1 - offset) / dim.block;
      const int64_t end =
          offset >= dim.space
              ? 0
              : (dim.space - offset + dim.block - 1) / dim.block;
      if (first >= std::min(end, dim.cells)) return;
      copy.from += (first * dim.block + offset) * space[i + 1];
      copy.to += first * cells[i + 1];
      copy.loops.insert(copy.loops.begin() + 1,
                        {std::min(end, dim.cells) - first,
                         dim.block * space[i + 1], cells[i + 1]});
    }
    int64_t rest = 1;
    for (int d = int(dims.size()) + 1; d < space_shape.rank(); ++d)
      rest *= space_shape.dim(d);
    copy.add(rest, 1, 1);
    if (!to_batch_) copy.reverse();
    strided_copy(context, std::move(copy), input, output);
  }

  bool to_batch_;
  int64_t block_size_;
};

// SpaceToDepth and DepthToSpace. Depth index (y * block + x) * channels + c
// holds channel c of position (y, x) of a block.
class SpaceDepthKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    if (attr_of<std::string>(info, "data_format") == "NCHW_VECT_C")
      return error(Code::kUnimplemented,
                   "[{}] NCHW_VECT_C is not supported on CPU",
                   info.node().op());
    return std::unique_ptr<Kernel>(new SpaceDepthKernel(info));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.rank() != 4)
      return context.fail("the input must be of rank 4, is {}",
                          input.describe());
    const int depth_at = nhwc_ ? 3 : 1;
    const int height_at = nhwc_ ? 1 : 2;
    const auto area = checked_multiply(block_, block_);
    if (!area) return context.fail("the block size {} is too large", block_);
    Shape shape = input.shape();
    for (int i : {height_at, height_at + 1})
      TAGFLOW_RETURN_IF_ERROR(scale(context, !to_depth_, i, block_, shape));
    TAGFLOW_RETURN_IF_ERROR(scale(context, to_depth_, depth_at, *area, shape));
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};

    const Shape input_shape = input.shape();
    const Shape& space = to_depth_ ? input_shape : shape;
    const Shape& deep = to_depth_ ? shape : input_shape;
    const auto at_space = row_major_strides(space.dims());
    const auto at_deep = row_major_strides(deep.dims());
    const int64_t channels = space.dim(depth_at);
    const auto h = size_t(height_at), w = h + 1, d = size_t(depth_at);
    const CopyLoop batch{space.dim(0), at_space[0], at_deep[0]};
    const CopyLoop rows{deep.dim(height_at), block_ * at_space[h], at_deep[h]};
    const CopyLoop cols{deep.dim(height_at + 1), block_ * at_space[w],
                        at_deep[w]};
    const CopyLoop y{block_, at_space[h], block_ * channels * at_deep[d]};
    const CopyLoop x{block_, at_space[w], channels * at_deep[d]};
    const CopyLoop depth{channels, at_space[d], at_deep[d]};
    StridedCopy copy;
    if (nhwc_) {
      copy.loops = {batch, rows, y, cols, x, depth};
    } else {
      copy.loops = {batch, depth, rows, y, cols, x};
    }
    if (!to_depth_) copy.reverse();
    strided_copy(context, std::move(copy), input, *output);
    return {};
  }

 private:
  explicit SpaceDepthKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.3),
        to_depth_(info.node().op() == "SpaceToDepth"),
        nhwc_(attr_of<std::string>(info, "data_format") == "NHWC"),
        block_(attr_of<int64_t>(info, "block_size")) {}

  static Status scale(const KernelContext& context, bool up, int at, int64_t by,
                      Shape& shape) {
    const int64_t dim = shape.dim(at);
    const auto size =
        up ? checked_multiply(dim, by) : std::optional<int64_t>(dim / by);
    if (!size || (!up && dim % by != 0))
      return context.fail("dimension {} of {} does not fit a factor of {}", at,
                          context.input(0).describe(), by);
    shape.set_dim(at, *size);
    return {};
  }

  bool to_depth_, nhwc_;
  int64_t block_;
};

}  // namespace

void register_array_block_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"SpaceToBatch", "SpaceToBatchND", "BatchToSpace", "BatchToSpaceND"})
    registry.add<SpaceBatchKernel>(op);
  registry.add<SpaceDepthKernel>("SpaceToDepth");
  registry.add<SpaceDepthKernel>("DepthToSpace");
}

}  // namespace tagflow::devices
