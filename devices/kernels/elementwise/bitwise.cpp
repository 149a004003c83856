// Operations on the bits of integers.
#include <algorithm>
#include <bit>

#include "devices/kernel_inputs.h"
#include "devices/kernels/elementwise/registration.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

template <class T>
struct BitAnd : Elementwise<T> {
  static T apply(T a, T b) { return T(a & b); }
};

template <class T>
struct BitOr : Elementwise<T> {
  static T apply(T a, T b) { return T(a | b); }
};

template <class T>
struct BitXor : Elementwise<T> {
  static T apply(T a, T b) { return T(a ^ b); }
};

template <class T>
struct BitNot : Elementwise<T> {
  static T apply(T a) { return T(~a); }
};

// The distance of a shift, limited to values defined for a T.
template <class T>
int shift_distance(T b) {
  return int(std::clamp(b, T(0), T(sizeof(T) * 8 - 1)));
}

template <class T>
struct ShiftLeft : Elementwise<T> {
  static T apply(T a, T b) { return T(wrap(a) << shift_distance(b)); }
};

// Keeps the sign.
template <class T>
struct ShiftRight : Elementwise<T> {
  static T apply(T a, T b) { return T(a >> shift_distance(b)); }
};

// The number of bits that are set.
class PopulationCountKernel final : public BytesKernel {
 public:
  explicit PopulationCountKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.3) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    visit_integer(input.dtype(), [&]<class T>(TypeTag<T>) {
      std::ranges::transform(
          input.flat<T>(), output->mutable_data<uint8_t>(), [](T x) {
            return uint8_t(std::popcount(std::make_unsigned_t<T>(x)));
          });
    });
    return {};
  }
};

}  // namespace

void register_bitwise_kernels(KernelRegistry& registry) {
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  add_binary<BitAnd>(registry, "BitwiseAnd", integers, naturals);
  add_binary<BitOr>(registry, "BitwiseOr", integers, naturals);
  add_binary<BitXor>(registry, "BitwiseXor", integers, naturals);
  add_binary<ShiftLeft>(registry, "LeftShift", integers, naturals);
  add_binary<ShiftRight>(registry, "RightShift", integers, naturals);
  add_unary<BitNot>(registry, "Invert", integers, naturals);
  registry.add<PopulationCountKernel>("PopulationCount");
}

}  // namespace tagflow::devices
