// Conversion of tensors to the arguments of GPU kernels.
#pragma once

#include <initializer_list>
#include <optional>

#include "devices/cuda/kernels.h"
#include "devices/kernel.h"

namespace tagflow::devices {

// The type for kernels; none for types that they do not compute with.
std::optional<cuda::Element> element_of(DataType dtype);

// Whether the elements can be sent with a launch, though they are on the host.
bool fits_operand(const Tensor& tensor);
// The tensor as an argument. REQUIRES: it is in the GPU's memory, or
// fits_operand().
cuda::Operand operand_of(const Tensor& tensor);

// The loops in which `operands`, at most three, broadcast to `result`, which
// has elements. Unimplemented if there are more loops than kernels support.
Result<cuda::ElementwiseArgs> broadcast_args(
    const KernelContext& context, const Shape& result,
    std::initializer_list<const Shape*> operands);

}  // namespace tagflow::devices
