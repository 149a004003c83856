// Updates of a whole variable by a tensor of its shape: AssignAdd and the like,
// and counters.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "devices/element_mover.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

using Mode = StateLock::Mode;

constexpr double kDenseNanosecondsPerByte = 0.15;

// What AddKernel needs of a type.
struct Change {
  // after[i] = before[i] + by[i], or their difference, for i < n.
  void (*row)(const void* before, const void* by, void* after, int64_t n);
  // Does this for a variable whose value and whose change are inline scalars of
  // the type, for example a counter: nothing to allocate, to copy or to divide.
  // False if they are something else.
  bool (*scalar)(Variable& variable, const Tensor& by);
  bool subtracts;
};

template <class T, bool kAdds>
T changed(T before, T by) {
  return kAdds ? T(wrap(before) + wrap(by)) : T(wrap(before) - wrap(by));
}

template <class T, bool kAdds>
void change_row(const void* before, const void* by, void* after, int64_t n) {
  const T* a = static_cast<const T*>(before);
  const T* b = static_cast<const T*>(by);
  T* z = static_cast<T*>(after);
  for (int64_t i = 0; i < n; ++i) z[i] = changed<T, kAdds>(a[i], b[i]);
}

template <class T, bool kAdds>
bool change_scalar(Variable& variable, const Tensor& by) {
  const Tensor& before = variable.value();
  if (!before.is_inline_scalar(kDataTypeOf<T>) ||
      !by.is_inline_scalar(kDataTypeOf<T>))
    return false;
  variable.set_scalar(Tensor::scalar<T>(
      changed<T, kAdds>(*before.inline_data<T>(), *by.inline_data<T>())));
  return true;
}

// An update in place if nobody else has the value, else into a new buffer.
class AddKernel final : public UpdateKernel {
 public:
  AddKernel(const KernelInfo&, DataType dtype, const Change& change)
      : dtype_(dtype), change_(change) {}

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
    if (mover_of(context) != nullptr || !change_.scalar(*variable, change))
      TAGFLOW_RETURN_IF_ERROR(update_tensor(context, *variable, change));
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
      return mover->add(context, value, change, change_.subtracts, result);
    const size_t size = dtype_size(dtype_);
    const auto* before = static_cast<const std::byte*>(value.raw());
    const auto* by = static_cast<const std::byte*>(change.raw());
    auto* after = static_cast<std::byte*>(result.mutable_raw());
    const auto update_range = [&](int64_t begin, int64_t end) {
      const size_t offset = size_t(begin) * size;
      change_.row(before + offset, by + offset, after + offset, end - begin);
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
  Change change_;
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
      return context.fail("{} is not a scalar, but {}", variable->describe(),
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

template <class T>
void add_adding(KernelRegistry& registry) {
  // Sums of integers have the same bits whether these are signed or not, so
  // that one row serves both.
  using Row =
      typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                  std::type_identity<T>>::type;
  const Change add{&change_row<Row, true>, &change_scalar<T, true>, false};
  const Change subtract{&change_row<Row, false>, &change_scalar<T, false>,
                        true};
  const auto add_kernel = [&](const char* op, const char* attr,
                              const Change& change) {
    registry.add<AddKernel>(op, {{attr, {kDataTypeOf<T>}}}, kDataTypeOf<T>,
                            change);
  };
  add_kernel("AssignAdd", "T", add);
  add_kernel("AssignAddVariableOp", "dtype", add);
  add_kernel("AssignSub", "T", subtract);
  add_kernel("AssignSubVariableOp", "dtype", subtract);
}

template <class... Ts>
void add_adding(KernelRegistry& registry, Types<Ts...>) {
  (add_adding<Ts>(registry), ...);
}

}  // namespace

void register_dense_update_kernels(KernelRegistry& registry) {
  add_adding(registry, FloatingTypes());
  add_adding(registry, SignedIntegers());
  add_adding(registry, UnsignedIntegers());
  add_adding(registry, ComplexTypes());
  for (const char* op : {"CountUpTo", "ResourceCountUpTo"}) {
    registry.add<CountUpToKernel<int32_t>>(op, {{"T", {DataType::kInt32}}});
    registry.add<CountUpToKernel<int64_t>>(op, {{"T", {DataType::kInt64}}});
  }
}

}  // namespace tagflow::devices
