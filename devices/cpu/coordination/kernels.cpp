#include "devices/cpu/coordination/kernels.h"

#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void register_coordination_kernels(KernelRegistry& registry) {
  register_accumulator_kernels(registry);
  register_barrier_kernels(registry);
  register_mutex_kernels(registry);
  register_staging_kernels(registry);
}

}  // namespace tagflow::devices
