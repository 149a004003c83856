// Variables: reading and assigning them. Variables of TensorFlow 1 are passed
// as references, those of TensorFlow 2 as handles; the token is the same.
#include <limits>

#include "devices/kernels/containers/values.h"
#include "devices/kernels/variable/state_inputs.h"
#include "devices/tensor_rows.h"

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

// --- Reading ----------------------------------------------------------------

// The value of a reference to a queue and the like, which programs see if they
// fetch it: its container and its name, as in TensorFlow. Null if it is another
// reference.
const StateObject* named_object(const Tensor& reference) {
  if (reference.dtype() != DataType::kResource || !reference.is_scalar())
    return nullptr;
  const auto* object =
      dynamic_cast<const StateObject*>(reference.data<ResourceHandle>()->get());
  return dynamic_cast<const Variable*>(object) == nullptr ? object : nullptr;
}

// ReadVariableOp and _Dereference. A value on an edge of references that is not
// a variable is its own value.
class ReadKernel final : public StateKernel {
 public:
  explicit ReadKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)),
        is_reference_(info.node().op() == "_Dereference") {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    if (is_value(context) || name_source(context) != nullptr) return {};
    return claim_variable(context, 0, Mode::kShared, claim);
  }
  Status compute_held(KernelContext& context) const override {
    if (is_value(context)) {
      context.set_output(0, context.input(0));
      return {};
    }
    if (const StateObject* const object = name_source(context)) {
      context.set_output(0, Tensor::vector<std::string>(
                                {object->key().container, object->key().name}));
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
  const StateObject* name_source(const KernelContext& context) const {
    return is_reference_ && dtype_ == DataType::kString
               ? named_object(context.input(0))
               : nullptr;
  }

  const DataType dtype_;
  const bool is_reference_;
};

// _ReadVariablesAhead: a snapshot of all values. For a variable that cannot be
// read it gives zeros, or nothing if these are many, and the error.
class ReadAheadKernel final : public StateKernel {
 public:
  explicit ReadAheadKernel(const KernelInfo& info)
      : shapes_(attr_of<std::vector<PartialShape>>(info, "shapes")) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    for (int i = 0; i < context.num_inputs(); ++i)
      if (const Result<Variable*> variable = variable_input(context, i);
          variable.ok())
        claim.add((*variable)->lock(), Mode::kShared, **variable);
    return {};
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

  Status compute_held(KernelContext& context) const override {
    const int count = context.num_inputs();
    TAGFLOW_ASSIGN(Tensor codes, Tensor::allocate(DataType::kInt32, {count}));
    TAGFLOW_ASSIGN(Tensor messages,
                   Tensor::allocate(DataType::kString, {count}));
    for (int i = 0; i < count; ++i) {
      const DataType type = context.node().output_dtypes()[size_t(i)];
      const Result<Variable*> variable = initialized_variable(context, i, type);
      codes.mutable_data<int32_t>()[i] = int32_t(variable.status().code());
      if (variable.ok()) {
        TAGFLOW_ASSIGN(context.output(i), (*variable)->read(context));
      } else {
        messages.mutable_data<std::string>()[i] = variable.status().message();
        TAGFLOW_ASSIGN(context.output(i), zeros(context, type, size_t(i)));
      }
    }
    context.set_output(count, std::move(codes));
    context.set_output(count + 1, std::move(messages));
    return {};
  }

 private:
  Result<Tensor> zeros(const KernelContext& context, DataType type,
                       size_t output) const {
    Shape shape;
    for (const int64_t dim : shapes_[output].dims()) shape.add_dim(dim);
    // Many zeros may exceed the memory, and nobody reads them.
    constexpr int64_t kMost = 1 << 20;
    const int64_t count = shapes_[output].num_elements();
    if (count >= 0 && count <= kMost)
      if (Result<Tensor> all = make_zeros(context, type, shape); all.ok())
        return all;
    if (shape.rank() > 0) shape.set_dim(0, 0);
    return make_zeros(context, type, shape);
  }

  const std::vector<PartialShape> shapes_;
};

// _CheckReadAhead: fails as the replaced read would have.
class CheckReadAheadKernel final : public CheapKernel {
 public:
  explicit CheckReadAheadKernel(const KernelInfo& info)
      : index_(attr_of<int64_t>(info, "index")) {}
  Status compute(KernelContext& context) const override {
    const Tensor& codes = context.input(0);
    const Tensor& messages = context.input(1);
    if (codes.rank() != 1 || index_ >= codes.num_elements() ||
        messages.shape() != codes.shape())
      return context.fail("codes are {} and messages {}, but the index is {}",
                          codes.describe(), messages.describe(), index_);
    const auto code = Code(codes.data<int32_t>()[index_]);
    if (code == Code::kOk) return {};
    return error(code, "{}", messages.data<std::string>()[index_]);
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const int64_t index_;
};

// Kernels that only inspect the variable, in no time.
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

// There is nothing to disable: reads copy anyway if that is useful.
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

}  // namespace

void register_variable_value_kernels(KernelRegistry& registry) {
  for (const char* op : {"ReadVariableOp", "_Dereference"})
    registry.add<ReadKernel>(op);
  registry.add<ReadAheadKernel>("_ReadVariablesAhead");
  registry.add<CheckReadAheadKernel>("_CheckReadAhead");
  for (const char* op : {"IsVariableInitialized", "VarIsInitializedOp"})
    registry.add<IsInitializedKernel>(op);
  registry.add<VariableShapeKernel>("VariableShape");
  registry.add<NothingKernel>("DisableCopyOnRead");
  for (const char* op : {"Assign", "AssignVariableOp"})
    registry.add<AssignKernel>(op);
}

}  // namespace tagflow::devices
