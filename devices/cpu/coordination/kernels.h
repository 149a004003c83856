// The parts of register_coordination_kernels(), one per file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

void register_accumulator_kernels(KernelRegistry& registry);
void register_barrier_kernels(KernelRegistry& registry);
void register_mutex_kernels(KernelRegistry& registry);
void register_staging_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
