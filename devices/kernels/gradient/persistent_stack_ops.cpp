// PersistentStack* ops, for values and for gradients.
#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/gradient/list.h"
#include "devices/kernels/gradient/persistent_stack.h"

namespace tagflow::devices {

namespace {

constexpr const char* kStackName = "persistent stack";

// The stack of input 0; null if it is an empty variant.
Result<const PersistentStack*> stack_or_zeros(const KernelContext& context) {
  const Tensor& tensor = context.input(0);
  if (tensor.dtype() == DataType::kVariant && tensor.is_scalar() &&
      tensor.data<Variant>()->get() == nullptr)
    return nullptr;
  return value_input<PersistentStack>(context, 0, kStackName);
}

// As above, and its elements must be of that type.
Result<const PersistentStack*> stack_or_zeros(const KernelContext& context,
                                              DataType dtype) {
  TAGFLOW_ASSIGN(const auto* stack, stack_or_zeros(context));
  if (stack == nullptr || stack->dtype() == dtype) return stack;
  return context.fail("elements of {} are wanted, not of {}", dtype_name(dtype),
                      stack->describe());
}

class PersistentStackKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PersistentStackKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "elem_type")) {}

  Status compute(KernelContext& context) const override {
    return new_value_output<PersistentStack>(context, 0, dtype_).status();
  }

 private:
  DataType dtype_;
};

class PersistentPushKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PersistentPushKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& element = context.input(1);
    TAGFLOW_ASSIGN(const auto* stack, stack_or_zeros(context));
    if (stack == nullptr) {
      TAGFLOW_ASSIGN(auto* made, new_value_output<PersistentStack>(
                                     context, 0, element.dtype()));
      made->push(element, context.step().step_id, context.allocator());
      return {};
    }
    if (element.dtype() != stack->dtype())
      return context.fail("cannot push {} onto {}", element.describe(),
                          stack->describe());
    TAGFLOW_ASSIGN(auto* output,
                   changed_value_output<PersistentStack>(context, 0, 0));
    output->push(element, context.step().step_id, context.allocator());
    return {};
  }
};

// The value that the pops take; null if the input is invalid: they report it.
Ref<SavedTensor> top_of_input(const KernelContext& context) {
  const auto stack = stack_or_zeros(context);
  if (!stack.ok() || *stack == nullptr) return {};
  return (*stack)->next_saved();
}

// PersistentStackPushZero. Below all nonzero elements it does nothing: elements
// below the end of a stack are zero.
class PersistentPushZeroKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PersistentPushZeroKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "elem_type")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* stack, stack_or_zeros(context, dtype_));
    if (stack == nullptr || stack->size() == 0) {
      context.set_output(0, context.input(0));
      return {};
    }
    TAGFLOW_ASSIGN(auto* output,
                   changed_value_output<PersistentStack>(context, 0, 0));
    output->push(Tensor(), 0, context.allocator());
    return {};
  }

 private:
  DataType dtype_;
};

class PersistentPopKernel final : public CheapKernel, public SavedReader {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PersistentPopKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(1)),
        shape_(attr_of<PartialShape>(info, "elem_shape")) {}

  Ref<SavedTensor> next_saved(const KernelContext& context) const override {
    return top_of_input(context);
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* stack,
                   value_input<PersistentStack>(context, 0, kStackName));
    if (stack->dtype() != dtype_)
      return context.fail("cannot pop a {} from {}", dtype_name(dtype_),
                          stack->describe());
    if (stack->size() == 0)
      return context.fail("{} is empty", stack->describe());
    TAGFLOW_ASSIGN(auto* output,
                   changed_value_output<PersistentStack>(context, 0, 0));
    Tensor element = output->pop();
    if (!element.valid())
      return context.fail("the top of {} is a zero of unknown shape",
                          output->describe());
    if (shape_.has_rank() && !shape_.compatible(element.shape()))
      return context.fail("the top of {} is {}, of another shape than {}",
                          output->describe(), element.describe(),
                          shape_.to_string());
    context.set_output(1, std::move(element));
    return {};
  }

 private:
  DataType dtype_;
  PartialShape shape_;  // of the elements
};

// PersistentStackPopOrZero, and PersistentStackDrop, which has no element.
class PersistentPopOrZeroKernel final : public CheapKernel, public SavedReader {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PersistentPopOrZeroKernel(const KernelInfo& info)
      : dtype_(attr_of<DataType>(info, "elem_type")) {}

  // A dropped value need not be fetched.
  Ref<SavedTensor> next_saved(const KernelContext& context) const override {
    return context.num_outputs() == 1 ? Ref<SavedTensor>()
                                      : top_of_input(context);
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* stack, stack_or_zeros(context, dtype_));
    Tensor element;
    if (stack == nullptr || stack->size() == 0) {
      context.set_output(0, context.input(0));
    } else {
      TAGFLOW_ASSIGN(auto* output,
                     changed_value_output<PersistentStack>(context, 0, 0));
      element = output->pop();
    }
    if (context.num_outputs() == 1) return {};
    TAGFLOW_ASSIGN(context.output(1),
                   gradient_or_zeros(context, std::move(element), dtype_, 1));
    return {};
  }

 private:
  DataType dtype_;
};

class PersistentSizeKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit PersistentSizeKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* stack,
                   value_input<PersistentStack>(context, 0, kStackName));
    context.set_output(0, Tensor::scalar(stack->size()));
    return {};
  }
};

}  // namespace

void register_persistent_stack_kernels(KernelRegistry& registry) {
  registry.add<PersistentStackKernel>("PersistentStack");
  registry.add<PersistentPushKernel>("PersistentStackPush");
  registry.add<PersistentPushZeroKernel>("PersistentStackPushZero");
  registry.add<PersistentPopKernel>("PersistentStackPop");
  registry.add<PersistentPopOrZeroKernel>("PersistentStackPopOrZero");
  registry.add<PersistentPopOrZeroKernel>("PersistentStackDrop");
  registry.add<PersistentSizeKernel>("PersistentStackSize");
}

}  // namespace tagflow::devices
