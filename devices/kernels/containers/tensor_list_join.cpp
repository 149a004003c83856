// TensorListConcat, which joins elements along their first dimension, and
// TensorListSplit, which undoes it.
#include "devices/kernels/containers/tensor_list.h"
#include "devices/kernels/containers/values.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kUnknownDim = PartialShape::kUnknown;

// `shape` without its first dimension. REQUIRES: its rank is positive, or
// unknown.
PartialShape without_first(const PartialShape& shape) {
  if (!shape.has_rank()) return shape;
  return PartialShape(shape.dims().subspan(1));
}

// The common shape of all elements after their first dimension, and the first
// dimension if that is common, too.
struct ElementForm {
  PartialShape rest;
  int64_t first = kUnknownDim;
};

class ListConcatKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListConcatKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), dtype_(info.output_dtype(0)) {
    if (info.num_inputs() == 1)
      element_shape_ = attr_of<PartialShape>(info, "element_shape");
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorList* list, list_input(context, 0, dtype_));
    TAGFLOW_ASSIGN(const ElementForm form, common_form(context, *list));
    const auto rest = form.rest.to_shape();
    if (!rest)
      return context.fail(
          "all dimensions of elements but the first must be known, not {}",
          form.rest.to_string());
    TAGFLOW_ASSIGN(Tensor * lengths,
                   context.allocate_host_output(1, {list->size()}));
    for (int64_t i = 0; i < list->size(); ++i) {
      TAGFLOW_ASSIGN(lengths->mutable_data<int64_t>()[i],
                     length_of(context, *list, i, form.first));
    }
    return join_rows(context, list->elements, lengths->flat<int64_t>(), *rest);
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return list_bytes(context);
  }

  Result<ElementForm> common_form(const KernelContext& context,
                                  const TensorList& list) const {
    PartialShape shape = element_shape_;
    if (context.num_inputs() > 1) {
      TAGFLOW_ASSIGN(shape, element_shape_of(context, list, 1));
    }
    if (shape.has_rank() && shape.rank() == 0)
      return context.fail("scalar elements cannot be joined");
    ElementForm form{without_first(shape)};
    // As in TensorFlow, the attribute does not give the first dimension.
    if (context.num_inputs() > 1 && shape.has_rank()) form.first = shape.dim(0);
    const bool first_is_given = form.first != kUnknownDim;
    bool found = false;
    for (size_t i = 0; i < list.elements.size(); ++i) {
      const Tensor& element = list.elements[i];
      if (!element.valid()) continue;
      if (element.rank() == 0)
        return context.fail("element {} is a scalar, which cannot be joined",
                            i);
      const Shape whole = element.shape();
      const PartialShape rest(whole.dims().subspan(1));
      if (!form.rest.compatible(rest))
        return context.fail(
            "element {} is {}, beyond the first dimension {} is wanted", i,
            element.describe(), form.rest.to_string());
      form.rest = rest;
      const int64_t first = element.dim(0);
      if (first_is_given && first != form.first)
        return context.fail(
            "element {} is {}, a first dimension of {} is "
            "wanted",
            i, element.describe(), form.first);
      if (!first_is_given)
        form.first = !found || form.first == first ? first : kUnknownDim;
      found = true;
    }
    return form;
  }

  // The number of rows of element i. For an element that is not set, it comes
  // from leading_dims, or is that of all the others.
  static Result<int64_t> length_of(const KernelContext& context,
                                   const TensorList& list, int64_t i,
                                   int64_t first) {
    const Tensor& element = list.elements[size_t(i)];
    if (element.valid()) return element.dim(0);
    const int64_t given =
        context.num_inputs() > 2 ? context.input(2).num_elements() : 0;
    if (i >= given && first != kUnknownDim) return first;
    if (i >= given)
      return context.fail(
          "element {} was not set, and there are {} leading_dims to say its "
          "length",
          i, given);
    const int64_t length = context.input(2).data<int64_t>()[i];
    if (length < 0)
      return context.fail("leading_dims[{}] is negative: {}", i, length);
    return length;
  }

  DataType dtype_;
  PartialShape element_shape_;
};

class ListSplitKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ListSplitKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& tensor = context.input(0);
    const Tensor& lengths = context.input(2);
    TAGFLOW_ASSIGN(PartialShape shape,
                   shape_input(context, 1, "element_shape"));
    if (shape.has_rank() && shape.rank() == 0)
      return context.fail("rows cannot be split into scalar elements");
    if (tensor.rank() == 0)
      return context.fail("the tensor must have rows, not be {}",
                          tensor.describe());
    if (lengths.rank() != 1)
      return context.fail("lengths must be a vector, not {}",
                          lengths.describe());
    int64_t begin = 0;
    std::vector<Tensor> parts;
    parts.reserve(size_t(lengths.num_elements()));
    for (const int64_t length : lengths.flat<int64_t>()) {
      if (length < 0) return context.fail("length {} is negative", length);
      if (length > tensor.dim(0) - begin)
        return context.fail("{} rows from row {} on are beyond the end of {}",
                            length, begin, tensor.describe());
      TAGFLOW_ASSIGN(Tensor part, copy_rows(context, tensor, begin, length));
      if (!accepts_shape_of(shape, part))
        return context.fail("part {} is {}, elements have the shape {}",
                            parts.size(), part.describe(), shape.to_string());
      parts.push_back(std::move(part));
      begin += length;
    }
    if (begin != tensor.dim(0))
      return context.fail("lengths say {} of the rows of {}", begin,
                          tensor.describe());
    TAGFLOW_ASSIGN(TensorList * list,
                   new_value_output<TensorList>(context, 0, tensor.dtype(),
                                                std::move(shape)));
    list->elements = std::move(parts);
    return {};
  }
};

}  // namespace

void register_tensor_list_join_kernels(KernelRegistry& registry) {
  registry.add<ListConcatKernel>("TensorListConcat");
  registry.add<ListConcatKernel>("TensorListConcatV2");
  registry.add<ListSplitKernel>("TensorListSplit");
}

}  // namespace tagflow::devices
