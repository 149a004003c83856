// Inputs of kernels that use devices/media: of this family, and of summaries.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "devices/kernel_inputs.h"
#include "devices/media/picture.h"

namespace tagflow::devices {

// Nanoseconds for a byte of the input: to find the bucket of a number, to
// compress a pixel, to write a sample, to copy a tensor, and to decode.
inline constexpr double kHistogramCost = 15;
inline constexpr double kPictureCost = 30;
inline constexpr double kSoundCost = 2;
inline constexpr double kTensorCost = 0.3;
inline constexpr double kDecodingCost = 30;

// "[op] what": a status of a function that knows no op.
inline Status prefixed(const KernelContext& context, Status status) {
  if (status.ok()) return status;
  return std::move(status).with_prefix(
      fmt::format("[{}] ", context.node().op()));
}

// Ends the kernel where its step is cancelled.
inline media::Interruption interruption(const KernelContext& context) {
  return [&context] { context.check_cancelled(); };
}

// The only element of an input of type T. `name` is for the message, which is
// without the name of the op.
template <class T>
Result<T> number_input(const KernelContext& context, int input,
                       std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.num_elements() != 1)
    return error(Code::kInvalidArgument, "{} must be a scalar, not {}", name,
                 tensor.describe());
  return tensor.scalar_value<T>();
}

// A scalar string.
inline Result<std::string> text_input(const KernelContext& context, int input,
                                      std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (!tensor.is_scalar())
    return error(Code::kInvalidArgument, "{} must be a scalar, not {}", name,
                 tensor.describe());
  return tensor.scalar_value<std::string>();
}

}  // namespace tagflow::devices
