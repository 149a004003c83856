// DynamicStitch, ParallelDynamicStitch: merge rows of several tensors at given
// positions.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// Inputs [0, N) are indices, [N, 2N) data. If an index is repeated, the last
// row wins; rows without an index are zero.
class DynamicStitchKernel : public BytesKernel {
 public:
  explicit DynamicStitchKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.3) {}

  Status compute(KernelContext& context) const override {
    const int count = context.num_inputs() / 2;
    int64_t rows = 0, named = 0;
    for (int i = 0; i < count; ++i) {
      const Tensor& indices = context.input(i);
      TAGFLOW_RETURN_IF_ERROR(check_pair(context, i, count));
      for (int32_t index : indices.flat<int32_t>()) {
        if (index < 0)
          return context.fail("an index of input {} is negative: {}", i, index);
        rows = std::max(rows, int64_t(index) + 1);
      }
      named += indices.num_elements();
    }
    Shape shape({rows});
    const Tensor& first = context.input(count);
    for (int d = context.input(0).rank(); d < first.rank(); ++d)
      shape.add_dim(first.dim(d));
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (named < rows || named == 0) {
      zero_elements(context, *output);
    } else {
      TAGFLOW_RETURN_IF_ERROR(zero_unnamed(context, count, *output));
    }
    const int64_t slice = product(shape.dims(), 1, shape.rank());
    for (int i = 0; i < count; ++i)
      copy_rows(context, context.input(i).flat<int32_t>(),
                context.input(count + i), slice, *output);
    return {};
  }

 private:
  // Checks that data i has the shape of indices i, followed by a row's shape.
  static Status check_pair(const KernelContext& context, int i, int count) {
    const Tensor& indices = context.input(i);
    const Tensor& data = context.input(count + i);
    const Tensor& first = context.input(count);
    const int prefix = context.input(0).rank();
    bool fits = data.rank() >= indices.rank();
    for (int d = 0; fits && d < indices.rank(); ++d)
      fits = indices.dim(d) == data.dim(d);
    if (!fits)
      return context.fail("data {}, {}, does not start with its indices {}", i,
                          data.describe(), indices.describe());
    const int rest = first.rank() - prefix;
    fits = data.rank() - indices.rank() == rest;
    for (int d = 0; fits && d < rest; ++d)
      fits = data.dim(indices.rank() + d) == first.dim(prefix + d);
    if (!fits)
      return context.fail(
          "rows of data {}, {} at {}, differ from those of "
          "data 0, {} at {}",
          i, data.describe(), indices.describe(), first.describe(),
          context.input(0).describe());
    return {};
  }

  static void copy_rows(const KernelContext& context,
                        std::span<const int32_t> indices, const Tensor& data,
                        int64_t slice, Tensor& output) {
    for (size_t i = 0; i < indices.size();) {
      context.check_cancelled();
      size_t end = i + 1;
      while (end < indices.size() &&
             indices[end] == int64_t(indices[end - 1]) + 1)
        ++end;
      copy_elements(data, int64_t(i) * slice, output,
                    int64_t(indices[i]) * slice, int64_t(end - i) * slice);
      i = end;
    }
  }

  // With as many indices as rows, every row has an index unless some repeat.
  static Status zero_unnamed(const KernelContext& context, int count,
                             Tensor& output) {
    std::vector<bool> seen(size_t(output.dim(0)), false);
    for (int i = 0; i < count; ++i)
      for (int32_t index : context.input(i).flat<int32_t>())
        seen[size_t(index)] = true;
    if (std::ranges::find(seen, false) != seen.end())
      zero_elements(context, output);
    return {};
  }
};

}  // namespace

void register_array_stitch_kernels(KernelRegistry& registry) {
  registry.add<DynamicStitchKernel>("DynamicStitch");
  registry.add<DynamicStitchKernel>("ParallelDynamicStitch");
}

}  // namespace tagflow::devices
