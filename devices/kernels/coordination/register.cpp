// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_accumulator_kernels(KernelRegistry& registry);  // accumulator.cpp
void register_barrier_kernels(KernelRegistry& registry);      // barrier.cpp
void register_mutex_kernels(KernelRegistry& registry);        // mutex.cpp
void register_staging_kernels(KernelRegistry& registry);      // staging.cpp

void register_coordination_kernels(KernelRegistry& registry) {
  register_accumulator_kernels(registry);
  register_barrier_kernels(registry);
  register_mutex_kernels(registry);
  register_staging_kernels(registry);
}

}  // namespace tagflow::devices
