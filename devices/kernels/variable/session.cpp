// GetSessionHandle, GetSessionTensor, DeleteSessionTensor: tensors that one run
// stores in the session for others.
#include <utility>

#include "devices/kernels/variable/state_inputs.h"
#include "devices/state/resource_op.h"

namespace tagflow::devices {

namespace {

constexpr std::string_view kSessionTensor = "session tensor";

// A constant value. Ended by DeleteSessionTensor, or a reset.
class SessionTensor final : public StateObject {
 public:
  SessionTensor(std::string name, Tensor value, MemoryCharge charge)
      : name_(std::move(name)),
        value_(std::move(value)),
        charge_(std::move(charge)) {}

  std::string describe() const override {
    return fmt::format("{} \"{}\"", kSessionTensor, name_);
  }
  // Not valid if it has ended.
  Tensor value() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 protected:
  void on_end(const Status&) override {
    Tensor freed;  // freed outside of the lock
    const std::lock_guard lock(mutex_);
    std::swap(freed, value_);
    charge_.clear();
  }

 private:
  const std::string name_;
  mutable std::mutex mutex_;  // guards the value
  Tensor value_;
  MemoryCharge charge_;  // of the object and its place in the session
};

ResourceKey key_of_handle(const std::string& handle) {
  return {"", std::string(kSessionTensor), handle};
}

// The handle is a string that names the tensor, or, for V2, a resource that is
// the tensor.
class GetSessionHandleKernel final : public CheapKernel {
 public:
  explicit GetSessionHandleKernel(const KernelInfo& info)
      : is_resource_(info.output_dtype(0) == DataType::kResource) {}

  Status compute(KernelContext& context) const override {
    const std::string& node = context.node().name();
    const Tensor& value = context.input(0);
    MemoryCharge charge;
    TAGFLOW_RETURN_IF_ERROR(
        context.count(charge, sizeof(SessionTensor) + 4 * node.size() + 256,
                      [] { return std::string(kSessionTensor); }));
    if (is_resource_) {
      TAGFLOW_ASSIGN(Tensor * handle, context.allocate_output(0, {}));
      *handle->mutable_data<ResourceHandle>() = ResourceHandle(Ref<Resource>(
          make_ref_counted<SessionTensor>(node, value, std::move(charge))));
      return {};
    }
    TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
    const Commit commit = context.commit();
    if (!commit) return too_late(context);
    // As in TensorFlow: the node, a number, the device. Another node of the
    // same name may have made some, too.
    for (bool is_new = false; !is_new;) {
      const std::string handle =
          fmt::format("{};{};/device:CPU:0", node, next_++);
      TAGFLOW_RETURN_IF_ERROR(
          state
              ->find_or_make(key_of_handle(handle),
                             [&]() -> Result<Ref<StateObject>> {
                               is_new = true;
                               return Ref<StateObject>(
                                   make_ref_counted<SessionTensor>(
                                       handle, value, std::move(charge)));
                             })
              .status());
      if (is_new) context.set_output(0, Tensor::scalar(handle));
    }
    return {};
  }

 private:
  const bool is_resource_;
  mutable std::atomic<int64_t> next_{0};
};

Result<std::string> handle_text(const KernelContext& context) {
  const Tensor& handle = context.input(0);
  if (handle.is_scalar()) return handle.scalar_value<std::string>();
  return context.fail("the handle must be a scalar, not {}", handle.describe());
}

Status no_such_tensor(const KernelContext& context, const std::string& handle) {
  return context.fail("the session has no tensor of handle {:?}", handle);
}

class GetSessionTensorKernel final : public CheapKernel {
 public:
  explicit GetSessionTensorKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
    TAGFLOW_ASSIGN(const std::string handle, handle_text(context));
    const Ref<StateObject> object = state->find(key_of_handle(handle));
    if (!object) return no_such_tensor(context, handle);
    Tensor value = static_cast<const SessionTensor&>(*object).value();
    if (!value.valid()) return no_such_tensor(context, handle);
    if (value.dtype() != dtype_)
      return context.fail("the tensor of handle {:?} is {}, not of {}", handle,
                          value.describe(), dtype_name(dtype_));
    context.set_output(0, std::move(value));
    return {};
  }

 private:
  const DataType dtype_;
};

class DeleteSessionTensorKernel final : public CheapKernel {
 public:
  explicit DeleteSessionTensorKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
    TAGFLOW_ASSIGN(const std::string handle, handle_text(context));
    const Commit commit = context.commit();
    if (!commit) return too_late(context);
    if (state->remove(key_of_handle(handle),
                      error(Code::kCancelled, "it was deleted")))
      return {};
    return no_such_tensor(context, handle);
  }
};

}  // namespace

void register_session_tensor_kernels(KernelRegistry& registry) {
  registry.add<GetSessionHandleKernel>("GetSessionHandle");
  registry.add<GetSessionHandleKernel>("GetSessionHandleV2");
  registry.add<GetSessionTensorKernel>("GetSessionTensor");
  registry.add<DeleteSessionTensorKernel>("DeleteSessionTensor");
}

}  // namespace tagflow::devices
