// TensorHome: an accelerator's memory, and checks for tensors that are
// elsewhere.
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

  // Whether it has elements that the device's kernels can read only after a
  // copy to this memory: elements on the host, also those in the token. Strings
  // and handles stay where they are. InvalidArgument for tensors in another
  // device's memory.
  Result<bool> is_elsewhere(const Tensor& tensor) const;
  // As is_elsewhere(), for a requested copy. InvalidArgument also for strings,
  // handles.
  Result<bool> has_to_come(const Tensor& tensor) const;

  // Cancelled: the status of launches and copies of a cancelled step.
  Status step_cancelled() const;
  Status destroyed() const;

 private:
  const std::string module_;
  const std::string device_;
  const Allocator& memory_;
};

}  // namespace tagflow::devices
