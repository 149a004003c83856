// Quotients and remainders.
#include <cmath>
#include <limits>

#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

// Invalid divisors of integer division; floating-point division has none.
template <class T>
struct Division : Elementwise<T> {
  static constexpr double kCost = std::is_integral_v<T> ? 1.5 : 0.5;
};

template <class T>
requires std::is_integral_v<T>
struct Division<T> : Elementwise<T> {
  static constexpr double kCost = 1.5;
  static constexpr const char* kRefusal = "Integer division by zero";
  static bool refuses(T divisor) { return divisor == 0; }
};

// a / b towards zero. The smallest number by -1 overflows; it wraps around.
// REQUIRES: b != 0
template <class T>
T divide(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return T(-wrap(a));
  }
  return T(a / b);
}

// The remainder of quotient(), with the sign of a. REQUIRES: b != 0
template <class T>
T remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return 0;
  }
  return T(a % b);
}

template <class T>
struct Divide : Division<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return divide(a, b);
    } else {
      return a / b;
    }
  }
};

template <class T>
struct TruncateDivide : Division<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return divide(a, b);
    } else {
      return std::trunc(a / b);
    }
  }
};

template <class T>
struct FloorDivide : Division<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = divide(a, b);
      if constexpr (std::is_signed_v<T>) {
        // Towards minus infinity if the quotient was truncated.
        if ((a < 0) != (b < 0) && remainder(a, b) != 0) return quotient - 1;
      }
      return quotient;
    } else {
      // A negative quotient that is too small for the type is not 0.
      const T quotient = a / b;
      const bool vanished = quotient == T(0) && a != T(0) &&
                            std::abs(b) <= std::numeric_limits<T>::max() &&
                            (a < T(0)) != (b < T(0));
      return vanished ? T(-1) : std::floor(quotient);
    }
  }
};

template <class T>
struct TruncateModulo : Division<T> {
  static constexpr double kCost = std::is_integral_v<T> ? 1.5 : 8;
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return remainder(a, b);
    } else {
      return std::fmod(a, b);
    }
  }
};

// The remainder with the sign of b.
template <class T>
struct FloorModulo : Division<T> {
  static constexpr double kCost = std::is_integral_v<T> ? 1.5 : 8;
  static T apply(T a, T b) {
    const T rest = TruncateModulo<T>::apply(a, b);
    if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>) {
      return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
    } else {
      return rest;
    }
  }
};

// 0 if b is 0, also for a = NaN.
template <class T>
struct DivideNoNan : Elementwise<T> {
  static T apply(T a, T b) { return b == T(0) ? T(0) : a / b; }
};

// 0 if b is 0, also for a = NaN or infinity.
template <class T>
struct MultiplyNoNan : Elementwise<T> {
  static T apply(T a, T b) { return b == T(0) ? T(0) : multiply(a, b); }
};

// 0 if a is 0, for any b.
template <class T>
struct XDivideY : Elementwise<T> {
  static T apply(T a, T b) { return a == T(0) ? T(0) : a / b; }
};

}  // namespace

void register_division_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  const ComplexTypes complex;
  add_binary<Divide>(registry, "RealDiv", floating, complex);
  add_binary<Divide>(registry, "Div", floating, integers, naturals, complex);
  add_binary<FloorDivide>(registry, "FloorDiv", floating, integers, naturals);
  add_binary<TruncateDivide>(registry, "TruncateDiv", floating, integers,
                             naturals);
  add_binary<FloorModulo>(registry, "FloorMod", floating, integers, naturals);
  for (const char* op : {"Mod", "TruncateMod"})
    add_binary<TruncateModulo>(registry, op, floating,
                               Types<int32_t, int64_t>());
  add_binary<DivideNoNan>(registry, "DivNoNan", floating, complex);
  add_binary<MultiplyNoNan>(registry, "MulNoNan", floating, complex);
  add_binary<XDivideY>(registry, "Xdivy", floating, complex);
}

}  // namespace tagflow::devices
