// Gradients of containers, many elements at a time: they are the rows of a
// tensor, one or several for each element.
#include <algorithm>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/gradient/list.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// GradientListAddRows, and GradientListPutRows, in which a row replaces the
// existing element, even if that is an earlier row.
class GradientAddRowsKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientAddRowsKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs),
        puts_(info.node().op() == "GradientListPutRows") {}

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(2);
    TAGFLOW_RETURN_IF_ERROR(gradient_list_input(context).status());
    TAGFLOW_ASSIGN(const auto indices, numbers_input(context, 1, "index"));
    if (values.rank() < 1 || values.dim(0) != int64_t(indices.size()))
      return context.fail("{} indices for the rows of {}", indices.size(),
                          values.describe());
    std::vector<Tensor> rows;
    TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, values, rows));
    TAGFLOW_ASSIGN(GradientList * list, changed_gradient_list(context));
    VariantSum sum(context, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto change =
          puts_ ? &GradientList::put_element : &GradientList::add_element;
      TAGFLOW_RETURN_IF_ERROR((list->*change)(sum, indices[i], rows[i]));
    }
    return sum.finish();
  }

 private:
  bool puts_;
};

// GradientListGetRows and GradientListTakeRows. If an index is repeated, the
// last row takes the element, as a list keeps the last value that was put in.
class GradientGetRowsKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientGetRowsKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        takes_(info.num_outputs() > 1),
        dtype_(info.output_dtype(takes_ ? 1 : 0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* list, gradient_list_input(context));
    TAGFLOW_ASSIGN(const auto indices, numbers_input(context, 1, "index"));
    TAGFLOW_ASSIGN(const Shape shape, element_shape(context, dtype_, 2));
    std::vector<Tensor> rows(indices.size());
    if (list == nullptr) {
      if (takes_) context.set_output(0, context.input(0));
    } else if (takes_) {
      TAGFLOW_ASSIGN(GradientList * output, changed_gradient_list(context));
      for (size_t i = rows.size(); i-- > 0;)
        rows[i] = output->elements.take(indices[i]);
    } else {
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = list->get(indices[i]);
    }
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i].valid() &&
          (rows[i].dtype() != dtype_ || !accepts_shape_of(shape, rows[i])))
        return context.fail("element {} is {}, not {}{}", indices[i],
                            rows[i].describe(), dtype_name(dtype_),
                            shape.to_string());
    TAGFLOW_ASSIGN(context.output(takes_ ? 1 : 0),
                   stack_rows(context, dtype_, rows, shape));
    if (dtype_ == DataType::kVariant) release_nested(std::move(rows));
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    const auto rows = double(context.input(1).num_elements());
    return rows * (element_bytes(context, dtype_, 2) + double(sizeof(Tensor)));
  }

  bool takes_;
  DataType dtype_;
};

// The lengths in an input, one for each element.
Result<std::span<const int64_t>> element_lengths(const KernelContext& context,
                                                 int input) {
  const Tensor& lengths = context.input(input);
  if (lengths.rank() != 1)
    return context.fail("lengths must be a vector, not {}", lengths.describe());
  for (const int64_t length : lengths.flat<int64_t>())
    if (length < 0) return context.fail("length {} is negative", length);
  return lengths.flat<int64_t>();
}

class GradientAddSplitKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientAddSplitKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& values = context.input(1);
    TAGFLOW_RETURN_IF_ERROR(gradient_list_input(context).status());
    TAGFLOW_ASSIGN(const auto lengths, element_lengths(context, 2));
    if (values.rank() < 1)
      return context.fail("the values must have rows, not be {}",
                          values.describe());
    TAGFLOW_ASSIGN(GradientList * list, changed_gradient_list(context));
    VariantSum sum(context, 0);
    int64_t begin = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > values.dim(0) - begin)
        return context.fail("{} rows from row {} on are beyond the end of {}",
                            lengths[i], begin, values.describe());
      TAGFLOW_ASSIGN(const Tensor part,
                     copy_rows(context, values, begin, lengths[i]));
      TAGFLOW_RETURN_IF_ERROR(list->add_element(sum, int64_t(i), part));
      begin += lengths[i];
    }
    if (begin != values.dim(0))
      return context.fail("lengths say {} of the rows of {}", begin,
                          values.describe());
    return sum.finish();
  }
};

class GradientGetConcatKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientGetConcatKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* list, gradient_list_input(context));
    TAGFLOW_ASSIGN(const auto lengths, element_lengths(context, 1));
    TAGFLOW_ASSIGN(const Shape rest, element_shape(context, dtype_, 2));
    std::vector<Tensor> parts(lengths.size());
    Shape shape = rest;
    shape.insert_dim(0, 0);
    for (size_t i = 0; list != nullptr && i < parts.size(); ++i) {
      parts[i] = list->get(int64_t(i));
      shape.set_dim(0, lengths[i]);
      if (parts[i].valid() &&
          (parts[i].dtype() != dtype_ || !accepts_shape_of(shape, parts[i])))
        return context.fail("element {} is {}, not {}{}", i,
                            parts[i].describe(), dtype_name(dtype_),
                            shape.to_string());
    }
    return join_rows(context, parts, lengths, rest);
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    const Tensor& lengths = context.input(1);
    double rows = 0;
    for (int64_t i = 0; i < lengths.num_elements(); ++i)
      rows += std::max(0.0, double(lengths.data<int64_t>()[i]));
    return rows * element_bytes(context, dtype_, 2) +
           double(lengths.num_elements()) * sizeof(Tensor);
  }

  DataType dtype_;
};

}  // namespace

void register_gradient_list_row_kernels(KernelRegistry& registry) {
  registry.add<GradientAddRowsKernel>("GradientListAddRows");
  registry.add<GradientAddRowsKernel>("GradientListPutRows");
  registry.add<GradientGetRowsKernel>("GradientListGetRows");
  registry.add<GradientGetRowsKernel>("GradientListTakeRows");
  registry.add<GradientAddSplitKernel>("GradientListAddSplit");
  registry.add<GradientGetConcatKernel>("GradientListGetConcat");
}

}  // namespace tagflow::devices
