#include "devices/state/handle_input.h"

namespace tagflow::devices {

Status wrong_handle(const KernelContext& context, int input,
                    std::string_view kind) {
  const Tensor& tensor = context.input(input);
  if (tensor.dtype() != DataType::kResource || tensor.num_elements() != 1)
    return context.fail("input {} must be the handle of one {}, not {}", input,
                        kind, tensor.describe());
  const Resource* const found = tensor.data<ResourceHandle>()->get();
  return context.fail("input {} must be one {}, not {}", input, kind,
                      found == nullptr ? "an empty handle" : found->describe());
}

}  // namespace tagflow::devices
