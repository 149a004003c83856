// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_queue_op_kernels(KernelRegistry& registry);  // queue.cpp

void register_queue_kernels(KernelRegistry& registry) {
  register_queue_op_kernels(registry);
}

}  // namespace tagflow::devices
