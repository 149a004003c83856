// OneHot, Where, UnravelIndex: from indices to flags or coordinates, and back.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class OneHotKernel : public BytesKernel {
 public:
  explicit OneHotKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        axis_(attr_of<int64_t>(info, "axis")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& indices = context.input(0);
    TAGFLOW_ASSIGN(const int64_t depth, index_scalar(context, 1, "depth"));
    if (depth < 0) return context.fail("depth {} is negative", depth);
    for (int i : {1, 2, 3})
      if (!context.input(i).is_scalar())
        return context.fail("input {} must be a scalar, got {}", i,
                            context.input(i).describe());
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis_, indices.rank() + 1));
    Shape shape = indices.shape();
    shape.insert_dim(at, depth);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    fill_elements(context, context.input(3), *output);
    const int64_t inner = product(shape.dims(), at + 1, shape.rank());
    visit_movable(output->dtype(), [&]<class T>(TypeTag<T>) {
      const T& on = *static_cast<const T*>(context.input(2).raw());
      T* to = static_cast<T*>(output->mutable_raw());
      const ElementWriter<T> writer(*output);
      for (int64_t i = 0; i < indices.num_elements(); ++i) {
        context.check_cancelled();
        const int64_t index = index_at(indices, i);
        if (index < 0 || index >= depth) continue;
        writer.assign(to[(i / inner * depth + index) * inner + i % inner], on);
      }
    });
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    const Tensor& depth = context.input(1);
    const double count = depth.num_elements() == 1
                             ? double(std::max<int64_t>(index_at(depth, 0), 0))
                             : 0;
    return double(context.input(0).num_elements()) *
           (10 + count * double(dtype_size(context.input(2).dtype())));
  }

  int64_t axis_;
};

// The coordinates of the elements that are not zero, in row-major order.
class WhereKernel : public BytesKernel {
 public:
  explicit WhereKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1) {}

  Status compute(KernelContext& context) const override {
    Status status = context.fail("elements of {} are never zero or one",
                                 context.input(0).describe());
    auto visit = [&]<class T>(TypeTag<T>) { status = find<T>(context); };
    const DataType dtype = context.input(0).dtype();
    // Integers, bools and quantized types are zero where their bits are.
    if (is_floating(dtype) || is_complex(dtype)) {
      visit_numeric(dtype, visit);
    } else {
      visit_size(dtype, visit);
    }
    return status;
  }

 private:
  template <class T>
  static Status find(KernelContext& context) {
    const Tensor& input = context.input(0);
    const T* values = static_cast<const T*>(input.raw());
    const int64_t count = input.num_elements();
    const int rank = input.rank();
    const int64_t found = std::count_if(
        values, values + count, [](const T& value) { return value != T(0); });
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, {found, int64_t(rank)}));
    auto* to = output->mutable_data<int64_t>();
    Shape::Dims at(size_t(rank), 0);
    // Coordinates along the last dimension are written directly.
    const int64_t row = rank > 0 ? input.dim(rank - 1) : 1;
    constexpr int64_t kLook = 1 << 10;
    for (int64_t start = 0; start < count; start += row) {
      for (int64_t i = 0; i < row; ++i) {
        if (i % kLook == 0) context.check_cancelled();
        if (!(values[start + i] != T(0))) continue;
        to = std::copy(at.begin(), at.end(), to);
        if (rank > 0) to[-1] = i;
      }
      for (int d = rank - 2; d >= 0; --d) {
        if (++at[size_t(d)] < input.dim(d)) break;
        at[size_t(d)] = 0;
      }
    }
    return {};
  }
};

// The coordinates of elements given by their numbers.
class UnravelIndexKernel final : public BytesKernel {
 public:
  explicit UnravelIndexKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 2) {}

  Status compute(KernelContext& context) const override {
    const Tensor& indices = context.input(0);
    if (indices.rank() > 1)
      return context.fail("indices must be a scalar or a vector, got {}",
                          indices.describe());
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "dims", dims));
    int64_t limit = 1;
    for (const int64_t dim : dims) {
      const auto larger = checked_multiply(limit, dim);
      if (dim <= 0 || !larger)
        return context.fail("dims [{}] are not dimensions of a tensor",
                            fmt::join(dims, ","));
      limit = *larger;
    }
    Shape shape{int64_t(dims.size())};
    if (indices.rank() == 1) shape.add_dim(indices.dim(0));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    const int64_t count = indices.num_elements();
    for (int64_t i = 0; i < count; ++i) {
      context.check_cancelled();
      int64_t index = index_at(indices, i);
      if (index < 0 || index >= limit)
        return context.fail("index {} is outside [0, {})", index, limit);
      for (size_t d = dims.size(); d-- > 0; index /= dims[d])
        TAGFLOW_RETURN_IF_ERROR(store_index(
            context, *output, int64_t(d) * count + i, index % dims[d]));
    }
    return {};
  }
};

}  // namespace

void register_array_one_hot_kernels(KernelRegistry& registry) {
  registry.add<OneHotKernel>("OneHot");
  registry.add<WhereKernel>("Where");
  registry.add<UnravelIndexKernel>("UnravelIndex");
}

}  // namespace tagflow::devices
