// Updates of a whole variable by a tensor of its shape: AssignAdd and the like,
// and counters.
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>

#include "devices/cpu/elementwise/register.h"
#include "devices/cpu/state/kernels.h"
#include "devices/element_mover.h"

namespace tagflow::devices {

namespace {

using Mode = StateLock::Mode;

constexpr double kDenseNanosecondsPerByte = 0.15;

// after[i] = before[i] + by[i], or their difference, for i < n.
using ChangeRow = void (*)(const void* before, const void* by, void* after,
                           int64_t n);

template <class T, bool kAdds>
void change_row(const void* before, const void* by, void* after, int64_t n) {
  const T* a = static_cast<const T*>(before);
  const T* b = static_cast<const T*>(by);
  T* z = static_cast<T*>(after);
  for (int64_t i = 0; i < n; ++i)
    z[i] = kAdds ? T(wrap(a[i]) + wrap(b[i])) : T(wrap(a[i]) - wrap(b[i]));
}

// An update in place if nobody else has the value, else into a new buffer.
class AddKernel final : public UpdateKernel {
 public:
  AddKernel(const KernelInfo&, DataType dtype, ChangeRow row, bool subtracts)
      : dtype_(dtype), row_(row), subtracts_(subtracts) {}

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
    if (variable->value().is_inline_scalar(dtype_) &&
        change.is_inline_scalar(dtype_) && mover_of(context) == nullptr) {
      Tensor after = variable->value();
      row_(after.raw(), change.raw(), after.mutable_raw(), 1);
      variable->set_scalar(after);
    } else {
      TAGFLOW_RETURN_IF_ERROR(update_tensor(context, *variable, change));
    }
    pass_reference_on(context);
    return {};
  }

 private:
  Status update_tensor(const KernelContext& context, Variable& variable,
                       const Tensor& change) const {
    TAGFLOW_RETURN_IF_ERROR(check_type(context, variable, dtype_));
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

  Status add(const KernelContext& context, const Tensor& value,
             const Tensor& change, Tensor& result) const {
    if (ElementMover* mover = mover_of(context))
      return mover->add(context, value, change, subtracts_, result);
    const size_t size = dtype_size(dtype_);
    const auto* before = static_cast<const std::byte*>(value.raw());
    const auto* by = static_cast<const std::byte*>(change.raw());
    auto* after = static_cast<std::byte*>(result.mutable_raw());
    const auto update_range = [&](int64_t begin, int64_t end) {
      const size_t offset = size_t(begin) * size;
      row_(before + offset, by + offset, after + offset, end - begin);
    };
    if (change.buffer() == nullptr)
      update_range(0, change.num_elements());
    else
      context.parallel_for(change.num_elements(),
                           kDenseNanosecondsPerByte * double(size),
                           update_range);
    return {};
  }

  DataType dtype_;
  ChangeRow row_;
  bool subtracts_;
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

// Sums of integers have the same bits whether these are signed or not.
template <class T>
void add_adding(KernelRegistry& registry,
                std::initializer_list<DataType> dtypes) {
  for (const DataType dtype : dtypes) {
    const auto add = [&](const char* op, const char* attr) {
      registry.add<AddKernel>(op, {{attr, {dtype}}}, dtype,
                              &change_row<T, true>, false);
    };
    const auto subtract = [&](const char* op, const char* attr) {
      registry.add<AddKernel>(op, {{attr, {dtype}}}, dtype,
                              &change_row<T, false>, true);
    };
    add("AssignAdd", "T");
    add("AssignAddVariableOp", "dtype");
    subtract("AssignSub", "T");
    subtract("AssignSubVariableOp", "dtype");
  }
}

}  // namespace

void register_dense_update_kernels(KernelRegistry& registry) {
  using enum DataType;
  add_adding<float>(registry, {kFloat});
  add_adding<double>(registry, {kDouble});
  add_adding<Half>(registry, {kHalf});
  add_adding<BFloat16>(registry, {kBFloat16});
  add_adding<uint8_t>(registry, {kInt8, kUInt8});
  add_adding<uint16_t>(registry, {kInt16, kUInt16});
  add_adding<uint32_t>(registry, {kInt32, kUInt32});
  add_adding<uint64_t>(registry, {kInt64, kUInt64});
  add_adding<Complex64>(registry, {kComplex64});
  add_adding<Complex128>(registry, {kComplex128});
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
  register_queue_kernels(registry);
  register_session_tensor_kernels(registry);
}

}  // namespace tagflow::devices
