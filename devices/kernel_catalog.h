// The kernel registry as placement uses it.
#pragma once

#include "devices/kernel_registry.h"
#include "graph/placement/device_info.h"

namespace tagflow::devices {

// Ops of the engine itself, control flow and transfers, count as having a
// kernel on every type of device whose limit does not exclude them.
// Thread-safe.
class RegisteredKernels final : public graph::KernelCatalog {
 public:
  // REQUIRES: the registry outlives this.
  explicit RegisteredKernels(
      const KernelRegistry& registry = KernelRegistry::global())
      : registry_(registry) {}

  bool has_kernel(const graph::Node& node,
                  std::string_view type) const override;
  // Empty for ops that the engine performs.
  std::vector<std::string> types_of(std::string_view op) const override {
    return registry_.types_of(op);
  }
  std::string why_missing() const override { return registry_.why_missing(); }

 private:
  const KernelRegistry& registry_;
};

}  // namespace tagflow::devices
