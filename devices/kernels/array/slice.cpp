// Slice, StridedSlice, StridedSliceGrad.
#include "devices/kernels/array/slice.h"

#include <algorithm>

#include "devices/copy.h"
#include "devices/element_mover.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// If an input has fewer bytes, its cost does not depend on the selection.
constexpr size_t kCheapBytes = 1 << 16;

class SliceKernel : public BytesKernel {
 public:
  explicit SliceKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Shape::Dims begin, size;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "begin", begin));
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 2, "size", size));
    const auto rank = size_t(input.rank());
    if (begin.size() != rank || size.size() != rank)
      return context.fail(
          "begin and size must have {} elements for {}, "
          "they have {} and {}",
          rank, input.describe(), begin.size(), size.size());
    bool whole = true;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t dim = input.dim(int(i));
      if (begin[i] < 0 || begin[i] > dim)
        return context.fail("begin[{}] = {} is outside {}", i, begin[i],
                            input.describe());
      if (size[i] == -1) size[i] = dim - begin[i];
      if (size[i] < 0 || size[i] > dim - begin[i])
        return context.fail("size[{}] = {} from {} is outside {}", i, size[i],
                            begin[i], input.describe());
      whole = whole && size[i] == dim;
    }
    if (whole) {
      context.set_output(0, input);
      return {};
    }
    const Shape shape(std::span<const int64_t>(size.data(), size.size()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    const Shape input_shape = input.shape();
    const auto from = row_major_strides(input_shape.dims());
    const auto to = row_major_strides(shape.dims());
    StridedCopy copy;
    for (size_t i = 0; i < rank; ++i) {
      copy.from += begin[i] * from[i];
      copy.add(size[i], from[i], to[i]);
    }
    strided_copy(context, std::move(copy), input, *output);
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const Tensor& size = context.input(2);
    if (input.bytes() < kCheapBytes || size.num_elements() != input.rank())
      return double(input.bytes());
    auto bytes = double(dtype_size(input.dtype()));
    for (int i = 0; i < input.rank(); ++i) {
      const int64_t count = index_at(size, i);
      bytes *= double(count < 0 ? input.dim(i) : count);
    }
    return bytes;
  }
};

class StridedSliceKernel : public BytesKernel {
 public:
  explicit StridedSliceKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), masks_(read_slice_masks(info)) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (is_single_index(context)) return take_one(context);
    const Shape shape = input.shape();
    TAGFLOW_ASSIGN(const SliceGeometry geometry,
                   read_slice(context, 1, masks_, shape));
    TAGFLOW_ASSIGN(const Shape output_shape, Shape::make(slice_dims(geometry)));
    bool whole = true;
    for (int i = 0; i < input.rank(); ++i)
      whole = whole && geometry.count[size_t(i)] == input.dim(i) &&
              (geometry.stride[size_t(i)] == 1 || input.dim(i) <= 1);
    if (whole) {
      TAGFLOW_ASSIGN(context.output(0), input.reshaped(output_shape));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, output_shape));
    if (output->num_elements() == 0) return {};
    strided_copy(context, slice_selection(geometry, shape), input, *output);
    return {};
  }

 private:
  // v[i] of a vector: programs do this with shapes, in every iteration.
  bool is_single_index(const KernelContext& context) const {
    return masks_.shrink_axis == 1 && masks_.ellipsis == 0 &&
           masks_.new_axis == 0 && context.input(0).rank() == 1 &&
           is_plain(context.input(0).dtype()) && is_one(context.input(1)) &&
           is_one(context.input(2)) && is_one(context.input(3)) &&
           index_at(context.input(3), 0) == 1;
  }
  static bool is_one(const Tensor& vector) {
    return vector.rank() == 1 && vector.dim(0) == 1;
  }
  static Status take_one(KernelContext& context) {
    const Tensor& input = context.input(0);
    const int64_t index = index_at(context.input(1), 0);
    const int64_t at = index < 0 ? index + input.dim(0) : index;
    if (at < 0 || at >= input.dim(0))
      return context.fail("slice index {} of dimension 0 is outside {}", index,
                          input.describe());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {}));
    if (mover_of(context) != nullptr) {
      StridedCopy copy;
      copy.from = at;
      strided_copy(context, std::move(copy), input, *output);
      return {};
    }
    const size_t size = dtype_size(input.dtype());
    std::memcpy(output->mutable_raw(),
                static_cast<const std::byte*>(input.raw()) + size_t(at) * size,
                size);
    return {};
  }

  double work_bytes(const KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.bytes() < kCheapBytes) return double(input.bytes());
    Result<SliceGeometry> geometry =
        read_slice(context, 1, masks_, input.shape());
    if (!geometry.ok()) return 0;
    auto bytes = double(dtype_size(input.dtype()));
    for (int64_t count : geometry->count) bytes *= double(count);
    return bytes;
  }

  SliceMasks masks_;
};

// Zeros of a given shape, with dy at the positions of the slice.
class StridedSliceGradKernel : public BytesKernel {
 public:
  explicit StridedSliceGradKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), masks_(read_slice_masks(info)) {}

  Status compute(KernelContext& context) const override {
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 0, "shape", dims));
    TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
    TAGFLOW_ASSIGN(const SliceGeometry geometry,
                   read_slice(context, 1, masks_, shape));
    const Tensor& dy = context.input(4);
    if (!std::ranges::equal(slice_dims(geometry), dy.shape().dims()))
      return context.fail("dy is {}, the slice is [{}]", dy.describe(),
                          fmt::join(geometry.output, ","));
    if (dy.shape() == shape && all_forward(geometry)) {
      context.set_output(0, dy);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    zero_elements(context, *output);
    if (dy.num_elements() == 0) return {};
    StridedCopy copy = slice_selection(geometry, shape);
    copy.reverse();
    strided_copy(context, std::move(copy), dy, *output);
    return {};
  }

 private:
  static bool all_forward(const SliceGeometry& geometry) {
    for (int64_t stride : geometry.stride)
      if (stride != 1) return false;
    return true;
  }
  double work_bytes(const KernelContext& context) const override {
    auto bytes = double(dtype_size(context.input(4).dtype()));
    const Tensor& shape = context.input(0);
    for (int64_t i = 0; i < shape.num_elements(); ++i)
      bytes *= double(std::max<int64_t>(0, index_at(shape, i)));
    return bytes;
  }

  SliceMasks masks_;
};

}  // namespace

SliceMasks read_slice_masks(const KernelInfo& info) {
  return {attr_of<int64_t>(info, "begin_mask"),
          attr_of<int64_t>(info, "end_mask"),
          attr_of<int64_t>(info, "ellipsis_mask"),
          attr_of<int64_t>(info, "new_axis_mask"),
          attr_of<int64_t>(info, "shrink_axis_mask")};
}

Result<SliceGeometry> read_slice(const KernelContext& context, int first,
                                 const SliceMasks& masks, const Shape& shape) {
  graph::SliceSpec spec;
  spec.masks = masks;
  TAGFLOW_RETURN_IF_ERROR(index_vector(context, first, "begin", spec.begin));
  TAGFLOW_RETURN_IF_ERROR(index_vector(context, first + 1, "end", spec.end));
  TAGFLOW_RETURN_IF_ERROR(
      index_vector(context, first + 2, "strides", spec.strides));
  if (spec.begin.size() != spec.strides.size() ||
      spec.end.size() != spec.strides.size())
    return context.fail("begin, end and strides have {}, {} and {} elements",
                        spec.begin.size(), spec.end.size(),
                        spec.strides.size());
  Result<SliceGeometry> geometry = graph::resolve_slice(spec, shape);
  if (!geometry.ok()) return context.fail("{}", geometry.status().message());
  return geometry;
}

std::span<const int64_t> slice_dims(const SliceGeometry& geometry) {
  return {geometry.output.data(), geometry.output.size()};
}

StridedCopy slice_selection(const SliceGeometry& geometry, const Shape& shape) {
  const auto strides = row_major_strides(shape.dims());
  const auto packed =
      row_major_strides({geometry.count.data(), geometry.count.size()});
  StridedCopy copy;
  for (size_t i = 0; i < strides.size(); ++i) {
    copy.from += geometry.begin[i] * strides[i];
    // A step that is never taken may have any size.
    const int64_t step = geometry.count[i] > 1 ? geometry.stride[i] : 0;
    copy.add(geometry.count[i], step * strides[i], packed[i]);
  }
  return copy;
}

Result<Tensor> repeat_to_slice(const KernelContext& context,
                               const Tensor& value,
                               const SliceGeometry& geometry) {
  const auto dims = slice_dims(geometry);
  const Shape shape = value.shape();
  const auto given = shape.dims();
  if (std::ranges::equal(dims, given)) return value;
  const size_t missing = dims.size() - std::min(dims.size(), given.size());
  bool fits = given.size() <= dims.size();
  for (size_t i = 0; fits && i < given.size(); ++i)
    fits = given[i] == 1 || given[i] == dims[missing + i];
  if (!fits)
    return context.fail("the value is {}, the slice is [{}]", value.describe(),
                        fmt::join(geometry.output, ","));
  TAGFLOW_ASSIGN(
      Tensor repeated,
      Tensor::allocate(value.dtype(), Shape({dims.begin(), dims.end()}),
                       context.allocator()));
  if (repeated.num_elements() == 0) return repeated;
  StridedCopy copy;
  copy.loops.resize(dims.size());
  int64_t from = 1, to = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const bool is_repeated = i < missing || given[i - missing] == 1;
    copy.loops[i] = {dims[i], is_repeated ? 0 : from, to};
    to *= dims[i];
    if (!is_repeated) from *= dims[i];
  }
  strided_copy(context, std::move(copy), value, repeated);
  return repeated;
}

void register_array_slice_kernels(KernelRegistry& registry) {
  registry.add<SliceKernel>("Slice");
  registry.add<StridedSliceKernel>("StridedSlice");
  registry.add<StridedSliceGradKernel>("StridedSliceGrad");
}

}  // namespace tagflow::devices
