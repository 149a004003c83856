// The arithmetic of reductions.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include "graph/dtype_visit.h"

namespace tagflow::devices {

// Calls f(TypeTag<T>{}) for each type of a group, for registering kernels.
template <class... Ts, class F>
void for_each(F&& f) {
  (f(TypeTag<Ts>{}), ...);
}
template <class F>
void for_each_floating(F&& f) {
  for_each<float, double, Half, BFloat16>(f);
}
template <class F>
void for_each_real(F&& f) {
  for_each_floating(f);
  for_each<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
           uint64_t>(f);
}
template <class F>
void for_each_numeric(F&& f) {
  for_each_real(f);
  for_each<Complex64, Complex128>(f);
}

template <class T>
inline constexpr bool kComplexType =
    std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <class T>
inline constexpr bool kIs16BitFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type in which elements are summed or multiplied: float for 16-bit floats;
// a 64-bit unsigned integer for integers: its overflow is defined, and its low
// bits are those of the wrapped result.
template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>, uint64_t,
                       std::conditional_t<kIs16BitFloat<T>, float, T>>;

// std::complex's product is slow, because it handles infinities.
template <class T>
T multiplied(const T& a, const T& b) {
  if constexpr (kComplexType<T>)
    return {a.real() * b.real() - a.imag() * b.imag(),
            a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

// The extreme values of a type: infinities if it has them.
template <class T>
T lowest_value() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return T(-std::numeric_limits<float>::infinity());
}
template <class T>
T highest_value() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::max();
  else
    return T(std::numeric_limits<float>::infinity());
}

// The extreme finite values.
template <class T>
T lowest_finite() {
  return Eigen::NumTraits<T>::lowest();
}
template <class T>
T highest_finite() {
  return Eigen::NumTraits<T>::highest();
}

// --- The ops of reduction/loops.h that segments use too -------------------

template <class T>
struct SumOp {
  using In = T;
  using Acc = Accumulator<T>;
  using Out = T;
  static constexpr bool kIdentity = true;
  static Acc initial() { return Acc(0); }
  static Acc load(T value) { return static_cast<Acc>(value); }
  static Acc combine(Acc a, Acc b) { return a + b; }
  static T finish(Acc sum, int64_t) { return static_cast<T>(sum); }
};

// Integers are divided towards zero. The mean of no elements is NaN, or 0 for
// complex types and types without NaN.
template <class T>
struct MeanOp : SumOp<T> {
  using Partial = SumOp<T>;
  using typename SumOp<T>::Acc;
  static T finish(Acc sum, int64_t count) {
    if constexpr (std::is_integral_v<T>) {
      if (count == 0) return T(0);
      if constexpr (std::is_unsigned_v<T>)
        return T(sum / uint64_t(count));
      else
        return T(int64_t(sum) / count);
    } else if constexpr (kComplexType<T>) {
      return count == 0 ? T(0) : sum / typename T::value_type(count);
    } else {
      return static_cast<T>(sum / Acc(count));
    }
  }
};

template <class T>
struct ProductOp {
  using In = T;
  using Acc = Accumulator<T>;
  using Out = T;
  static constexpr bool kIdentity = true;
  static Acc initial() { return Acc(1); }
  static Acc load(T value) { return static_cast<Acc>(value); }
  static Acc combine(Acc a, Acc b) { return multiplied(a, b); }
  static T finish(Acc product, int64_t) { return static_cast<T>(product); }
};

// NaN wins over everything.
template <class T>
struct MaxOp {
  using In = T;
  using Acc = std::conditional_t<kIs16BitFloat<T>, float, T>;
  using Out = T;
  static constexpr bool kIdentity = true;
  static Acc initial() { return lowest_value<Acc>(); }
  static Acc load(T value) { return static_cast<Acc>(value); }
  static Acc combine(Acc a, Acc b) { return a > b || a != a ? a : b; }
  static T finish(Acc best, int64_t) { return static_cast<T>(best); }
};

template <class T>
struct MinOp : MaxOp<T> {
  using typename MaxOp<T>::Acc;
  static Acc initial() { return highest_value<Acc>(); }
  static Acc combine(Acc a, Acc b) { return a < b || a != a ? a : b; }
};

}  // namespace tagflow::devices
