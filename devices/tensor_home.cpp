#include "devices/tensor_home.h"

#include <utility>

#include "devices/device.h"

namespace tagflow::devices {

TensorHome::TensorHome(std::string module, std::string device,
                       const Allocator& memory)
    : module_(std::move(module)), device_(std::move(device)), memory_(memory) {}

Result<bool> TensorHome::is_elsewhere(const Tensor& tensor) const {
  if (!tensor.valid() || !is_plain(tensor.dtype())) return false;
  if (tensor.buffer() != nullptr && tensor.buffer()->allocator == &memory_)
    return false;
  if (host_readable(tensor)) return true;
  return invalid_argument("[{}] {} is not in the memory of {}, but in {}",
                          module_, tensor.describe(), device_,
                          tensor.buffer()->allocator->describe());
}

Result<bool> TensorHome::has_to_come(const Tensor& tensor) const {
  if (tensor.valid() && !is_plain(tensor.dtype()))
    return invalid_argument("[{}] {} cannot be in the memory of {}", module_,
                            tensor.describe(), device_);
  return is_elsewhere(tensor);
}

Status TensorHome::step_cancelled() const {
  return error(Code::kCancelled, "[{}] the step was cancelled", module_);
}

Status TensorHome::destroyed() const {
  return error(Code::kCancelled, "[{}] the device is being destroyed", module_);
}

}  // namespace tagflow::devices
