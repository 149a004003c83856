// Powers, logarithms and angles of two operands.
#include <cmath>

#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
struct PowerBase : Elementwise<T> {
  static constexpr double kCost = 10;
};

template <class T>
requires std::is_integral_v<T>
struct PowerBase<T> : Elementwise<T> {
  static constexpr double kCost = 3;
  static constexpr const char* kRefusal =
      "Integers to negative integer powers are not allowed";
  static bool refuses(T exponent) { return exponent < 0; }
};

template <class T>
struct Power : PowerBase<T> {
  static T apply(T a, T b) { return std::pow(a, b); }
};

// By repeated squaring; wraps around. REQUIRES: b >= 0
template <class T>
requires std::is_integral_v<T>
struct Power<T> : PowerBase<T> {
  static T apply(T a, T b) {
    T result = 1;
    for (; b > 0; b = T(b >> 1)) {
      if ((b & 1) != 0) result = multiply(result, a);
      a = multiply(a, a);
    }
    return result;
  }
};

template <class T>
struct Cube : Elementwise<T> {
  static T apply(T x) { return x * x * x; }
};

template <class T>
struct Square : Elementwise<T> {
  static T apply(T x) { return x * x; }
};

template <class T>
struct FirstPower : Elementwise<T> {
  static T apply(T x) { return x; }
};

// Squares and cubes, the most frequent powers, are products. The first power is
// in the gradient of a square.
template <class T>
struct RealPower : Power<T> {
  static void apply_row(const T* x, bool x_moves, const T* y, bool y_moves,
                        T* z, int64_t n) {
    if (x_moves && !y_moves && *y == T(1)) {
      run_row<FirstPower<T>>(x, z, n);
    } else if (x_moves && !y_moves && *y == T(2)) {
      run_row<Square<T>>(x, z, n);
    } else if (x_moves && !y_moves && *y == T(3)) {
      run_row<Cube<T>>(x, z, n);
    } else {
      run_row<Power<T>>(x, x_moves, y, y_moves, z, n);
    }
  }
};

template <class T>
struct ArcTangent2 : Elementwise<T> {
  static constexpr double kCost = 12;
  static T apply(T y, T x) { return std::atan2(y, x); }
};

template <class T>
struct NextAfter : Elementwise<T> {
  static constexpr double kCost = 3;
  static T apply(T from, T to) { return std::nextafter(from, to); }
};

// x log y; 0 if x is 0, for any y.
template <class T>
struct XLogY : Elementwise<T> {
  static constexpr double kCost = 6;
  static T apply(T x, T y) {
    return x == T(0) ? T(0) : multiply(x, T(std::log(y)));
  }
};

// x log(1 + y); 0 if x is 0, for any y.
template <class T>
struct XLog1pY : Elementwise<T> {
  static constexpr double kCost = 8;
  static T apply(T x, T y) {
    if (x == T(0)) return T(0);
    if constexpr (kIsComplex<T>) {
      return multiply(x, std::log(T(1) + y));
    } else {
      return x * std::log1p(y);
    }
  }
};

}  // namespace

void register_power_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const ComplexTypes complex;
  add_binary<RealPower>(registry, "Pow", floating);
  add_binary<Power>(registry, "Pow", SignedIntegers(), complex);
  add_binary<ArcTangent2>(registry, "Atan2", floating);
  add_binary<NextAfter>(registry, "NextAfter", Types<float, double>());
  add_binary<XLogY>(registry, "Xlogy", floating, complex);
  add_binary<XLog1pY>(registry, "Xlog1py", floating, complex);
}

}  // namespace tagflow::devices
