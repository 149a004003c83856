// Sums, products, extrema.
#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
struct Add : Elementwise<T> {
  static T apply(T a, T b) { return T(wrap(a) + wrap(b)); }
};

template <class T>
struct Sub : Elementwise<T> {
  static T apply(T a, T b) { return T(wrap(a) - wrap(b)); }
};

template <class T>
struct Mul : Elementwise<T> {
  static T apply(T a, T b) { return multiply(a, b); }
};

// (a-b) times the conjugate of (a-b) for complex numbers.
template <class T>
struct SquaredDifference : Elementwise<T> {
  static T apply(T a, T b) {
    const T difference = T(wrap(a) - wrap(b));
    if constexpr (kIsComplex<T>) {
      return std::norm(difference);
    } else {
      return multiply(difference, difference);
    }
  }
};

// The first operand if both are equal; NaN if one of them is.
template <class T>
struct Maximum : Elementwise<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a >= b || a != a ? a : b;
    } else {
      return a >= b ? a : b;
    }
  }
};

template <class T>
struct Minimum : Elementwise<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a <= b || a != a ? a : b;
    } else {
      return a <= b ? a : b;
    }
  }
};

struct Concatenate : Elementwise<std::string> {
  static constexpr double kCost = 30;
  static std::string apply(const std::string& a, const std::string& b) {
    return a + b;
  }
};

}  // namespace

void register_arithmetic_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  const ComplexTypes complex;
  for (const char* op : {"AddV2", "Add"})
    add_binary<Add>(registry, op, floating, integers, naturals, complex);
  add_binary<Sub>(registry, "Sub", floating, integers, naturals, complex);
  add_binary<Mul>(registry, "Mul", floating, integers, naturals, complex);
  add_binary<SquaredDifference>(registry, "SquaredDifference", floating,
                                Types<int32_t, int64_t>(), complex);
  add_binary<Maximum>(registry, "Maximum", floating, integers, naturals);
  add_binary<Minimum>(registry, "Minimum", floating, integers, naturals);
  add_kernel(registry, "Add", DataType::kString,
             make_kernel<BinaryKernel<Concatenate>>);
}

}  // namespace tagflow::devices
