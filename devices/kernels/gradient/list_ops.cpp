// Gradients of containers, one element at a time.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/gradient/list.h"

namespace tagflow::devices {

namespace {

class ZeroVariantKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit ZeroVariantKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return context.allocate_output(0, {}).status();
  }
};

Result<int64_t> gradient_index(const KernelContext& context) {
  TAGFLOW_ASSIGN(const int64_t index, int32_input(context, 1, "index"));
  if (index < 0) return context.fail("index {} is negative", index);
  return index;
}

class GradientAddKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientAddKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.2) {}

  Status compute(KernelContext& context) const override {
    const Tensor& value = context.input(2);
    TAGFLOW_RETURN_IF_ERROR(gradient_list_input(context).status());
    TAGFLOW_ASSIGN(const int64_t index, gradient_index(context));
    if (is_zero_variant(value)) {
      context.set_output(0, context.input(0));
      return {};
    }
    TAGFLOW_ASSIGN(GradientList * list, changed_gradient_list(context));
    VariantSum sum(context, 0);
    TAGFLOW_RETURN_IF_ERROR(list->add_element(sum, index, value));
    return sum.finish();
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    return double(context.input(2).bytes());
  }
};

// GradientListPut: replaces an existing element.
class GradientPutKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientPutKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(gradient_list_input(context).status());
    TAGFLOW_ASSIGN(const int64_t index, gradient_index(context));
    TAGFLOW_ASSIGN(GradientList * list, changed_gradient_list(context));
    VariantSum sum(context, 0);
    return list->put_element(sum, index, context.input(2));
  }
};

class GradientGetKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientGetKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* list, gradient_list_input(context));
    TAGFLOW_ASSIGN(const int64_t index, gradient_index(context));
    TAGFLOW_ASSIGN(
        context.output(0),
        gradient_or_zeros(
            context, list == nullptr ? Tensor() : list->get(index), dtype_, 2));
    return {};
  }

 private:
  DataType dtype_;
};

class GradientTakeKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientTakeKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(1)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* list, gradient_list_input(context));
    TAGFLOW_ASSIGN(const int64_t index, gradient_index(context));
    Tensor element;
    if (list == nullptr || list->elements.find(index) == nullptr) {
      context.set_output(0, context.input(0));
    } else {
      TAGFLOW_ASSIGN(GradientList * output, changed_gradient_list(context));
      element = output->elements.take(index);
    }
    TAGFLOW_ASSIGN(context.output(1),
                   gradient_or_zeros(context, std::move(element), dtype_, 2));
    return {};
  }

 private:
  DataType dtype_;
};

// GradientListDrop: removes the elements [begin, end).
class GradientDropKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit GradientDropKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* list, gradient_list_input(context));
    TAGFLOW_ASSIGN(const int64_t begin, int32_input(context, 1, "begin"));
    TAGFLOW_ASSIGN(const int64_t end, int32_input(context, 2, "end"));
    if (list == nullptr || begin >= end) {
      context.set_output(0, context.input(0));
      return {};
    }
    TAGFLOW_ASSIGN(GradientList * output, changed_gradient_list(context));
    if (end - begin < output->copy_size()) {
      for (int64_t i = begin; i < end; ++i)
        release_nested(output->elements.take(i));
    } else {
      std::vector<int64_t> dropped;
      output->elements.for_each([&](int64_t index, const Tensor&) {
        if (index >= begin && index < end) dropped.push_back(index);
      });
      for (const int64_t i : dropped) release_nested(output->elements.take(i));
    }
    return {};
  }
  double cost(const KernelContext& context) const override {
    const auto list = gradient_list_input(context);
    const auto begin = int32_input(context, 1, "begin");
    const auto end = int32_input(context, 2, "end");
    if (!list.ok() || *list == nullptr || !begin.ok() || !end.ok()) return 0;
    const int64_t dropped = std::max<int64_t>(0, *end - *begin);
    return 20.0 * double(std::min((*list)->copy_size(), dropped));
  }
};

}  // namespace

void register_gradient_list_kernels(KernelRegistry& registry) {
  registry.add<ZeroVariantKernel>("ZeroVariant");
  registry.add<GradientAddKernel>("GradientListAdd");
  registry.add<GradientPutKernel>("GradientListPut");
  registry.add<GradientGetKernel>("GradientListGet");
  registry.add<GradientTakeKernel>("GradientListTake");
  registry.add<GradientDropKernel>("GradientListDrop");
}

}  // namespace tagflow::devices
