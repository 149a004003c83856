#include "devices/cpu/elementwise/register.h"

#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void add_kernel(KernelRegistry& registry, const char* op, DataType dtype,
                KernelMaker maker) {
  KernelDef def;
  def.op = op;
  def.types = {{"T", {dtype}}};
  def.factory = maker;
  registry.add(std::move(def));
}

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
