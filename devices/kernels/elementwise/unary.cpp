// Signs, squares, roots, rounding and classification.
#include <cmath>

#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
struct Negate : Elementwise<T> {
  static T apply(T a) { return T(-wrap(a)); }
};

// The smallest integer stays the same.
template <class T>
struct Absolute : Elementwise<T> {
  static T apply(T a) {
    if constexpr (std::is_integral_v<T>) {
      return a < 0 ? T(-wrap(a)) : a;
    } else {
      return std::abs(a);
    }
  }
};

// Returns -1, 0 or 1; NaN for NaN; for a complex number the unit in its
// direction.
template <class T>
struct Sign : Elementwise<T> {
  static T apply(T a) {
    if constexpr (kIsComplex<T>) {
      return a == T(0) ? T(0) : a / std::abs(a);
    } else {
      const T sign = T((a > T(0)) - (a < T(0)));
      return a == a ? sign : a;
    }
  }
};

template <class T>
struct Square : Elementwise<T> {
  static T apply(T a) { return multiply(a, a); }
};

template <class T>
struct Reciprocal : Elementwise<T> {
  static T apply(T a) { return T(1) / a; }
};

template <class T>
struct Root : Elementwise<T> {
  static constexpr double kCost = 0.5;
  static T apply(T a) { return std::sqrt(a); }
};

template <class T>
struct ReciprocalRoot : Elementwise<T> {
  static constexpr double kCost = 0.8;
  static T apply(T a) { return T(1) / std::sqrt(a); }
};

template <class T>
struct Floor : Elementwise<T> {
  static T apply(T a) { return std::floor(a); }
};

template <class T>
struct Ceil : Elementwise<T> {
  static T apply(T a) { return std::ceil(a); }
};

// To the nearest integer, halves to the even one; integers stay the same.
template <class T>
struct Round : Elementwise<T> {
  static T apply(T a) {
    if constexpr (std::is_integral_v<T>) {
      return a;
    } else {
      return std::rint(a);
    }
  }
};

template <class T>
struct IsNan : Elementwise<T, bool> {
  static bool apply(T a) { return a != a; }
};

template <class T>
struct IsInf : Elementwise<T, bool> {
  static bool apply(T a) {
    return std::abs(a) == std::numeric_limits<T>::infinity();
  }
};

template <class T>
struct IsFinite : Elementwise<T, bool> {
  static bool apply(T a) {
    return std::abs(a) < std::numeric_limits<T>::infinity();
  }
};

}  // namespace

void register_unary_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  const ComplexTypes complex;
  add_unary<Negate>(registry, "Neg", floating, integers, complex);
  add_unary<Absolute>(registry, "Abs", floating, integers);
  add_unary<Sign>(registry, "Sign", floating, integers, complex);
  add_unary<Square>(registry, "Square", floating, integers, naturals, complex);
  for (const char* op : {"Reciprocal", "Inv"})
    add_unary<Reciprocal>(registry, op, floating, complex);
  add_unary<Root>(registry, "Sqrt", floating, complex);
  add_unary<ReciprocalRoot>(registry, "Rsqrt", floating, complex);
  add_unary<Floor>(registry, "Floor", floating);
  add_unary<Ceil>(registry, "Ceil", floating);
  add_unary<Round>(registry, "Rint", floating);
  add_unary<Round>(registry, "Round", floating, integers);
  add_unary<IsNan>(registry, "IsNan", floating);
  add_unary<IsInf>(registry, "IsInf", floating);
  add_unary<IsFinite>(registry, "IsFinite", floating);
}

}  // namespace tagflow::devices
