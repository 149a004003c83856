// Shape, ShapeN, Size, Rank, Reshape, ExpandDims, Squeeze, BroadcastArgs: ops
// on shapes, which never access elements.
#include <algorithm>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// Also ShapeN.
class ShapeKernel : public CheapKernel {
 public:
  explicit ShapeKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Tensor& input = context.input(i);
      TAGFLOW_ASSIGN(Tensor * shape,
                     context.allocate_output(i, {int64_t(input.rank())}));
      for (int d = 0; d < input.rank(); ++d)
        TAGFLOW_RETURN_IF_ERROR(store_index(context, *shape, d, input.dim(d)));
    }
    return {};
  }
};

class SizeKernel : public CheapKernel {
 public:
  explicit SizeKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Tensor * size, context.allocate_output(0, {}));
    return store_index(context, *size, 0, context.input(0).num_elements());
  }
};

class RankKernel : public CheapKernel {
 public:
  explicit RankKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    context.set_output(0, Tensor::scalar(int32_t(context.input(0).rank())));
    return {};
  }
};

// The product of all dimensions except -1, and except 0 if `skip_zeros`.
Result<int64_t> product_of_known(const KernelContext& context,
                                 std::span<const int64_t> dims,
                                 bool skip_zeros = true) {
  int64_t known = 1;
  for (int64_t dim : dims) {
    const bool skipped = dim < 0 || (dim == 0 && skip_zeros);
    const auto count = checked_multiply(known, skipped ? 1 : dim);
    if (!count) return context.fail("the shape has too many elements");
    known = *count;
  }
  return known;
}

// Replaces a dimension of -1 by the size that fits. If the shape also has a
// dimension of 0, the others keep their ratio: [0,6] as [0,-1,2] is [0,3,2].
Status infer_open_dim(const KernelContext& context, const Tensor& input,
                      Shape::Dims& dims) {
  int64_t* open = nullptr;
  for (int64_t& dim : dims) {
    if (dim < -1 || (dim == -1 && open != nullptr))
      return context.fail(
          "the shape [{}] has {}", fmt::join(dims, ","),
          dim == -1 ? "several dimensions of -1" : "a negative dimension");
    if (dim == -1) open = &dim;
  }
  if (open == nullptr) return {};
  TAGFLOW_ASSIGN(const int64_t known,
                 product_of_known(context, {dims.data(), dims.size()}));
  const Shape shape = input.shape();
  const bool has_zero = std::ranges::find(dims, 0) != dims.end();
  TAGFLOW_ASSIGN(const int64_t count,
                 product_of_known(context, shape.dims(), has_zero));
  if (count % known != 0 && input.num_elements() != 0)
    return context.fail("cannot reshape {} to [{}]: {} is not a multiple of {}",
                        input.describe(), fmt::join(dims, ","), count, known);
  *open = count / known;
  return {};
}

class ReshapeKernel : public CheapKernel {
 public:
  explicit ReshapeKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(shape_vector(context, 1, "shape", dims));
    // As in TensorFlow, the limit is one less than for other ops.
    if (dims.size() >= size_t(kMaxRank))
      return context.fail("{} dimensions are wanted, there may be {}",
                          dims.size(), kMaxRank - 1);
    TAGFLOW_RETURN_IF_ERROR(infer_open_dim(context, input, dims));
    TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
    if (shape.num_elements() != input.num_elements())
      return context.fail("{} has {} elements, the shape {} has {}",
                          input.describe(), input.num_elements(),
                          shape.to_string(), shape.num_elements());
    TAGFLOW_ASSIGN(context.output(0), input.reshaped(shape));
    return {};
  }
};

class ExpandDimsKernel : public CheapKernel {
 public:
  explicit ExpandDimsKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t axis, index_scalar(context, 1, "dim"));
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis, input.rank() + 1, "dim"));
    Shape shape = input.shape();
    shape.insert_dim(at, 1);
    if (shape.rank() > kMaxRank)
      return context.fail("the rank would be over {}", kMaxRank);
    TAGFLOW_ASSIGN(context.output(0), input.reshaped(shape));
    return {};
  }
};

class SqueezeKernel : public CheapKernel {
 public:
  explicit SqueezeKernel(const KernelInfo& info)
      : axes_(attr_of<std::vector<int64_t>>(info, "squeeze_dims")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Shape shape;
    if (axes_.empty()) {
      for (int i = 0; i < input.rank(); ++i)
        if (input.dim(i) != 1) shape.add_dim(input.dim(i));
    } else {
      std::vector<bool> squeezed(size_t(input.rank()), false);
      for (int64_t axis : axes_) {
        TAGFLOW_ASSIGN(const int at, checked_axis(context, axis, input.rank()));
        if (input.dim(at) != 1)
          return context.fail("cannot squeeze dimension {} of {}", at,
                              input.describe());
        squeezed[size_t(at)] = true;
      }
      for (int i = 0; i < input.rank(); ++i)
        if (!squeezed[size_t(i)]) shape.add_dim(input.dim(i));
    }
    TAGFLOW_ASSIGN(context.output(0), input.reshaped(shape));
    return {};
  }

 private:
  std::vector<int64_t> axes_;
};

class BroadcastArgsKernel : public CheapKernel {
 public:
  explicit BroadcastArgsKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    Shape::Dims longer, shorter;
    const int long_input =
        context.input(0).num_elements() >= context.input(1).num_elements() ? 0
                                                                           : 1;
    TAGFLOW_RETURN_IF_ERROR(
        index_vector(context, long_input, "a shape", longer));
    TAGFLOW_RETURN_IF_ERROR(
        index_vector(context, 1 - long_input, "a shape", shorter));
    const size_t offset = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) {
      int64_t& dim = longer[offset + i];
      if (dim != shorter[i] && dim != 1 && shorter[i] != 1)
        return context.fail("dimensions {} and {} do not broadcast", dim,
                            shorter[i]);
      if (dim == 1) dim = shorter[i];
    }
    TAGFLOW_ASSIGN(Tensor * shape,
                   context.allocate_output(0, {int64_t(longer.size())}));
    for (size_t i = 0; i < longer.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          store_index(context, *shape, int64_t(i), longer[i]));
    return {};
  }
};

}  // namespace

void register_array_shape_kernels(KernelRegistry& registry) {
  registry.add<ShapeKernel>("Shape");
  registry.add<ShapeKernel>("ShapeN");
  registry.add<SizeKernel>("Size");
  registry.add<RankKernel>("Rank");
  registry.add<ReshapeKernel>("Reshape");
  registry.add<ExpandDimsKernel>("ExpandDims");
  registry.add<SqueezeKernel>("Squeeze");
  registry.add<BroadcastArgsKernel>("BroadcastArgs");
}

}  // namespace tagflow::devices
