// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_arithmetic_kernels(KernelRegistry& registry);  // arithmetic.cpp
void register_division_kernels(KernelRegistry& registry);    // division.cpp
void register_power_kernels(KernelRegistry& registry);       // power.cpp
void register_comparison_kernels(KernelRegistry& registry);  // comparison.cpp
void register_bitwise_kernels(KernelRegistry& registry);     // bitwise.cpp
void register_unary_kernels(KernelRegistry& registry);       // unary.cpp
void register_transcendental_kernels(KernelRegistry& registry);
void register_complex_kernels(KernelRegistry& registry);    // complex.cpp
void register_cast_kernels(KernelRegistry& registry);       // cast.cpp
void register_select_kernels(KernelRegistry& registry);     // select.cpp
void register_broadcast_kernels(KernelRegistry& registry);  // broadcast.cpp
void register_sum_kernels(KernelRegistry& registry);        // sum.cpp
void register_fused_kernels(KernelRegistry& registry);      // fused.cpp

void register_elementwise_kernels(KernelRegistry& registry) {
  register_arithmetic_kernels(registry);
  register_division_kernels(registry);
  register_power_kernels(registry);
  register_comparison_kernels(registry);
  register_bitwise_kernels(registry);
  register_unary_kernels(registry);
  register_transcendental_kernels(registry);
  register_complex_kernels(registry);
  register_cast_kernels(registry);
  register_select_kernels(registry);
  register_broadcast_kernels(registry);
  register_sum_kernels(registry);
  register_fused_kernels(registry);
}

}  // namespace tagflow::devices
