// Variables: creating and destroying them.
#include "devices/kernels/variable/state_inputs.h"
#include "devices/state/resource_op.h"
#include "devices/step_resources.h"

namespace tagflow::devices {
namespace {

using Mode = StateLock::Mode;

// VariableV2, Variable and VarHandleOp. References and handles are of two
// kinds: a name in a graph may refer to either.
class VariableKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit VariableKernel(const KernelInfo& info)
      : resource_(info),
        dtype_(attr_of<DataType>(info, "dtype")),
        shape_(declared_shape(info.node()).value()),
        replaces_(info.node().attrs().contains(kReplacesVariable)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(set_handle(context));
    if (!replaces_ || fits(*made(context))) return check(context);
    TAGFLOW_ASSIGN(ResourceManager* const manager, state_of(context));
    manager->remove(resource_.key(),
                    error(Code::kFailedPrecondition,
                          "[{}] {} has been replaced by one of {}{}",
                          context.node().op(), made(context)->describe(),
                          dtype_name(dtype_), shape_.to_string()));
    TAGFLOW_RETURN_IF_ERROR(set_handle(context));
    return check(context);
  }
  bool is_bookkeeping() const override { return true; }

 private:
  Status set_handle(KernelContext& context) const {
    return resource_.set_handle(context, [this]() -> Result<Ref<StateObject>> {
      return Ref<StateObject>(make_ref_counted<Variable>(
          resource_.is_anonymous() ? "" : resource_.key().name, dtype_,
          shape_));
    });
  }
  static const Variable* made(KernelContext& context) {
    return state_object<Variable>(*context.output(0).data<ResourceHandle>());
  }
  bool fits(const Variable& variable) const {
    return variable.dtype() == dtype_ &&
           variable.declared_shape().compatible(shape_);
  }
  // Another node may have made it.
  Status check(KernelContext& context) const {
    const Variable* const variable = made(context);
    if (fits(*variable)) return {};
    return context.fail(
        "{} exists, but the node asks for one of {}{} under that name",
        variable->describe(), dtype_name(dtype_), shape_.to_string());
  }

  const ResourceOp resource_;
  const DataType dtype_;
  const PartialShape shape_;
  const bool replaces_;
};

// The name of a temporary variable in its step: a loop may have one of that
// name in each iteration.
std::string name_in_step(const KernelContext& context,
                         const std::string& name) {
  const Tag& tag = context.tag();
  return fmt::format("temporary variable/{:x}/{:x}/{}/{}", tag.frame_hi,
                     tag.frame_lo, tag.iteration, name);
}

// Makes one for each execution of the node, at any time. AlreadyExists if there
// is one of that name, which has not been destroyed.
class TemporaryVariableKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TemporaryVariableKernel(const KernelInfo& info)
      : name_(attr_of<std::string>(info, "var_name")),
        dtype_(attr_of<DataType>(info, "dtype")),
        shape_(attr_of<PartialShape>(info, "shape")) {
    if (name_.empty()) name_ = info.name();
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Tensor handle, Tensor::allocate(DataType::kResource, {}));
    StepResources* const resources = context.step().resources;
    // The name alone is kept: the variable lives as long as its handle.
    if (resources != nullptr &&
        !resources->add_name(name_in_step(context, name_), ResourceHandle()))
      return error(Code::kAlreadyExists,
                   "[{}] there is a temporary variable \"{}\" already",
                   context.node().op(), name_);
    *handle.mutable_data<ResourceHandle>() =
        ResourceHandle(make_ref_counted<Variable>(name_, dtype_, shape_));
    context.set_output(0, std::move(handle));
    return {};
  }
  bool is_bookkeeping() const override { return true; }

 private:
  std::string name_;
  const DataType dtype_;
  const PartialShape shape_;
};

class DestroyTemporaryKernel final : public StateKernel {
 public:
  explicit DestroyTemporaryKernel(const KernelInfo& info)
      : name_(attr_of<std::string>(info, "var_name")) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, Mode::kExclusive, claim);
  }
  Status compute_held(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    if (variable->name() != name_)
      return error(Code::kNotFound,
                   "[{}] {} is not the temporary variable \"{}\"",
                   context.node().op(), variable->describe(), name_);
    if (variable->has_ended())
      return error(Code::kNotFound, "[{}] {} has been destroyed before",
                   context.node().op(), variable->describe());
    TAGFLOW_RETURN_IF_ERROR(variable->check_initialized());
    context.set_output(0, variable->value());
    variable->end(error(Code::kFailedPrecondition,
                        "[DestroyTemporaryVariable] {} has been destroyed",
                        variable->describe()));
    if (StepResources* const resources = context.step().resources)
      resources->remove_name(name_in_step(context, name_));
    return {};
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

 private:
  const std::string name_;
};

class DestroyKernel final : public UpdateKernel {
 public:
  explicit DestroyKernel(const KernelInfo& info)
      : may_be_missing_(attr_of<bool>(info, "ignore_lookup_error")) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    const Tensor& tensor = context.input(0);
    if (tensor.num_elements() != 1 ||
        state_object<Variable>(*tensor.data<ResourceHandle>()) == nullptr)
      return {};
    return claim_variable(context, 0, Mode::kExclusive, claim);
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }
  bool is_bookkeeping() const override { return true; }

 protected:
  // A variable returns to its state before the first assignment. Anything else
  // is removed, and made again by the next node of its name.
  Status update(KernelContext& context) const override {
    const Tensor& tensor = context.input(0);
    if (tensor.num_elements() != 1)
      return context.fail("input 0 must be one handle, not {}",
                          tensor.describe());
    Resource* resource = tensor.data<ResourceHandle>()->get();
    if (auto* variable = dynamic_cast<Variable*>(resource)) {
      if (!variable->is_initialized() && !may_be_missing_)
        return error(Code::kNotFound, "[{}] {} has no value",
                     context.node().op(), variable->describe());
      variable->clear();
      return {};
    }
    auto* object = dynamic_cast<StateObject*>(resource);
    if (object == nullptr)
      return context.fail(
          "input 0 is {}, which cannot be destroyed",
          resource == nullptr ? "an empty handle" : resource->describe());
    if (object->has_ended() && !may_be_missing_)
      return error(Code::kNotFound, "[{}] {} has been destroyed before",
                   context.node().op(), object->describe());
    object->end(error(Code::kCancelled, "[{}] {} has been destroyed",
                      context.node().op(), object->describe()));
    return {};
  }

 private:
  const bool may_be_missing_;
};

}  // namespace

void register_variable_life_kernels(KernelRegistry& registry) {
  for (const char* op : {"VariableV2", "Variable", "VarHandleOp"})
    registry.add<VariableKernel>(op);
  registry.add<TemporaryVariableKernel>("TemporaryVariable");
  registry.add<DestroyTemporaryKernel>("DestroyTemporaryVariable");
  registry.add<DestroyKernel>("DestroyResourceOp");
}

}  // namespace tagflow::devices
