// The parts of register_order_kernels(), one per file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

void register_top_k_kernels(KernelRegistry& registry);
void register_unique_kernels(KernelRegistry& registry);
void register_bucket_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
