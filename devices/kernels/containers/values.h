// Objects and values in tensors of handles and variants: helpers for all
// kernels that hold tensors, also those in kernels/gradient/ and
// kernels/coordination/.
#pragma once

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/step_resources.h"
#include "graph/handle.h"

namespace tagflow::devices {

// The maximum number of elements of a list or array: 4 GiB of tokens. More give
// ResourceExhausted.
inline constexpr int64_t kMaxContainerElements = int64_t(1) << 27;

// Nanoseconds to make as many elements as an int32 input says.
double cost_of_elements(const KernelContext& context, int input);

// The T of a resource input. InvalidArgument if it is something else; `what`
// is T's name.
template <class T>
Result<T*> object_input(const KernelContext& context, int input,
                        std::string_view what) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() == DataType::kResource &&
      (tensor.is_scalar() || tensor.num_elements() == 1)) [[likely]] {
    const auto& handle = *tensor.data<ResourceHandle>();
    if (T* object = step_object<T>(handle)) return object;
    return context.fail(
        "input {} must be one {}, not {}", input, what,
        handle.get() == nullptr ? "an empty handle" : handle.get()->describe());
  }
  return context.fail("input {} must be the handle of one {}, not {}", input,
                      what, tensor.describe());
}

// The resources in which a kernel makes its objects. Internal if the kernel
// runs outside of a step.
Result<StepResources*> step_resources(const KernelContext& context);

// The T in one element of a variant tensor, or null if it is something else.
template <class T>
T* value_as(const Variant& variant) {
  VariantValue* value = variant.get();
  if (value == nullptr || typeid(*value) != typeid(T)) return nullptr;
  return static_cast<T*>(value);
}

// "an empty variant", or the value's own description.
std::string describe_variant(const Variant& variant);

// The T in a variant input of one element. InvalidArgument if it is
// something else; `what` is T's name.
template <class T>
Result<const T*> value_input(const KernelContext& context, int input,
                             std::string_view what) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() != DataType::kVariant || !tensor.is_scalar())
    return context.fail("input {} must be one {}, a variant scalar, not {}",
                        input, what, tensor.describe());
  const auto& variant = *tensor.data<Variant>();
  if (const T* value = value_as<T>(variant)) return value;
  return context.fail("input {} must be one {}, not {}", input, what,
                      describe_variant(variant));
}

// Sets a variant scalar as the output.
template <class T, class... Args>
Result<T*> new_value_output(KernelContext& context, int output,
                            Args&&... args) {
  TAGFLOW_ASSIGN(Tensor * tensor, context.allocate_output(output, {}));
  auto value = make_ref_counted<T>(std::forward<Args>(args)...);
  T* const raw = value.get();
  *tensor->mutable_data<Variant>() = Variant(std::move(value));
  return raw;
}

// The variants of an input as an output: the input itself if nobody else
// holds it, else a tensor with the same values. These may be shared: see
// own_value().
inline Result<std::span<Variant>> changed_variants_output(
    KernelContext& context, int input, int output) {
  const Tensor& from = context.input(input);
  TAGFLOW_ASSIGN(Tensor * variants,
                 context.change_or_allocate(input, output, from.shape()));
  if (variants->buffer() != from.buffer())
    std::ranges::copy(from.flat<Variant>(),
                      variants->mutable_flat<Variant>().begin());
  return variants->mutable_flat<Variant>();
}

// The value of a variant, unshared: the value itself, or a copy that replaces
// it. REQUIRES: it is a T.
template <class T>
T& own_value(Variant& variant) {
  T* value = value_as<T>(variant);
  if (!value->unique()) {
    auto own = make_ref_counted<T>(*value);
    value = own.get();
    variant = Variant(std::move(own));
  }
  return *value;
}

// Ts as an output that the kernel may change, element by element. Pointers into
// the input from before must not be used afterwards. REQUIRES: every element is
// a T.
template <class T>
Result<std::span<Variant>> changed_values_output(KernelContext& context,
                                                 int input, int output) {
  TAGFLOW_ASSIGN(const auto variants,
                 changed_variants_output(context, input, output));
  for (Variant& variant : variants) own_value<T>(variant);
  return variants;
}

// As changed_values_output(), for a scalar.
template <class T>
Result<T*> changed_value_output(KernelContext& context, int input, int output) {
  TAGFLOW_ASSIGN(const auto variants,
                 changed_values_output<T>(context, input, output));
  return value_as<T>(variants[0]);
}

// Releases an object that may hold another one of its kind, and so on, as deep
// as the number of iterations of a loop: without recursion. REQUIRES: the
// destructor of whatever holds such an object passes it to this.
template <class T>
void release_in_turn(T&& object) noexcept {
  using Value = std::remove_cvref_t<T>;
  // Those that a call further up the stack will release.
  thread_local std::vector<Value>* pending_above = nullptr;
  // If memory is exhausted, it is released here after all.
  const auto put_off = [&object](std::vector<Value>& pending) {
    try {
      pending.push_back(std::move(object));
    } catch (const std::bad_alloc&) {
      object = Value();
    }
  };
  if (pending_above != nullptr) return put_off(*pending_above);
  std::vector<Value> pending;
  pending_above = &pending;
  put_off(pending);
  while (!pending.empty()) {
    // Removed from the list first: releasing it adds to that.
    const Value next = std::move(pending.back());
    pending.pop_back();
  }
  pending_above = nullptr;
}
// The same for tensors, one of which may hold a list that holds a list.
void release_nested(std::vector<Tensor>&& tensors);
void release_nested(Tensor&& tensor);

// Whether a tensor's shape matches the partial shape.
bool accepts_shape_of(const PartialShape& shape, const Tensor& tensor);

// The integer of a scalar input, whose type int32 the op's definition
// guarantees. InvalidArgument if it is not a scalar; `name` is for the message.
inline Result<int64_t> int32_input(const KernelContext& context, int input,
                                   std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.is_inline_scalar(DataType::kInt32)) [[likely]]
    return int64_t{*tensor.inline_data<int32_t>()};
  // A view of a larger tensor has its elements elsewhere.
  if (tensor.is_scalar() && tensor.dtype() == DataType::kInt32)
    return int64_t{*tensor.data<int32_t>()};
  return context.fail("{} must be an int32 scalar, not {}", name,
                      tensor.describe());
}

// An input that gives a shape: a vector of dimensions, -1 for an unknown one,
// or the scalar -1 for an unknown rank.
Result<PartialShape> shape_input(const KernelContext& context, int input,
                                 std::string_view name);

}  // namespace tagflow::devices
