// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_table_op_kernels(KernelRegistry& registry);  // table.cpp

void register_table_kernels(KernelRegistry& registry) {
  register_table_op_kernels(registry);
}

}  // namespace tagflow::devices
