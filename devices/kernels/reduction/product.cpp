// Prod and EuclideanNorm.
#include <cmath>

#include "devices/kernels/reduction/kernel.h"
#include "devices/kernels/reduction/ops.h"

namespace tagflow::devices {
namespace {

template <class T>
struct NormOp {
  using In = T;
  using Acc = Accumulator<T>;
  using Out = T;
  static constexpr bool kIdentity = false;
  static Acc initial() { return Acc(0); }
  static Acc load(T value) {
    if constexpr (kComplexType<T>)
      return {value.real() * value.real() + value.imag() * value.imag(), 0};
    else
      return Acc(value) * Acc(value);
  }
  static Acc combine(Acc a, Acc b) { return a + b; }
  static T finish(Acc sum, int64_t) {
    if constexpr (std::is_integral_v<T>) {
      // The sum has wrapped as the type does; a negative one has no root.
      const T wrapped = T(sum);
      return wrapped > 0 ? T(std::sqrt(double(wrapped))) : T(0);
    } else if constexpr (kComplexType<T>) {
      return T(std::sqrt(sum.real()));
    } else {
      return static_cast<T>(std::sqrt(sum));
    }
  }
};

}  // namespace

void register_reduction_product_kernels(KernelRegistry& registry) {
  for_each_numeric([&]<class T>(TypeTag<T>) {
    const TypeLimits types = {{"T", {kDataTypeOf<T>}}};
    add_reduction<ProductOp<T>>(registry, "Prod", types);
    add_reduction<NormOp<T>>(registry, "EuclideanNorm", types);
  });
}

}  // namespace tagflow::devices
