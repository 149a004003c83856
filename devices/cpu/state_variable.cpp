// Variables: making, reading, assigning and destroying them. Those of
// TensorFlow 1 travel as references, those of TensorFlow 2 as handles; the
// token is the same.
#include "devices/cpu/state_kernels.h"
#include "devices/state/resource_op.h"
#include "devices/step_resources.h"

namespace tagflow::devices {

Status check_type(const KernelContext& context, const Variable& variable,
                  DataType wanted) {
  if (variable.dtype() == wanted) [[likely]]
    return {};
  return context.fail("{} is used as one of {}", variable.describe(),
                      dtype_name(wanted));
}

Result<Variable*> initialized_variable(const KernelContext& context, int input,
                                       DataType wanted) {
  TAGFLOW_ASSIGN(Variable * variable, variable_input(context, input));
  TAGFLOW_RETURN_IF_ERROR(check_type(context, *variable, wanted));
  TAGFLOW_RETURN_IF_ERROR(variable->check_initialized());
  return variable;
}

double slice_bytes_hint(const KernelContext& context, int input, int depth) {
  const Result<Variable*> variable = variable_input(context, input);
  if (!variable.ok()) return 0;
  const PartialShape& shape = (*variable)->declared_shape();
  auto bytes = double((*variable)->bytes_hint());
  constexpr double kUnknownDim = 64;
  for (int i = 0; i < depth; ++i) {
    const int64_t dim =
        shape.has_rank() && i < shape.rank() ? shape.dim(i) : -1;
    bytes /= dim > 0 ? double(dim) : kUnknownDim;
  }
  return bytes;
}

namespace {

using Mode = StateLock::Mode;

// --- Making -----------------------------------------------------------------

// VariableV2, Variable and VarHandleOp. References and handles are of two
// kinds: a name in a graph may mean one of either.
class VariableKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit VariableKernel(const KernelInfo& info)
      : resource_(info),
        dtype_(attr_of<DataType>(info, "dtype")),
        shape_(declared_shape(info.node()).value()) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(
        resource_.set_handle(context, [this]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(make_ref_counted<Variable>(
              resource_.is_anonymous() ? "" : resource_.key().name, dtype_,
              shape_));
        }));
    return check(context);
  }
  bool is_bookkeeping() const override { return true; }

 private:
  // Another node may have made it.
  Status check(KernelContext& context) const {
    const auto* variable =
        state_object<Variable>(*context.output(0).data<ResourceHandle>());
    if (variable->dtype() != dtype_ ||
        !variable->declared_shape().compatible(shape_))
      return context.fail(
          "{} exists, but the node asks for one of {}{} under that name",
          variable->describe(), dtype_name(dtype_), shape_.to_string());
    return {};
  }

  const ResourceOp resource_;
  const DataType dtype_;
  const PartialShape shape_;
};

// One for each execution of the node, whenever it comes.
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
    return {};
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

 private:
  const std::string name_;
};

// --- Reading ----------------------------------------------------------------

// ReadVariableOp and _Dereference. What is no variable, but goes along an edge
// of references, is its own value.
class ReadKernel final : public StateKernel {
 public:
  explicit ReadKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)),
        is_reference_(info.node().op() == "_Dereference") {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    if (is_value(context)) return {};
    return claim_variable(context, 0, Mode::kShared, claim);
  }
  Status compute_held(KernelContext& context) const override {
    if (is_value(context)) {
      context.set_output(0, context.input(0));
      return {};
    }
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    TAGFLOW_RETURN_IF_ERROR(check_type(context, *variable, dtype_));
    TAGFLOW_ASSIGN(context.output(0), variable->read(context));
    return {};
  }
  double cost(const KernelContext& context) const override {
    const Result<Variable*> variable = variable_input(context, 0);
    if (!variable.ok() || !(*variable)->is_read_by_copy()) return 0;
    constexpr double kNanosecondsPerByte = 0.1;
    return kNanosecondsPerByte * double((*variable)->bytes_hint());
  }

 private:
  bool is_value(const KernelContext& context) const {
    return is_reference_ && context.input(0).dtype() != DataType::kResource;
  }

  const DataType dtype_;
  const bool is_reference_;
};

// What only looks at the variable, and takes no time.
class LookKernel : public StateKernel {
 public:
  Status claim(const KernelContext& context, StateClaim& claim) const final {
    return claim_variable(context, 0, Mode::kShared, claim);
  }
  double cost(const KernelContext&) const final { return 0; }
  bool may_be_expensive() const final { return false; }
  bool is_bookkeeping() const final { return true; }
};

class IsInitializedKernel final : public LookKernel {
 public:
  explicit IsInitializedKernel(const KernelInfo&) {}
  Status compute_held(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    context.set_output(0, Tensor::scalar(variable->is_initialized()));
    return {};
  }
};

class VariableShapeKernel final : public LookKernel {
 public:
  explicit VariableShapeKernel(const KernelInfo& info)
      : type_(info.output_dtype(0)) {}
  Status compute_held(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    TAGFLOW_RETURN_IF_ERROR(variable->check_initialized());
    const Tensor& value = variable->value();
    TAGFLOW_ASSIGN(Tensor shape, Tensor::allocate(type_, {value.rank()}));
    for (int i = 0; i < value.rank(); ++i) {
      if (type_ == DataType::kInt64) {
        shape.mutable_data<int64_t>()[i] = value.dim(i);
      } else {
        if (value.dim(i) > std::numeric_limits<int32_t>::max())
          return context.fail("dimension {} of {} does not fit int32", i,
                              value.describe());
        shape.mutable_data<int32_t>()[i] = int32_t(value.dim(i));
      }
    }
    context.set_output(0, std::move(shape));
    return {};
  }

 private:
  const DataType type_;
};

// From now on who reads it gets a copy anyway where that is of use.
class NothingKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit NothingKernel(const KernelInfo&) {}
  Status compute(KernelContext&) const override { return {}; }
  bool is_bookkeeping() const override { return true; }
};

// --- Assigning --------------------------------------------------------------

// Assign and AssignVariableOp: the variable shares the value's buffer.
class AssignKernel final : public UpdateKernel {
 public:
  explicit AssignKernel(const KernelInfo& info)
      : dtype_(info.input_dtype(1)),
        is_reference_(info.node().op() == "Assign"),
        validates_(attr_of<bool>(info, "validate_shape")) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, Mode::kExclusive, claim);
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    TAGFLOW_RETURN_IF_ERROR(check_type(context, *variable, dtype_));
    const Tensor& value = context.input(1);
    const PartialShape& declared = variable->declared_shape();
    if ((validates_ || !is_reference_) && !declared.accepts(value.shape()))
      return context.fail("a value of shape {} does not fit {}",
                          value.shape().to_string(), variable->describe());
    if (validates_ && variable->is_initialized() &&
        variable->value().shape() != value.shape())
      return context.fail(
          "a value of shape {} does not fit {}, whose value is "
          "of shape {}",
          value.shape().to_string(), variable->describe(),
          variable->value().shape().to_string());
    TAGFLOW_RETURN_IF_ERROR(variable->set(value));
    pass_reference_on(context);
    return {};
  }

 private:
  const DataType dtype_;
  const bool is_reference_;
  const bool validates_;
};

// --- Destroying -------------------------------------------------------------

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
  // A variable is as it was before the first assignment. Anything else is gone,
  // and made anew by the next node of its name.
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

void register_variable_kernels(KernelRegistry& registry) {
  for (const char* op : {"VariableV2", "Variable", "VarHandleOp"})
    registry.add<VariableKernel>(op);
  registry.add<TemporaryVariableKernel>("TemporaryVariable");
  registry.add<DestroyTemporaryKernel>("DestroyTemporaryVariable");
  for (const char* op : {"ReadVariableOp", "_Dereference"})
    registry.add<ReadKernel>(op);
  for (const char* op : {"IsVariableInitialized", "VarIsInitializedOp"})
    registry.add<IsInitializedKernel>(op);
  registry.add<VariableShapeKernel>("VariableShape");
  registry.add<NothingKernel>("DisableCopyOnRead");
  for (const char* op : {"Assign", "AssignVariableOp"})
    registry.add<AssignKernel>(op);
  registry.add<DestroyKernel>("DestroyResourceOp");
}

}  // namespace tagflow::devices
