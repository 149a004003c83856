#include "devices/kernels/elementwise/registration.h"

#include "devices/kernel_registry.h"

namespace tagflow::devices {

void add_kernel(KernelRegistry& registry, const char* op, DataType dtype,
                KernelMaker maker) {
  KernelDef def;
  def.op = op;
  def.types = {{"T", {dtype}}};
  def.factory = maker;
  registry.add(std::move(def));
}

}  // namespace tagflow::devices
