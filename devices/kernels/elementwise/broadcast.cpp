// BroadcastTo, and BroadcastGradientArgs: the axes over which gradients of
// broadcast operands are summed.
#include "devices/broadcast.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

class BroadcastToKernel final : public Kernel {
 public:
  explicit BroadcastToKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "shape", dims));
    const Result<Shape> made = Shape::make({dims.data(), dims.size()});
    if (!made.ok()) return context.fail("{}", made.status().message());
    const Shape& shape = *made;
    const Tensor& from = context.input(0);
    const int added = shape.rank() - from.rank();
    bool fits = added >= 0;
    for (int i = 0; fits && i < from.rank(); ++i)
      fits = from.dim(i) == 1 || from.dim(i) == shape.dim(added + i);
    if (!fits)
      return context.fail("incompatible shapes: {} cannot be broadcast to {}",
                          from.describe(), shape.to_string());
    if (from.num_elements() == shape.num_elements()) {
      TAGFLOW_ASSIGN(Tensor same, from.reshaped(shape));
      context.set_output(0, std::move(same));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (out->num_elements() > 0) copy(context, from, *out);
    return {};
  }

  double cost(const KernelContext& context) const override {
    // The values of input 1 determine the result's size.
    Shape::Dims dims;
    if (!index_vector(context, 1, "shape", dims).ok()) return 0;
    double elements = 1;
    for (const int64_t dim : dims) elements *= std::max(double(dim), 0.0);
    return 0.3 * elements;
  }

 private:
  static void copy(const KernelContext& context, const Tensor& from,
                   Tensor& out) {
    const Shape to = out.shape(), shape = from.shape();
    const Shape::Dims from_strides = row_major_strides(shape.dims());
    const Shape::Dims to_strides = row_major_strides(to.dims());
    StridedCopy plan;
    const int added = to.rank() - shape.rank();
    for (int i = 0; i < to.rank(); ++i) {
      const bool moves = i >= added && shape.dim(i - added) != 1;
      plan.add(to.dim(i), moves ? from_strides[size_t(i - added)] : 0,
               to_strides[size_t(i)]);
    }
    strided_copy(context, std::move(plan), from, out);
  }
};

// For two shapes broadcast together: the axes of the result along which each
// was repeated; its gradient is summed over them. Axes where both are 1 are in
// both lists, unless the shapes are equal and nothing is summed.
class BroadcastGradientArgsKernel final : public CheapKernel {
 public:
  explicit BroadcastGradientArgsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    Shape::Dims x, y;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 0, "s0", x));
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "s1", y));
    Shape::Dims x_axes, y_axes;
    const size_t rank = x == y ? 0 : std::max(x.size(), y.size());
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t a = aligned(x, rank, axis), b = aligned(y, rank, axis);
      if (a != b && a != 1 && b != 1)
        return context.fail("incompatible shapes: [{}] and [{}]",
                            fmt::join(x, ","), fmt::join(y, ","));
      if (a == 1) x_axes.push_back(int64_t(axis));
      if (b == 1) y_axes.push_back(int64_t(axis));
    }
    TAGFLOW_RETURN_IF_ERROR(write(context, 0, x_axes));
    return write(context, 1, y_axes);
  }

 private:
  static int64_t aligned(const Shape::Dims& dims, size_t rank, size_t axis) {
    const size_t missing = rank - dims.size();
    return axis < missing ? 1 : dims[axis - missing];
  }

  static Status write(KernelContext& context, int output,
                      const Shape::Dims& axes) {
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(
                                     output, Shape{int64_t(axes.size())}));
    if (out->dtype() == DataType::kInt32) {
      std::copy(axes.begin(), axes.end(), out->mutable_data<int32_t>());
    } else {
      std::copy(axes.begin(), axes.end(), out->mutable_data<int64_t>());
    }
    return {};
  }
};

}  // namespace

void register_broadcast_kernels(KernelRegistry& registry) {
  registry.add<BroadcastToKernel>("BroadcastTo");
  registry.add<BroadcastGradientArgsKernel>("BroadcastGradientArgs");
}

}  // namespace tagflow::devices
