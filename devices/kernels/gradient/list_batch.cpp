// Gradients of a tensor of containers: each op runs on every container.
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/gradient/list.h"
#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

// Checks gradients of containers of that shape; a scalar empty variant counts
// for all of them.
Status check_lists(const KernelContext& context, int input,
                   const Shape& shape) {
  const Tensor& lists = context.input(input);
  if (is_zero_variant(lists)) return {};
  if (!(lists.shape() == shape))
    return context.fail("input {} must have the shape {}, not be {}", input,
                        shape.to_string(), lists.describe());
  for (const Variant& variant : lists.flat<Variant>())
    if (variant.get() != nullptr && value_as<GradientList>(variant) == nullptr)
      return context.fail("input {} has no gradient list but {}", input,
                          describe_variant(variant));
  return {};
}

// Element i of such an input; null if it is an empty variant.
const GradientList* list_at(const KernelContext& context, int input,
                            int64_t i) {
  const Tensor& lists = context.input(input);
  return is_zero_variant(lists)
             ? nullptr
             : value_as<GradientList>(lists.data<Variant>()[i]);
}

// Output 0, with the lists of input 0: see changed_variants_output(). REQUIRES:
// check_lists() gave no error for it.
Result<std::span<Variant>> lists_output(KernelContext& context,
                                        const Shape& shape) {
  if (!is_zero_variant(context.input(0)))
    return changed_variants_output(context, 0, 0);
  TAGFLOW_ASSIGN(Tensor * zeros, context.allocate_output(0, shape));
  return zeros->mutable_flat<Variant>();
}

// The list, unshared.
GradientList& own_list(Variant& variant) {
  if (variant.get() == nullptr)
    variant = Variant(make_ref_counted<GradientList>());
  return own_value<GradientList>(variant);
}

class TakeBatchKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TakeBatchKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), dtype_(info.output_dtype(1)) {}

  Status compute(KernelContext& context) const override {
    const Tensor indices = context.input(1);
    if (indices.rank() != 1)
      return context.fail("the indices must be a vector, not {}",
                          indices.describe());
    TAGFLOW_RETURN_IF_ERROR(check_lists(context, 0, indices.shape()));
    TAGFLOW_RETURN_IF_ERROR(numbers_input(context, 1, "index").status());
    TAGFLOW_ASSIGN(const Shape shape, element_shape(context, dtype_, 2));
    TAGFLOW_ASSIGN(const auto lists, lists_output(context, indices.shape()));
    std::vector<Tensor> rows(lists.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t index = indices.data<int32_t>()[i];
      const auto* list = value_as<GradientList>(lists[i]);
      if (list == nullptr || list->elements.find(index) == nullptr) continue;
      rows[i] = own_list(lists[i]).elements.take(index);
      if (rows[i].dtype() != dtype_ || !accepts_shape_of(shape, rows[i]))
        return context.fail("element {} of list {} is {}, not {}{}", index, i,
                            rows[i].describe(), dtype_name(dtype_),
                            shape.to_string());
    }
    TAGFLOW_ASSIGN(context.output(1), stack_rows(context, dtype_, rows, shape));
    if (dtype_ == DataType::kVariant) release_nested(std::move(rows));
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return double(context.input(1).num_elements()) *
           (element_bytes(context, dtype_, 2) + double(sizeof(Tensor)));
  }

  DataType dtype_;
};

class PutBatchKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PutBatchKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor indices = context.input(1);
    const Tensor& values = context.input(2);
    if (indices.rank() != 1 || values.rank() < 1 ||
        values.dim(0) != indices.dim(0))
      return context.fail("as many indices as rows are wanted, not {} and {}",
                          indices.describe(), values.describe());
    TAGFLOW_RETURN_IF_ERROR(check_lists(context, 0, indices.shape()));
    TAGFLOW_RETURN_IF_ERROR(numbers_input(context, 1, "index").status());
    std::vector<Tensor> rows;
    TAGFLOW_RETURN_IF_ERROR(unstack_rows(context, values, rows));
    TAGFLOW_ASSIGN(const auto lists, lists_output(context, indices.shape()));
    VariantSum sum(context, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t index = indices.data<int32_t>()[i];
      TAGFLOW_RETURN_IF_ERROR(
          own_list(lists[i]).put_element(sum, index, rows[i]));
    }
    return sum.finish();
  }
};

// The cost of reading and copying all elements of an input's lists.
double cost_of_elements_in(const KernelContext& context, int input) {
  if (context.input(input).dtype() != DataType::kVariant) return 0;
  double elements = 0;
  for (const Variant& variant : context.input(input).flat<Variant>())
    if (const auto* list = value_as<GradientList>(variant))
      elements += double(list->copy_size());
  return 30 * elements;
}

class SplitListsKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit SplitListsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor lengths = context.input(1);
    TAGFLOW_RETURN_IF_ERROR(check_lists(context, 0, lengths.shape()));
    TAGFLOW_RETURN_IF_ERROR(numbers_input(context, 1, "length").status());
    TAGFLOW_ASSIGN(const auto first, lists_output(context, lengths.shape()));
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(1, lengths.shape()));
    const auto rest = output->mutable_flat<Variant>();
    for (size_t i = 0; i < first.size(); ++i) {
      const auto* list = value_as<GradientList>(first[i]);
      if (list == nullptr) continue;
      const int32_t length = lengths.data<int32_t>()[i];
      std::vector<int64_t> moved;
      list->elements.for_each([&](int64_t index, const Tensor&) {
        if (index >= length) moved.push_back(index);
      });
      if (moved.empty()) continue;
      GradientList& own = own_list(first[i]);
      GradientList& later = own_list(rest[i]);
      for (const int64_t index : moved)
        later.elements.try_emplace(index - length, own.elements.take(index));
    }
    return {};
  }
  double cost(const KernelContext& context) const override {
    return cost_of_elements_in(context, 0);
  }
};

class JoinListsKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit JoinListsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor lengths = context.input(2);
    TAGFLOW_RETURN_IF_ERROR(check_lists(context, 0, lengths.shape()));
    TAGFLOW_RETURN_IF_ERROR(check_lists(context, 1, lengths.shape()));
    TAGFLOW_RETURN_IF_ERROR(numbers_input(context, 2, "length").status());
    TAGFLOW_ASSIGN(const auto lists, lists_output(context, lengths.shape()));
    VariantSum sum(context, 0);
    for (size_t i = 0; i < lists.size(); ++i) {
      const GradientList* later = list_at(context, 1, int64_t(i));
      if (later == nullptr) continue;
      GradientList& list = own_list(lists[i]);
      Status status;
      later->elements.for_each([&](int64_t index, const Tensor& element) {
        if (status.ok())
          status = list.add_element(sum, index + lengths.data<int32_t>()[i],
                                    element);
      });
      TAGFLOW_RETURN_IF_ERROR(std::move(status));
    }
    return sum.finish();
  }
  double cost(const KernelContext& context) const override {
    return cost_of_elements_in(context, 0) + cost_of_elements_in(context, 1);
  }
};

}  // namespace

void register_gradient_list_batch_kernels(KernelRegistry& registry) {
  registry.add<TakeBatchKernel>("GradientListTakeBatch");
  registry.add<PutBatchKernel>("GradientListPutBatch");
  registry.add<SplitListsKernel>("GradientListSplit");
  registry.add<JoinListsKernel>("GradientListJoin");
}

}  // namespace tagflow::devices
