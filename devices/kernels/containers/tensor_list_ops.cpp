// Lists: creating them, reading their sizes, and changing one element.
#include <limits>

#include "devices/kernels/containers/tensor_list.h"
#include "devices/kernels/containers/values.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// EmptyTensorList (max_num_elements) and TensorListReserve (num_elements).
class NewListKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit NewListKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "element_dtype")),
        reserve_(info.node().op() == "TensorListReserve") {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(PartialShape shape,
                   shape_input(context, 0, "element_shape"));
    TAGFLOW_ASSIGN(const int64_t count,
                   int32_input(context, 1,
                               reserve_ ? "num_elements" : "max_num_elements"));
    if (reserve_ && count < 0)
      return context.fail("num_elements is negative: {}", count);
    if (reserve_) TAGFLOW_RETURN_IF_ERROR(check_list_size(context, count));
    TAGFLOW_ASSIGN(
        TensorList * list,
        new_value_output<TensorList>(context, 0, dtype_, std::move(shape)));
    if (reserve_) {
      TAGFLOW_RETURN_IF_ERROR(list->resize(context, count));
    } else {
      list->max_size = count;
    }
    return {};
  }
  double cost(const KernelContext& context) const override {
    return reserve_ ? cost_of_elements(context, 1) : 0;
  }

 private:
  DataType dtype_;
  bool reserve_;
};

Status check_element(const KernelContext& context, const TensorList& list,
                     const Tensor& element) {
  if (accepts_shape_of(list.element_shape, element)) return {};
  return context.fail("{} does not fit a list of elements of shape {}",
                      element.describe(), list.element_shape.to_string());
}

Status check_not_full(const KernelContext& context, const TensorList& list) {
  if (list.max_size >= 0 && list.size() >= list.max_size)
    return context.fail("the list is full: its max_num_elements is {}",
                        list.max_size);
  return check_list_size(context, list.size() + 1);
}

class PushBackKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PushBackKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "element_dtype")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& element = context.input(1);
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    TAGFLOW_RETURN_IF_ERROR(check_element(context, *list, element));
    TAGFLOW_RETURN_IF_ERROR(check_not_full(context, *list));
    TAGFLOW_ASSIGN(TensorList * output,
                   changed_value_output<TensorList>(context, 0, 0));
    TAGFLOW_RETURN_IF_ERROR(output->reserve(context, output->size() + 1));
    output->elements.push_back(element);
    return {};
  }

 private:
  DataType dtype_;
};

// Appends a row of the tensor to each list of a vector.
class PushBackBatchKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PushBackBatchKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs),
        dtype_(attr_of<DataType>(info, "element_dtype")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& lists = context.input(0);
    const Tensor& tensor = context.input(1);
    if (lists.rank() != 1 || tensor.rank() < 1 || tensor.dim(0) != lists.dim(0))
      return context.fail("a vector of lists and as many rows, not {} and {}",
                          lists.describe(), tensor.describe());
    std::vector<Tensor> rows;
    TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, tensor, rows));
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto* list = value_as<TensorList>(lists.data<Variant>()[i]);
      if (list == nullptr || list->dtype != dtype_)
        return context.fail("input {} is not a list of {} but {}", i,
                            dtype_name(dtype_),
                            describe_variant(lists.data<Variant>()[i]));
      if (!accepts_shape_of(list->element_shape, rows[i]))
        return context.fail(
            "list {}: {} does not fit a list of elements of "
            "shape {}",
            i, rows[i].describe(), list->element_shape.to_string());
      TAGFLOW_RETURN_IF_ERROR(check_not_full(context, *list));
    }
    TAGFLOW_ASSIGN(const auto lists_out,
                   changed_values_output<TensorList>(context, 0, 0));
    for (size_t i = 0; i < rows.size(); ++i) {
      auto& list = *value_as<TensorList>(lists_out[size_t(i)]);
      TAGFLOW_RETURN_IF_ERROR(list.reserve(context, list.size() + 1));
      list.elements.push_back(std::move(rows[i]));
    }
    return {};
  }

 private:
  DataType dtype_;
};

// Zeros of the shape of the list's elements, as known from the list and an
// input.
Result<Tensor> zeros_of_list(const KernelContext& context,
                             const TensorList& list, int shape_input) {
  TAGFLOW_ASSIGN(PartialShape shape,
                 element_shape_of(context, list, shape_input));
  if (!shape.fully_known()) {
    TAGFLOW_ASSIGN(shape, merge_element_shapes(context, list.elements, shape));
  }
  const auto known = shape.to_shape();
  if (!known)
    return context.fail(
        "the element was not set, and the shape {} does not say what zeros to "
        "read",
        shape.to_string());
  return make_zeros(context, list.dtype, *known);
}

class PopBackKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PopBackKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(1)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    if (list->elements.empty()) return context.fail("the list is empty");
    if (!list->elements.back().valid()) {
      TAGFLOW_ASSIGN(context.output(1), zeros_of_list(context, *list, 1));
    } else {
      TAGFLOW_RETURN_IF_ERROR(element_shape_of(context, *list, 1).status());
    }
    TAGFLOW_ASSIGN(TensorList * output,
                   changed_value_output<TensorList>(context, 0, 0));
    if (output->elements.back().valid())
      context.set_output(1, std::move(output->elements.back()));
    output->elements.pop_back();
    return {};
  }

 private:
  DataType dtype_;
};

class SetItemKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit SetItemKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "element_dtype")),
        resize_(attr_of<bool>(info, "resize_if_index_out_of_bounds")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& element = context.input(2);
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    TAGFLOW_ASSIGN(const int64_t index, int32_input(context, 1, "index"));
    if (index < 0 || (index >= list->size() && !resize_))
      return context.fail("cannot set element {} of {}", index,
                          list->describe());
    TAGFLOW_RETURN_IF_ERROR(check_list_size(context, index + 1));
    TAGFLOW_RETURN_IF_ERROR(check_element(context, *list, element));
    TAGFLOW_ASSIGN(TensorList * output,
                   changed_value_output<TensorList>(context, 0, 0));
    if (index >= output->size())
      TAGFLOW_RETURN_IF_ERROR(output->resize(context, index + 1));
    output->elements[size_t(index)] = element;
    return {};
  }

 private:
  DataType dtype_;
  bool resize_;
};

class GetItemKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GetItemKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    TAGFLOW_ASSIGN(const int64_t index, int32_input(context, 1, "index"));
    if (index < 0 || index >= list->size())
      return context.fail("cannot get element {} of {}", index,
                          list->describe());
    const Tensor& element = list->elements[size_t(index)];
    if (element.valid()) {
      context.set_output(0, element);
    } else {
      TAGFLOW_ASSIGN(context.output(0), zeros_of_list(context, *list, 2));
    }
    return {};
  }

 private:
  DataType dtype_;
};

class ListLengthKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListLengthKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0));
    context.set_output(0, Tensor::scalar(int32_t(list->size())));
    return {};
  }
};

template <class T>
void write_dims(const PartialShape& shape, Tensor& output) {
  for (int i = 0; i < shape.rank(); ++i)
    output.mutable_data<T>()[i] = T(shape.dim(i));
}

// The dimensions, or the scalar -1 for any rank.
class ListElementShapeKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListElementShapeKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0));
    const PartialShape& shape = list->element_shape;
    const bool wide = context.node().output_dtypes()[0] == DataType::kInt64;
    if (!shape.has_rank()) {
      context.set_output(
          0, wide ? Tensor::scalar(int64_t{-1}) : Tensor::scalar(int32_t{-1}));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_host_output(0, {shape.rank()}));
    if (wide) {
      write_dims<int64_t>(shape, *output);
    } else {
      for (const int64_t dim : shape.dims())
        if (dim > std::numeric_limits<int32_t>::max())
          return context.fail("dimension {} does not fit into int32", dim);
      write_dims<int32_t>(shape, *output);
    }
    return {};
  }
};

class ListResizeKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListResizeKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(list_input(context, 0).status());
    TAGFLOW_ASSIGN(const int64_t size, int32_input(context, 1, "size"));
    if (size < 0) return context.fail("the size is negative: {}", size);
    TAGFLOW_RETURN_IF_ERROR(check_list_size(context, size));
    TAGFLOW_ASSIGN(TensorList * output,
                   changed_value_output<TensorList>(context, 0, 0));
    return output->resize(context, size);
  }
  double cost(const KernelContext& context) const override {
    return cost_of_elements(context, 1);
  }
};

// TensorListLengths: the length of each list in a tensor.
class ListLengthsKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListLengthsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& lists = context.input(0);
    TAGFLOW_ASSIGN(Tensor * lengths,
                   context.allocate_host_output(0, lists.shape()));
    for (int64_t i = 0; i < lists.num_elements(); ++i) {
      const Variant& variant = lists.data<Variant>()[i];
      const auto* list = value_as<TensorList>(variant);
      if (list == nullptr)
        return context.fail("element {} is not a list but {}", i,
                            describe_variant(variant));
      lengths->mutable_data<int32_t>()[i] = int32_t(list->size());
    }
    return {};
  }
};

// Concatenates the lists of two tensors, element by element.
class ConcatListsKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ConcatListsKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "element_dtype")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    const Shape shape = a.shape();
    if (!(shape == b.shape()))
      return context.fail("inputs of one shape are wanted, not {} and {}",
                          a.describe(), b.describe());
    for (int64_t i = 0; i < a.num_elements(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          check_pair(context, a.data<Variant>()[i], b.data<Variant>()[i]));
    TAGFLOW_ASSIGN(const auto lists_out,
                   changed_values_output<TensorList>(context, 0, 0));
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      auto& list = *value_as<TensorList>(lists_out[size_t(i)]);
      const auto& more = *value_as<TensorList>(b.data<Variant>()[i]);
      TAGFLOW_RETURN_IF_ERROR(list.reserve(context, list.size() + more.size()));
      list.elements.insert(list.elements.end(), more.elements.begin(),
                           more.elements.end());
    }
    return {};
  }

 private:
  Status check_pair(const KernelContext& context, const Variant& first,
                    const Variant& second) const {
    for (const Variant* variant : {&first, &second}) {
      const auto* list = value_as<TensorList>(*variant);
      if (list == nullptr || list->dtype != dtype_)
        return context.fail("lists of {} are wanted, not {}",
                            dtype_name(dtype_), describe_variant(*variant));
    }
    const auto& a = *value_as<TensorList>(first);
    const auto& b = *value_as<TensorList>(second);
    if (!(a.element_shape == b.element_shape))
      return context.fail("lists have elements of shapes {} and {}",
                          a.element_shape.to_string(),
                          b.element_shape.to_string());
    return check_list_size(context, a.size() + b.size());
  }

  DataType dtype_;
};

}  // namespace

void register_tensor_list_kernels(KernelRegistry& registry) {
  registry.add<NewListKernel>("EmptyTensorList");
  registry.add<NewListKernel>("TensorListReserve");
  registry.add<PushBackKernel>("TensorListPushBack");
  registry.add<PushBackBatchKernel>("TensorListPushBackBatch");
  registry.add<PopBackKernel>("TensorListPopBack");
  registry.add<SetItemKernel>("TensorListSetItem");
  registry.add<GetItemKernel>("TensorListGetItem");
  registry.add<ListLengthKernel>("TensorListLength");
  registry.add<ListLengthsKernel>("TensorListLengths");
  registry.add<ListElementShapeKernel>("TensorListElementShape");
  registry.add<ListResizeKernel>("TensorListResize");
  registry.add<ConcatListsKernel>("TensorListConcatLists");
}

}  // namespace tagflow::devices
