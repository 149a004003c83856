// Creation of kernels whose build() may fail.
#pragma once

#include <memory>

#include "devices/kernel.h"

namespace tagflow::devices {

// Makes a kernel of type K and calls its build(info), whose errors it returns.
template <class K>
Result<std::unique_ptr<Kernel>> make_built(const KernelInfo& info) {
  auto kernel = std::make_unique<K>();
  TAGFLOW_RETURN_IF_ERROR(kernel->build(info));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace tagflow::devices
