#include "devices/cpu/persistent_stack.h"

#include "devices/cpu/container_kernels.h"

namespace tagflow::devices {

PersistentStack::PersistentStack(const PersistentStack& other)
    : VariantValue(),
      dtype_(other.dtype_),
      size_(other.size_),
      top_(other.top_) {}

// Chunk by chunk: a stack may be as long as memory allows.
PersistentStack::Chunk::~Chunk() {
  for (Tensor& element : elements)
    if (!is_plain(element.dtype())) release_nested(std::move(element));
  Ref<Chunk> next = std::move(below.chunk);
  while (next && next->unique()) next = std::move(next->below.chunk);
}

std::string PersistentStack::describe() const {
  return fmt::format("PersistentStack[{}] of {}", size_, dtype_name(dtype_));
}

void PersistentStack::push(const Tensor& value) {
  uint32_t expected = top_.count;
  const bool has_room =
      top_.chunk && top_.count < kChunk &&
      top_.chunk->used.compare_exchange_strong(expected, top_.count + 1,
                                               std::memory_order_relaxed);
  if (!has_room) {
    auto chunk = make_ref_counted<Chunk>(std::move(top_));
    chunk->used.store(1, std::memory_order_relaxed);
    top_ = {std::move(chunk), 0};
  }
  top_.chunk->elements[top_.count++] = value;
  ++size_;
}

Tensor PersistentStack::pop() {
  const uint32_t at = top_.count - 1;
  Tensor value;
  if (top_.chunk->unique()) {
    // Whatever lies above belonged to stacks that are gone.
    value = std::move(top_.chunk->elements[at]);
    for (uint32_t i = top_.chunk->used.load(std::memory_order_relaxed);
         i-- > top_.count;)
      release_nested(std::exchange(top_.chunk->elements[i], Tensor()));
    top_.chunk->used.store(at, std::memory_order_relaxed);
  } else {
    value = top_.chunk->elements[at];
  }
  --top_.count;
  --size_;
  if (top_.count == 0) {
    Part below = top_.chunk->below;
    top_ = std::move(below);
  }
  return value;
}

namespace {

constexpr const char* kStackName = "persistent stack";

class PersistentStackKernel final : public CheapKernel {
 public:
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
  explicit PersistentPushKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* stack,
                   value_input<PersistentStack>(context, 0, kStackName));
    if (context.input(1).dtype() != stack->dtype())
      return context.fail("cannot push {} onto {}", context.input(1).describe(),
                          stack->describe());
    TAGFLOW_ASSIGN(auto* output,
                   changed_value_output<PersistentStack>(context, 0, 0));
    output->push(context.input(1));
    return {};
  }
};

class PersistentPopKernel final : public CheapKernel {
 public:
  explicit PersistentPopKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(1)) {}

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
    context.set_output(1, output->pop());
    return {};
  }

 private:
  DataType dtype_;
};

class PersistentSizeKernel final : public CheapKernel {
 public:
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
  registry.add<PersistentPopKernel>("PersistentStackPop");
  registry.add<PersistentSizeKernel>("PersistentStackSize");
}

}  // namespace tagflow::devices
