// Tensors as the bytes of TensorProtos: helpers for all kernels that read or
// write such strings, also those in kernels/sparse/.
#pragma once

#include <string>

#include "devices/kernel.h"

namespace tagflow::devices {

// How many bytes the values may take that a message does not list: one value
// may stand for many.
inline constexpr int64_t kMostRepeatedBytes = int64_t(1) << 30;

// The tensor in a message. What it takes for values that are not listed is
// subtracted from `*repeated`. InvalidArgument if the bytes are not a message,
// or it has no tensor; ResourceExhausted beyond the limit; Unimplemented for
// handles. The memory is not counted.
Result<Tensor> parse_tensor(const KernelContext& context,
                            const std::string& bytes, int64_t* repeated);

// What the values of a tensor of strings are in a message.
enum class StringForm : uint8_t {
  kValues,   // a field for each
  kContent,  // all lengths as base-128 numbers, then all bytes
};

// The message of a tensor; numbers are its content. InvalidArgument if it is
// too large for one; Unimplemented for handles.
Result<std::string> tensor_message(const KernelContext& context,
                                   const Tensor& tensor, StringForm form);

}  // namespace tagflow::devices
