// Max, Min, All and Any.
#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

struct AllOp {
  using In = bool;
  using Acc = uint8_t;
  using Out = bool;
  static constexpr bool kIdentity = true;
  static Acc initial() { return 1; }
  static Acc load(bool value) { return value; }
  static Acc combine(Acc a, Acc b) { return a & b; }
  static bool finish(Acc value, int64_t) { return value != 0; }
};

struct AnyOp : AllOp {
  static Acc initial() { return 0; }
  static Acc combine(Acc a, Acc b) { return a | b; }
};

}  // namespace

void register_reduction_extreme_kernels(KernelRegistry& registry) {
  for_each_real([&]<class T>(TypeTag<T>) {
    const TypeLimits types = {{"T", {kDataTypeOf<T>}}};
    add_reduction<MaxOp<T>>(registry, "Max", types);
    add_reduction<MinOp<T>>(registry, "Min", types);
  });
  add_reduction<AllOp>(registry, "All");
  add_reduction<AnyOp>(registry, "Any");
}

}  // namespace tagflow::devices
