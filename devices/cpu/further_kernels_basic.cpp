// With TAGFLOW_KERNELS=basic.
#include "devices/cpu/kernels.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

void register_further_kernels(KernelRegistry& registry) {
  registry.explain_missing(
      "this build has the basic kernels only: configure it with "
      "-DTAGFLOW_KERNELS=all");
}

}  // namespace tagflow::devices
