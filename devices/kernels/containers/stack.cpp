// Mutable stacks that live as long as their step. Loops save in them the values
// that their gradients need: StackV2 and its relatives by resource handles, the
// older Stack by names, which are stored in its string references.
#include <mutex>

#include "devices/counted_growth.h"
#include "devices/kernels/containers/values.h"
#include "devices/saved_tensor.h"
#include "devices/thread_activity.h"
#include "graph/status_exception.h"

namespace tagflow::devices {

namespace {

class Stack final : public StepObject {
 public:
  // No bound if max_size is negative. Throws a StatusException if the memory's
  // limit would be exceeded.
  Stack(std::string name, DataType dtype, int64_t max_size, Allocator& memory)
      : name_(std::move(name)), dtype_(dtype), max_size_(max_size) {
    if (!charge_.set(memory, kOwnBytes))
      throw StatusException(out_of_memory(memory, title(), kOwnBytes));
  }
  ~Stack() override { release(std::move(elements_)); }

  Status push(const KernelContext& context, const Tensor& value) {
    if (value.dtype() != dtype_)
      return context.fail("cannot push {} onto {}", value.describe(),
                          describe());
    Element element{{}, save(value, context.step().step_id)};
    if (element.saved == nullptr) element.value = value;
    std::lock_guard lock(mutex_);
    if (closed_) return closed(context);
    if (max_size_ >= 0 && int64_t(elements_.size()) >= max_size_)
      return context.fail("stack \"{}\" is full: its max_size is {}", name_,
                          max_size_);
    TAGFLOW_RETURN_IF_ERROR(make_room(
        context, elements_, elements_.size() + 1, charge_, kOwnBytes, [this] {
          return fmt::format("{} with {} elements", title(), elements_.size());
        }));
    elements_.push_back(std::move(element));
    return {};
  }

  Result<Tensor> pop(const KernelContext& context) {
    std::lock_guard lock(mutex_);
    if (closed_) return closed(context);
    if (elements_.empty()) return context.fail("stack \"{}\" is empty", name_);
    Element element = std::move(elements_.back());
    elements_.pop_back();
    if (element.saved != nullptr) return element.saved->take();
    return std::move(element.value);
  }

  // The value that the next pop will take, unless another pop comes first.
  Ref<SavedTensor> next_saved() const {
    std::lock_guard lock(mutex_);
    if (elements_.empty()) return {};
    return Ref(elements_.back().saved.get());
  }

  std::string describe() const override {
    std::lock_guard lock(mutex_);
    return fmt::format("stack \"{}\" of {} with {} elements", name_,
                       dtype_name(dtype_), elements_.size());
  }

  void end() override {
    std::vector<Element> elements;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      elements.swap(elements_);
      charge_.clear();
    }
    release(std::move(elements));
  }

  DataType dtype() const { return dtype_; }

 private:
  // A value, or the SavedTensor that replaces it.
  struct Element {
    Tensor value;
    SavedOwner saved;
  };

  // Of the object, its handle, and its places in the lists of the step.
  static constexpr size_t kOwnBytes = 512;

  std::string title() const { return fmt::format("stack \"{}\"", name_); }
  static void release(std::vector<Element>&& elements) {
    const FreedElements freed("stack", elements.size());
    for (Element& element : elements)
      if (!is_plain(element.value.dtype()))
        release_nested(std::move(element.value));
    elements.clear();
  }

  Status closed(const KernelContext& context) const {
    return context.fail("stack \"{}\" has been closed", name_);
  }

  const std::string name_;
  const DataType dtype_;
  const int64_t max_size_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::vector<Element> elements_;
  MemoryCharge charge_;
};

// The attributes of stacks in both versions.
struct StackAttrs {
  explicit StackAttrs(const KernelInfo& info)
      : dtype(attr_of<DataType>(info, "elem_type")),
        name(attr_of<std::string>(info, "stack_name")) {
    if (name.empty()) name = info.name();
  }
  DataType dtype;
  std::string name;
};

class StackV2Kernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit StackV2Kernel(const KernelInfo& info) : attrs_(info) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const int64_t max_size, int32_input(context, 0, "max_size"));
    TAGFLOW_ASSIGN(StepResources * resources, step_resources(context));
    TAGFLOW_ASSIGN(Tensor * handle, context.allocate_output(0, {}));
    *handle->mutable_data<ResourceHandle>() = resources->make<Stack>(
        attrs_.name, attrs_.dtype, max_size, context.allocator());
    return {};
  }

 private:
  StackAttrs attrs_;
};

// The handle is a vector of two strings, the kind of object and its name. The
// name is unique to one execution of the node, at any time.
class LegacyStackKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit LegacyStackKernel(const KernelInfo& info) : attrs_(info) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(StepResources * resources, step_resources(context));
    const Tag& tag = context.tag();
    const std::string name =
        fmt::format("{}/{}@{:x}.{:x}.{}", attrs_.name, context.node().name(),
                    tag.frame_hi, tag.frame_lo, tag.iteration);
    if (!resources->add_name(
            name, resources->make<Stack>(attrs_.name, attrs_.dtype, -1,
                                         context.allocator())))
      return error(Code::kAlreadyExists, "[Stack] there is a stack \"{}\"",
                   name);
    context.set_output(0, Tensor::of<std::string>({2}, {kKind, name}));
    return {};
  }

  static constexpr const char* kKind = "_stacks";

 private:
  StackAttrs attrs_;
};

// Calls use(stack) with the stack of input 0, a resource handle.
struct ByHandle {
  template <class F>
  static Status with_stack(const KernelContext& context, F&& use) {
    TAGFLOW_ASSIGN(Stack * stack, object_input<Stack>(context, 0, "stack"));
    return use(*stack);
  }
};

// Finds the stack by its name.
struct ByName {
  template <class F>
  static Status with_stack(const KernelContext& context, F&& use) {
    const Tensor& name = context.input(0);
    if (name.dtype() != DataType::kString || name.num_elements() != 2)
      return context.fail("a stack's handle is a vector of two strings, not {}",
                          name.describe());
    TAGFLOW_ASSIGN(StepResources * resources, step_resources(context));
    const std::string& text = name.data<std::string>()[1];
    const ResourceHandle handle = resources->find(text);
    Stack* stack = step_object<Stack>(handle);
    if (stack == nullptr)
      return error(Code::kNotFound, "[{}] this step has no stack \"{}\"",
                   context.node().op(), text);
    return use(*stack);
  }
};

template <class By>
class StackPushKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit StackPushKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(By::with_stack(context, [&](Stack& stack) {
      return stack.push(context, context.input(1));
    }));
    context.set_output(0, context.input(1));
    return {};
  }
};

template <class By>
class StackPopKernel final : public CheapKernel, public SavedReader {
 public:
  static constexpr bool kTakesHandles = true;

  explicit StackPopKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Ref<SavedTensor> next_saved(const KernelContext& context) const override {
    Ref<SavedTensor> saved;
    const Status found = By::with_stack(context, [&](Stack& stack) -> Status {
      saved = stack.next_saved();
      return {};
    });
    return found.ok() ? saved : Ref<SavedTensor>();
  }

  Status compute(KernelContext& context) const override {
    return By::with_stack(context, [&](Stack& stack) -> Status {
      if (stack.dtype() != dtype_)
        return context.fail("cannot pop a {} from {}", dtype_name(dtype_),
                            stack.describe());
      TAGFLOW_ASSIGN(context.output(0), stack.pop(context));
      return {};
    });
  }

 private:
  DataType dtype_;
};

template <class By>
class StackCloseKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit StackCloseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return By::with_stack(context, [](Stack& stack) -> Status {
      stack.end();
      return {};
    });
  }
};

}  // namespace

void register_stack_kernels(KernelRegistry& registry) {
  registry.add<StackV2Kernel>("StackV2");
  registry.add<StackPushKernel<ByHandle>>("StackPushV2");
  registry.add<StackPopKernel<ByHandle>>("StackPopV2");
  registry.add<StackCloseKernel<ByHandle>>("StackCloseV2");
  registry.add<LegacyStackKernel>("Stack");
  registry.add<StackPushKernel<ByName>>("StackPush");
  registry.add<StackPopKernel<ByName>>("StackPop");
  registry.add<StackCloseKernel<ByName>>("StackClose");
}

}  // namespace tagflow::devices
