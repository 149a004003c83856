// Creation of kernels whose build() may fail.
#pragma once

#include <memory>

#include "devices/kernel.h"

namespace tagflow::devices {

// Makes a kernel of type K and calls its build(info); its errors name the node.
template <class K>
Result<std::unique_ptr<Kernel>> make_built(const KernelInfo& info) {
  auto kernel = std::make_unique<K>();
  Status status = kernel->build(info);
  if (!status.ok())
    return std::move(status).with_prefix(
        fmt::format("[{}] node \"{}\": ", info.node().op(), info.name()));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace tagflow::devices
