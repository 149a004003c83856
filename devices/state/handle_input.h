// Inputs that are handles of state.
#pragma once

#include <string_view>

#include "devices/kernel.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

// The error for an input that is not the handle of one object of that kind.
Status wrong_handle(const KernelContext& context, int input,
                    std::string_view kind);

// The T of a handle or reference input. InvalidArgument if it is something
// else. T::kKind is its name.
template <class T>
Result<T*> handle_input(const KernelContext& context, int input) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() == DataType::kResource &&
      (tensor.is_scalar() || tensor.num_elements() == 1)) [[likely]]
    if (T* const object = state_object<T>(*tensor.data<ResourceHandle>()))
        [[likely]]
      return object;
  return wrong_handle(context, input, T::kKind);
}

}  // namespace tagflow::devices
