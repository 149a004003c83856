// TensorHome: an accelerator's memory, and what is said of what is not in it.
#pragma once

#include <string>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Thread-safe.
class TensorHome {
 public:
  // `module` begins the messages: "stream", "cuda". `device` is the full name.
  // The memory outlives this.
  TensorHome(std::string module, std::string device, const Allocator& memory);

  // Whether it has elements that the device's kernels can read only once they
  // are copied here: those of the host, also where they lie in the token.
  // Strings and handles stay where they are. InvalidArgument for what is in the
  // memory of another device.
  Result<bool> is_elsewhere(const Tensor& tensor) const;
  // The same of what is asked to be copied. InvalidArgument for strings and
  // handles, too.
  Result<bool> has_to_come(const Tensor& tensor) const;

  // Cancelled: what becomes of launches and copies.
  Status step_cancelled() const;
  Status destroyed() const;

 private:
  const std::string module_;
  const std::string device_;
  const Allocator& memory_;
};

}  // namespace tagflow::devices
