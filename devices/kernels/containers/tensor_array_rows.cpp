// Ops on many elements of a tensor array at once: Gather, Scatter, Concat,
// Split.
#include <algorithm>

#include "devices/kernels/containers/tensor_array.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/elementwise/elementwise.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// The array of input 0. InvalidArgument if its elements are of another type.
Result<TensorArray*> array_of_type(const KernelContext& context,
                                   DataType dtype) {
  TAGFLOW_ASSIGN(TensorArray * array,
                 object_input<TensorArray>(context, 0, "tensor array"));
  if (array->dtype() == dtype) return array;
  return context.fail("{} has no elements of type {}", array->describe(),
                      dtype_name(dtype));
}

// For costs: 0 if input 0 is not an array.
double array_bytes(const KernelContext& context, int64_t count) {
  const Result<TensorArray*> array =
      object_input<TensorArray>(context, 0, "tensor array");
  return array.ok() ? (*array)->estimated_bytes(count) : 0;
}

Result<std::span<const int32_t>> indices_input(const KernelContext& context) {
  const Tensor& indices = context.input(1);
  if (indices.rank() == 1) return indices.flat<int32_t>();
  return context.fail("indices must be a vector, not {}", indices.describe());
}

class TensorArrayGatherKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayGatherKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        dtype_(info.output_dtype(0)),
        element_shape_(attr_of<PartialShape>(info, "element_shape")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_of_type(context, dtype_));
    TAGFLOW_ASSIGN(const auto indices, indices_input(context));
    TAGFLOW_ASSIGN(const PartialShape agreed,
                   array->agree_on_shape(context, element_shape_));
    if (indices.empty()) {
      const auto shape = agreed.to_shape();
      if (!shape)
        return error(Code::kUnimplemented,
                     "[{}] without elements the shape must be known, not {}",
                     context.node().op(), agreed.to_string());
      TAGFLOW_ASSIGN(context.output(0),
                     stack_rows(context, dtype_, {}, *shape));
      return {};
    }
    TAGFLOW_ASSIGN(const std::vector<Tensor> values,
                   array->read_many(context, indices));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!accepts_shape_of(element_shape_, values[i]))
        return context.fail("element {} is {}, element_shape says {}",
                            indices[i], values[i].describe(),
                            element_shape_.to_string());
      if (i > 0 && !same_dims(values[i], values[0]))
        return context.fail("element {} is {}, element {} is {}", indices[i],
                            values[i].describe(), indices[0],
                            values[0].describe());
    }
    TAGFLOW_ASSIGN(context.output(0),
                   stack_rows(context, dtype_, values, values[0].shape()));
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return array_bytes(context, context.input(1).num_elements());
  }

  DataType dtype_;
  PartialShape element_shape_;
};

class TensorArrayScatterKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayScatterKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(2);
    TAGFLOW_ASSIGN(TensorArray * array, array_of_type(context, value.dtype()));
    TAGFLOW_ASSIGN(const auto indices, indices_input(context));
    if (value.rank() == 0)
      return context.fail("the value must have rows, not be {}",
                          value.describe());
    if (value.dim(0) != int64_t(indices.size()))
      return context.fail("{} indices for the rows of {}", indices.size(),
                          value.describe());
    const int32_t highest =
        indices.empty() ? -1 : *std::ranges::max_element(indices);
    TAGFLOW_RETURN_IF_ERROR(
        array->prepare_for(context, int64_t{highest} + 1, false));
    std::vector<Tensor> rows;
    TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, value, rows));
    TAGFLOW_RETURN_IF_ERROR(array->write_many(context, indices.data(), rows));
    context.set_output(0, context.input(3));
    return {};
  }
};

class TensorArrayConcatKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayConcatKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        dtype_(info.output_dtype(0)),
        rest_shape_(attr_of<PartialShape>(info, "element_shape_except0")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_of_type(context, dtype_));
    TAGFLOW_ASSIGN(const std::vector<Tensor> values, array->read_all(context));
    TAGFLOW_ASSIGN(Tensor * lengths,
                   context.allocate_host_output(1, {int64_t(values.size())}));
    if (values.empty()) return set_empty(context);
    for (size_t i = 0; i < values.size(); ++i) {
      TAGFLOW_RETURN_IF_ERROR(check_element(context, values, i));
      lengths->mutable_data<int64_t>()[i] = values[i].dim(0);
    }
    Shape rest = values[0].shape();
    rest.remove_dim(0);
    return join_rows(context, values, lengths->flat<int64_t>(), rest);
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return array_bytes(context, -1);
  }

  Status set_empty(KernelContext& context) const {
    const auto rest = rest_shape_.to_shape();
    if (!rest)
      return error(Code::kUnimplemented,
                   "[{}] without elements element_shape_except0 must be known, "
                   "not {}",
                   context.node().op(), rest_shape_.to_string());
    Shape shape = *rest;
    shape.insert_dim(0, 0);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    return context.allocate_output(0, shape).status();
  }

  // Checks that it can be joined to the first.
  Status check_element(const KernelContext& context,
                       const std::vector<Tensor>& values, size_t i) const {
    const Tensor& value = values[i];
    if (value.rank() == 0)
      return context.fail("element {} is a scalar, which cannot be joined", i);
    PartialShape wanted{PartialShape::kUnknown};
    if (rest_shape_.has_rank()) {
      for (const int64_t dim : rest_shape_.dims()) wanted.add_dim(dim);
      if (!accepts_shape_of(wanted, value))
        return context.fail("element {} is {}, element_shape_except0 says {}",
                            i, value.describe(), rest_shape_.to_string());
    }
    bool fits = value.rank() == values[0].rank();
    for (int d = 1; fits && d < value.rank(); ++d)
      fits = value.dim(d) == values[0].dim(d);
    if (fits) return {};
    return context.fail(
        "elements differ beyond their first dimension: element 0 is {}, "
        "element {} is {}",
        values[0].describe(), i, value.describe());
  }

  DataType dtype_;
  PartialShape rest_shape_;
};

class TensorArraySplitKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArraySplitKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(1);
    const Tensor& lengths = context.input(2);
    TAGFLOW_ASSIGN(TensorArray * array, array_of_type(context, value.dtype()));
    if (lengths.rank() != 1)
      return context.fail("lengths must be a vector, not {}",
                          lengths.describe());
    if (value.rank() == 0)
      return context.fail("the value must have rows, not be {}",
                          value.describe());
    int64_t rest = value.dim(0);
    for (const int64_t length : lengths.flat<int64_t>()) {
      if (length < 0) return context.fail("length {} is negative", length);
      if (length > rest)
        return context.fail("lengths say more rows than {} has",
                            value.describe());
      rest -= length;
    }
    if (rest != 0)
      return context.fail("lengths say {} of the rows of {}",
                          value.dim(0) - rest, value.describe());
    TAGFLOW_RETURN_IF_ERROR(
        array->prepare_for(context, lengths.num_elements(), true));
    std::vector<Tensor> parts;
    parts.reserve(size_t(lengths.num_elements()));
    int64_t at = 0;
    for (const int64_t length : lengths.flat<int64_t>()) {
      TAGFLOW_ASSIGN(Tensor part, copy_rows(context, value, at, length));
      parts.push_back(std::move(part));
      at += length;
    }
    TAGFLOW_RETURN_IF_ERROR(array->write_many(context, nullptr, parts));
    context.set_output(0, context.input(3));
    return {};
  }
};

}  // namespace

void register_tensor_array_row_kernels(KernelRegistry& registry) {
  registry.add<TensorArrayGatherKernel>("TensorArrayGatherV3");
  registry.add<TensorArrayScatterKernel>("TensorArrayScatterV3");
  registry.add<TensorArrayConcatKernel>("TensorArrayConcatV3");
  registry.add<TensorArraySplitKernel>("TensorArraySplitV3");
}

}  // namespace tagflow::devices
