// The registries with all that is built in.
#include "devices/cpu_device.h"
#include "devices/cuda_type.h"
#include "devices/device_registry.h"
#include "devices/kernels/families.h"
#include "devices/stream/stream_device.h"

namespace tagflow::devices {

KernelRegistry& KernelRegistry::global() {
  static KernelRegistry* registry = [] {
    auto* made = new KernelRegistry;
    for (const auto& family : kernel_families()) family.add(*made);
    if (has_basic_families_only())
      made->explain_missing(
          "this build has the basic kernels only: configure it with "
          "-DTAGFLOW_KERNELS=all");
    register_stream_kernels(*made);
    register_cuda_kernels(*made);
    return made;
  }();
  return *registry;
}

DeviceRegistry& DeviceRegistry::global() {
  static DeviceRegistry* registry = [] {
    auto* made = new DeviceRegistry;
    made->types_ = {cpu_device_type(), stream_device_type(),
                    cuda_device_type()};
    return made;
  }();
  return *registry;
}

}  // namespace tagflow::devices
