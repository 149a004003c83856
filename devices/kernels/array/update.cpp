// Empty, InplaceUpdate, InplaceAdd, InplaceSub, TensorStridedSliceUpdate:
// replace some rows or a slice of a tensor.
#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/array/scatter.h"
#include "devices/kernels/array/slice.h"

namespace tagflow::devices {

namespace {

// Always zeros, even if not requested: a result should not depend on the
// earlier contents of memory.
class EmptyKernel final : public BytesKernel {
 public:
  explicit EmptyKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 0, "shape", dims));
    TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    zero_elements(context, *output);
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    auto bytes = double(dtype_size(context.node().output_dtypes()[0]));
    const Tensor& shape = context.input(0);
    for (int64_t i = 0; i < shape.num_elements(); ++i)
      bytes *= double(std::max<int64_t>(0, index_at(shape, i)));
    return bytes;
  }
};

// Replaces row i[k] by row k of v, or adds that to it, in this order. As in
// TensorFlow, indices are taken modulo the number of rows.
class InplaceKernel final : public BytesKernel {
 public:
  explicit InplaceKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs),
        combine_(combine_of(info.node().op())) {}

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& i = context.input(1);
    const Tensor& v = context.input(2);
    if (i.rank() != 1)
      return context.fail("i must be a vector, got {}", i.describe());
    bool fits = x.rank() >= 1 && v.rank() == x.rank() && v.dim(0) == i.dim(0);
    for (int d = 1; fits && d < x.rank(); ++d) fits = v.dim(d) == x.dim(d);
    if (!fits)
      return context.fail("v must have a row of x {} for each of i {}, got {}",
                          x.describe(), i.describe(), v.describe());
    if (v.num_elements() == 0) {
      context.set_output(0, x);
      return {};
    }
    if (x.dim(0) == 0) return context.fail("x {} has no rows", x.describe());
    TAGFLOW_ASSIGN(Tensor rows,
                   context.allocate_temp(DataType::kInt64, i.shape()));
    const int64_t count = x.dim(0);
    for (int64_t k = 0; k < i.dim(0); ++k)
      rows.mutable_data<int64_t>()[k] =
          (int64_t{i.data<int32_t>()[k]} % count + count) % count;
    TAGFLOW_ASSIGN(Tensor * output, input_as_output(context));
    return scatter_slices(context, rows, v, combine_, *output);
  }

 private:
  const Combine combine_;
};

class SliceUpdateKernel final : public BytesKernel {
 public:
  explicit SliceUpdateKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs), masks_(read_slice_masks(info)) {}

  Status compute(KernelContext& context) const override {
    const Shape shape = context.input(0).shape();
    TAGFLOW_ASSIGN(const SliceGeometry geometry,
                   read_slice(context, 1, masks_, shape));
    TAGFLOW_ASSIGN(const Tensor value,
                   repeat_to_slice(context, context.input(4), geometry));
    TAGFLOW_ASSIGN(Tensor * output, input_as_output(context));
    if (value.num_elements() == 0) return {};
    StridedCopy copy = slice_selection(geometry, shape);
    copy.reverse();
    strided_copy(context, std::move(copy), value, *output);
    return {};
  }

 private:
  const SliceMasks masks_;
};

}  // namespace

void register_array_update_kernels(KernelRegistry& registry) {
  registry.add<EmptyKernel>("Empty");
  for (const char* op : {"InplaceUpdate", "InplaceAdd", "InplaceSub"})
    registry.add<InplaceKernel>(op);
  registry.add<SliceUpdateKernel>("TensorStridedSliceUpdate");
}

}  // namespace tagflow::devices
