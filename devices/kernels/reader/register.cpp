// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_reader_op_kernels(KernelRegistry& registry);  // read.cpp

void register_reader_kernels(KernelRegistry& registry) {
  register_reader_op_kernels(registry);
}

}  // namespace tagflow::devices
