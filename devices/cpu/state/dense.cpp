// Updates of a whole variable by a tensor of its shape: AssignAdd and the like,
// and counters.
#include <algorithm>
#include <limits>

#include "devices/cpu/elementwise/register.h"
#include "devices/cpu/state/kernels.h"
#include "devices/element_mover.h"

namespace tagflow::devices {

namespace {

using Mode = StateLock::Mode;

constexpr double kDenseNanosecondsPerByte = 0.15;

// An update in place if nobody else has the value, else into a new buffer.
template <class T, bool kAdds>
class AddKernel final : public UpdateKernel {
 public:
  explicit AddKernel(const KernelInfo&) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, Mode::kExclusive, claim);
  }
  double cost(const KernelContext& context) const override {
    return kDenseNanosecondsPerByte * double(context.input(1).bytes());
  }
  bool may_be_expensive_on_small_inputs() const override { return false; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    const Tensor& change = context.input(1);
    // For example a counter: nothing to allocate, to copy or to divide.
    if (variable->value().is_inline_scalar(kDataTypeOf<T>) &&
        change.is_inline_scalar(kDataTypeOf<T>) &&
        mover_of(context) == nullptr) {
      variable->set_scalar(Tensor::scalar<T>(
          changed(*variable->value().template inline_data<T>(),
                  *change.template inline_data<T>())));
    } else {
      TAGFLOW_RETURN_IF_ERROR(update_tensor(context, *variable, change));
    }
    pass_reference_on(context);
    return {};
  }

 private:
  static Status update_tensor(const KernelContext& context, Variable& variable,
                              const Tensor& change) {
    TAGFLOW_RETURN_IF_ERROR(check_type(context, variable, kDataTypeOf<T>));
    TAGFLOW_RETURN_IF_ERROR(variable.check_initialized());
    if (variable.value().shape() != change.shape())
      return context.fail(
          "a change of shape {} does not fit {}, whose value "
          "is of shape {}",
          change.shape().to_string(), variable.describe(),
          variable.value().shape().to_string());
    Tensor fresh;
    TAGFLOW_ASSIGN(Tensor * result, variable.place_of_update(context, fresh));
    TAGFLOW_RETURN_IF_ERROR(add(context, variable.value(), change, *result));
    if (result == &fresh)
      TAGFLOW_RETURN_IF_ERROR(variable.set(std::move(fresh)));
    return {};
  }

  static T changed(T before, T by) {
    return kAdds ? T(wrap(before) + wrap(by)) : T(wrap(before) - wrap(by));
  }

  static Status add(const KernelContext& context, const Tensor& value,
                    const Tensor& change, Tensor& result) {
    if (ElementMover* mover = mover_of(context))
      return mover->add(context, value, change, !kAdds, result);
    const T* before = value.data<T>();
    const T* by = change.data<T>();
    T* after = result.mutable_data<T>();
    const auto update_range = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        after[i] = changed(before[i], by[i]);
    };
    if (change.buffer() == nullptr)
      update_range(0, change.num_elements());
    else
      context.parallel_for(change.num_elements(),
                           kDenseNanosecondsPerByte * sizeof(T), update_range);
    return {};
  }
};

// CountUpTo and ResourceCountUpTo: returns the value, and increments it.
template <class T>
class CountUpToKernel final : public UpdateKernel {
 public:
  explicit CountUpToKernel(const KernelInfo& info)
      : limit_(std::min<int64_t>(attr_of<int64_t>(info, "limit"),
                                 std::numeric_limits<T>::max())) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, Mode::kExclusive, claim);
  }
  double cost(const KernelContext&) const override { return 0; }
  bool may_be_expensive() const override { return false; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable, variable_input(context, 0));
    TAGFLOW_RETURN_IF_ERROR(check_type(context, *variable, kDataTypeOf<T>));
    TAGFLOW_RETURN_IF_ERROR(variable->check_initialized());
    if (!variable->value().is_scalar())
      return context.fail("{} is no scalar, but {}", variable->describe(),
                          variable->value().describe());
    const T count = variable->value().template scalar_value<T>();
    if (count >= limit_)
      return error(Code::kOutOfRange, "[{}] {} has reached the limit of {}",
                   context.node().op(), variable->describe(), limit_);
    TAGFLOW_RETURN_IF_ERROR(variable->set(Tensor::scalar<T>(T(count + 1))));
    context.set_output(0, Tensor::scalar<T>(count));
    return {};
  }

 private:
  const int64_t limit_;  // a T: one more can be added to what is less
};

template <class... Ts>
void add_adding(KernelRegistry& registry, Types<Ts...>) {
  for (const char* type : {"T", "dtype"}) {
    const bool is_reference = type[0] == 'T';
    const char* add = is_reference ? "AssignAdd" : "AssignAddVariableOp";
    const char* sub = is_reference ? "AssignSub" : "AssignSubVariableOp";
    (registry.add<AddKernel<Ts, true>>(add, {{type, {kDataTypeOf<Ts>}}}), ...);
    (registry.add<AddKernel<Ts, false>>(sub, {{type, {kDataTypeOf<Ts>}}}), ...);
  }
}

}  // namespace

void register_dense_update_kernels(KernelRegistry& registry) {
  add_adding(
      registry,
      Types<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t,
            uint8_t, uint16_t, uint32_t, uint64_t, Complex64, Complex128>());
  for (const char* op : {"CountUpTo", "ResourceCountUpTo"}) {
    registry.add<CountUpToKernel<int32_t>>(op, {{"T", {DataType::kInt32}}});
    registry.add<CountUpToKernel<int64_t>>(op, {{"T", {DataType::kInt64}}});
  }
}

void register_state_kernels(KernelRegistry& registry) {
  register_variable_kernels(registry);
  register_variable_life_kernels(registry);
  register_dense_update_kernels(registry);
  register_state_gather_kernels(registry);
  register_state_scatter_kernels(registry);
  register_state_slice_kernels(registry);
  register_training_kernels(registry);
  register_queue_kernels(registry);
  register_table_kernels(registry);
  register_staging_kernels(registry);
  register_accumulator_kernels(registry);
  register_barrier_kernels(registry);
  register_mutex_kernels(registry);
  register_session_tensor_kernels(registry);
}

}  // namespace tagflow::devices
