// The kernel registry, as placement sees it.
#pragma once

#include "devices/kernel_registry.h"
#include "graph/placement/device_info.h"

namespace tagflow::devices {

// What the engine performs by itself, control flow and transfers, counts as a
// kernel on every type of device whose limit does not exclude it. Thread-safe.
class RegisteredKernels final : public graph::KernelCatalog {
 public:
  // REQUIRES: the registry outlives this.
  explicit RegisteredKernels(
      const KernelRegistry& registry = KernelRegistry::global())
      : registry_(registry) {}

  bool has_kernel(const graph::Node& node,
                  std::string_view type) const override;
  // None for what the engine performs.
  std::vector<std::string> types_of(std::string_view op) const override {
    return registry_.types_of(op);
  }

 private:
  const KernelRegistry& registry_;
};

}  // namespace tagflow::devices
