// Split, SplitV, Unpack, DynamicPartition: divide a tensor into several.
#include <numeric>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// Output i gets indices [begin, begin + size) of dimension `at`, with the shape
// `shape`.
Status copy_part(KernelContext& context, const Tensor& input, int at,
                 int64_t begin, int64_t size, int i, const Shape& shape) {
  TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(i, shape));
  if (output->num_elements() == 0) return {};
  const Shape whole = input.shape();
  const int64_t rows = product(whole.dims(), 0, at);
  const int64_t slice = product(whole.dims(), at + 1, whole.rank());
  StridedCopy copy;
  copy.from = begin * slice;
  copy.add(rows, input.dim(at) * slice, size * slice);
  copy.add(size * slice, 1, 1);
  strided_copy(context, std::move(copy), input, *output);
  return {};
}

class SplitKernel : public BytesKernel {
 public:
  explicit SplitKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(1);
    if (!context.input(0).is_scalar())
      return context.fail("split_dim must be a scalar, got {}",
                          context.input(0).describe());
    TAGFLOW_ASSIGN(const int64_t axis, index_scalar(context, 0, "split_dim"));
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis, input.rank(), "split_dim"));
    const int count = context.num_outputs();
    if (input.dim(at) % count != 0)
      return context.fail("cannot split dimension {} of {} into {}", at,
                          input.describe(), count);
    if (count == 1) {
      context.set_output(0, input);
      return {};
    }
    Shape shape = input.shape();
    const int64_t size = input.dim(at) / count;
    shape.set_dim(at, size);
    for (int i = 0; i < count; ++i)
      TAGFLOW_RETURN_IF_ERROR(
          copy_part(context, input, at, i * size, size, i, shape));
    return {};
  }
};

class SplitVKernel : public BytesKernel {
 public:
  explicit SplitVKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int64_t axis, index_scalar(context, 2, "split_dim"));
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis, input.rank(), "split_dim"));
    Shape::Dims sizes;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "size_splits", sizes));
    TAGFLOW_RETURN_IF_ERROR(check_sizes(context, input, at, sizes));
    if (sizes.size() == 1) {
      context.set_output(0, input);
      return {};
    }
    Shape shape = input.shape();
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      shape.set_dim(at, sizes[i]);
      TAGFLOW_RETURN_IF_ERROR(
          copy_part(context, input, at, begin, sizes[i], int(i), shape));
      begin += sizes[i];
    }
    return {};
  }

 private:
  // Replaces a size of -1 by the rest.
  static Status check_sizes(const KernelContext& context, const Tensor& input,
                            int at, Shape::Dims& sizes) {
    if (sizes.size() != size_t(context.num_outputs()))
      return context.fail("{} sizes for {} outputs", sizes.size(),
                          context.num_outputs());
    int64_t rest = input.dim(at);
    int64_t* open = nullptr;
    for (int64_t& size : sizes) {
      if (size == -1 && open == nullptr) {
        open = &size;
      } else if (size < 0 || size > rest) {
        return context.fail("the sizes [{}] do not fit dimension {} of {}",
                            fmt::join(sizes, ","), at, input.describe());
      } else {
        rest -= size;
      }
    }
    if (open != nullptr) {
      *open = rest;
    } else if (rest != 0) {
      return context.fail("the sizes [{}] do not add up to dimension {} of {}",
                          fmt::join(sizes, ","), at, input.describe());
    }
    return {};
  }
};

class UnpackKernel : public BytesKernel {
 public:
  explicit UnpackKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs),
        axis_(attr_of<int64_t>(info, "axis")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(const int at, checked_axis(context, axis_, input.rank()));
    const int count = context.num_outputs();
    if (input.dim(at) != count)
      return context.fail("cannot unpack dimension {} of {} into {}", at,
                          input.describe(), count);
    Shape shape = input.shape();
    shape.remove_dim(at);
    if (count == 1) {
      TAGFLOW_ASSIGN(context.output(0), input.reshaped(shape));
      return {};
    }
    for (int i = 0; i < count; ++i)
      TAGFLOW_RETURN_IF_ERROR(copy_part(context, input, at, i, 1, i, shape));
    return {};
  }

 private:
  int64_t axis_;
};

// Row i of the data is appended to output partitions[i].
class DynamicPartitionKernel : public BytesKernel {
 public:
  explicit DynamicPartitionKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.3) {}

  Status compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    const Tensor& partitions = context.input(1);
    bool fits = partitions.rank() <= data.rank();
    for (int i = 0; fits && i < partitions.rank(); ++i)
      fits = partitions.dim(i) == data.dim(i);
    if (!fits)
      return context.fail("data {} does not start with partitions {}",
                          data.describe(), partitions.describe());
    std::vector<int64_t> counts(size_t(context.num_outputs()), 0);
    const auto targets = partitions.flat<int32_t>();
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] < 0 || targets[i] >= context.num_outputs())
        return context.fail("partitions[{}] = {} is outside [0, {})", i,
                            targets[i], context.num_outputs());
      ++counts[size_t(targets[i])];
    }
    const Shape whole = data.shape();
    const int64_t slice =
        product(whole.dims(), partitions.rank(), whole.rank());
    for (int i = 0; i < context.num_outputs(); ++i) {
      Shape shape({counts[size_t(i)]});
      for (int d = partitions.rank(); d < data.rank(); ++d)
        shape.add_dim(data.dim(d));
      TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
      TAGFLOW_RETURN_IF_ERROR(context.allocate_output(i, shape).status());
    }
    std::vector<int64_t> filled(counts.size(), 0);
    for (size_t i = 0; i < targets.size();) {
      context.check_cancelled();
      // Consecutive rows for the same output are moved together.
      size_t end = i + 1;
      while (end < targets.size() && targets[end] == targets[i]) ++end;
      const auto target = size_t(targets[i]);
      const auto rows = int64_t(end - i);
      copy_elements(data, int64_t(i) * slice, context.output(int(target)),
                    filled[target] * slice, rows * slice);
      filled[target] += rows;
      i = end;
    }
    return {};
  }
};

}  // namespace

void register_array_split_kernels(KernelRegistry& registry) {
  registry.add<SplitKernel>("Split");
  registry.add<SplitVKernel>("SplitV");
  registry.add<UnpackKernel>("Unpack");
  registry.add<DynamicPartitionKernel>("DynamicPartition");
}

}  // namespace tagflow::devices
