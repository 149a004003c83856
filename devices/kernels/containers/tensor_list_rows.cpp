// Conversion between lists and tensors whose rows are their elements: Stack,
// Gather, FromTensor, Scatter.
#include <algorithm>

#include "devices/kernels/containers/tensor_list.h"
#include "devices/kernels/containers/values.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// Stacks elements as the rows of output 0. Their shape must follow from `shape`
// or from one of them.
Status stack_elements(KernelContext& context, DataType dtype,
                      std::span<const Tensor> elements, PartialShape shape) {
  TAGFLOW_ASSIGN(shape,
                 merge_element_shapes(context, elements, std::move(shape)));
  const auto known = shape.to_shape();
  if (!known)
    return context.fail(
        "no element was set, and the shape {} does not say what zeros to read",
        shape.to_string());
  TAGFLOW_ASSIGN(context.output(0),
                 stack_rows(context, dtype, elements, *known));
  return {};
}

class ListStackKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListStackKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        dtype_(info.output_dtype(0)),
        count_(attr_of<int64_t>(info, "num_elements")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    if (count_ >= 0 && list->size() != count_)
      return context.fail("{} elements are wanted, not {}", count_,
                          list->describe());
    TAGFLOW_ASSIGN(PartialShape shape, element_shape_of(context, *list, 1));
    return stack_elements(context, dtype_, list->elements, std::move(shape));
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return list_bytes(context);
  }

  DataType dtype_;
  int64_t count_;
};

class ListGatherKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListGatherKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    TAGFLOW_ASSIGN(PartialShape shape, element_shape_of(context, *list, 2));
    std::vector<Tensor> elements;
    elements.reserve(size_t(context.input(1).num_elements()));
    for (const int32_t index : context.input(1).flat<int32_t>()) {
      if (index < 0 || index >= list->size())
        return context.fail("cannot gather element {} of {}", index,
                            list->describe());
      elements.push_back(list->elements[size_t(index)]);
    }
    return stack_elements(context, dtype_, elements, std::move(shape));
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return list_bytes(context);
  }

  DataType dtype_;
};

// Checks that the rows of a tensor can be elements of that shape.
Status check_rows(const KernelContext& context, const Tensor& tensor,
                  const PartialShape& shape) {
  if (tensor.rank() < 1)
    return context.fail("the tensor must have rows, not be {}",
                        tensor.describe());
  Shape row = tensor.shape();
  row.remove_dim(0);
  if (shape.accepts(row)) return {};
  return context.fail("rows of {} are not elements of shape {}",
                      tensor.describe(), shape.to_string());
}

class ListFromTensorKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListFromTensorKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& tensor = context.input(0);
    TAGFLOW_ASSIGN(PartialShape shape,
                   shape_input(context, 1, "element_shape"));
    TAGFLOW_RETURN_IF_ERROR(check_rows(context, tensor, shape));
    TAGFLOW_RETURN_IF_ERROR(check_list_size(context, tensor.dim(0)));
    TAGFLOW_ASSIGN(TensorList * list,
                   new_value_output<TensorList>(context, 0, tensor.dtype(),
                                                std::move(shape)));
    TAGFLOW_RETURN_IF_ERROR(list->reserve(context, tensor.dim(0)));
    return unstack_rows(context, tensor, list->elements);
  }
};

// The length of a list that contains all indices. InvalidArgument if one is
// negative.
Result<int64_t> length_for(const KernelContext& context,
                           std::span<const int32_t> indices) {
  int64_t length = 0;
  for (const int32_t index : indices) {
    if (index < 0) return context.fail("index {} is negative", index);
    length = std::max(length, int64_t{index} + 1);
  }
  TAGFLOW_RETURN_IF_ERROR(check_list_size(context, length));
  return length;
}

// Row i of the tensor becomes element indices[i]. REQUIRES: the tensor has a
// row for each index, and the list the element.
Status scatter_rows(const KernelContext& context, const Tensor& tensor,
                    std::span<const int32_t> indices, TensorList& list) {
  std::vector<Tensor> rows;
  TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, tensor, rows));
  for (size_t i = 0; i < indices.size(); ++i)
    list.elements[size_t(indices[i])] = std::move(rows[i]);
  return {};
}

// TensorListScatter, and V2, which gives the length of the list.
class ListScatterKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListScatterKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& tensor = context.input(0);
    const Tensor& indices = context.input(1);
    TAGFLOW_ASSIGN(PartialShape shape,
                   shape_input(context, 2, "element_shape"));
    TAGFLOW_RETURN_IF_ERROR(check_rows(context, tensor, shape));
    if (indices.num_elements() != tensor.dim(0))
      return context.fail("{} indices for the rows of {}",
                          indices.num_elements(), tensor.describe());
    TAGFLOW_ASSIGN(int64_t length,
                   length_for(context, indices.flat<int32_t>()));
    if (context.num_inputs() > 3) {
      TAGFLOW_ASSIGN(const int64_t count,
                     int32_input(context, 3, "num_elements"));
      if (count < -1)
        return context.fail("num_elements is less than -1: {}", count);
      if (count >= 0 && length > count)
        return context.fail("index {} is outside of a list of {} elements",
                            length - 1, count);
      length = std::max(length, count);
      TAGFLOW_RETURN_IF_ERROR(check_list_size(context, length));
    }
    TAGFLOW_ASSIGN(TensorList * list,
                   new_value_output<TensorList>(context, 0, tensor.dtype(),
                                                std::move(shape)));
    TAGFLOW_RETURN_IF_ERROR(list->resize(context, length));
    return scatter_rows(context, tensor, indices.flat<int32_t>(), *list);
  }
};

class ScatterIntoListKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ScatterIntoListKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs),
        dtype_(attr_of<DataType>(info, "element_dtype")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& tensor = context.input(1);
    const Tensor& indices = context.input(2);
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    TAGFLOW_RETURN_IF_ERROR(check_rows(context, tensor, list->element_shape));
    if (indices.rank() != 1 || indices.dim(0) != tensor.dim(0))
      return context.fail("a vector of indices, one for each row of {}, not {}",
                          tensor.describe(), indices.describe());
    TAGFLOW_ASSIGN(const int64_t length,
                   length_for(context, indices.flat<int32_t>()));
    TAGFLOW_ASSIGN(TensorList * output,
                   changed_value_output<TensorList>(context, 0, 0));
    if (length > output->size())
      TAGFLOW_RETURN_IF_ERROR(output->resize(context, length));
    return scatter_rows(context, tensor, indices.flat<int32_t>(), *output);
  }

 private:
  DataType dtype_;
};

}  // namespace

void register_tensor_list_row_kernels(KernelRegistry& registry) {
  registry.add<ListStackKernel>("TensorListStack");
  registry.add<ListGatherKernel>("TensorListGather");
  registry.add<ListFromTensorKernel>("TensorListFromTensor");
  registry.add<ListScatterKernel>("TensorListScatter");
  registry.add<ListScatterKernel>("TensorListScatterV2");
  registry.add<ScatterIntoListKernel>("TensorListScatterIntoExistingList");
}

}  // namespace tagflow::devices
