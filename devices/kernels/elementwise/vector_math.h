// exp, log and related functions for loops: they have no branches and no calls,
// so that the compiler vectorises the loop around them. The standard library's
// are as accurate but take one number at a time.
//
// Results are within 4 units in the last place; infinities, NaN, zeros and
// denormals are those of the standard functions, except for sigmoid: it is 0
// below about -88.4 for float and -709.4 for double, where it is a denormal. A
// number gives the same result alone as in a loop.
//
// Note [Exponential]
// x = n ln 2 + r with an integer n and |r| <= ln 2 / 2, so e^x = 2^n e^r, and
// e^r - 1 is a short Taylor series. n is found by adding a number so large that
// its last mantissa bit has the weight 1: the sum's bits then contain n,
// without a conversion that NaN would make undefined.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tagflow::devices::vector_math {

// What differs between float and double.
template <class T>
struct Format;

template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kRounder = 0x1.8p23f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // n * kLn2High is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kExpMin = -104, kExpMax = 89;  // 0 and inf outside
  static constexpr float kNormalMin = -87;              // e^x is normal above
  static constexpr int kExpTerms = 7, kLogTerms = 5;
};

template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1;
  static constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kExpMin = -746, kExpMax = 710;
  static constexpr double kNormalMin = -708;
  static constexpr int kExpTerms = 13, kLogTerms = 11;
};

constexpr double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

// 1/I! + r/(I+1)! + ... + r^(Terms-I)/Terms!, given the square of r: Horner's
// rule on pairs of terms keeps more units busy than on single terms.
template <int Terms, int I, class T>
inline T exp_series(T r, T square) {
  constexpr T kCoefficient = T(1 / factorial(I));
  if constexpr (I == Terms) {
    return kCoefficient;
  } else {
    const T pair = kCoefficient + r * T(1 / factorial(I + 1));
    if constexpr (I + 1 == Terms) {
      return pair;
    } else {
      return pair + square * exp_series<Terms, I + 2>(r, square);
    }
  }
}

// 2^n for the n in the last bits of `rounded`, which is n + kRounder.
// REQUIRES: 2^n is a normal number, or the first that is too large for one,
// which gives infinity.
template <class T>
inline T power_of_two(T rounded) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  const Bits n =
      std::bit_cast<Bits>(rounded) - std::bit_cast<Bits>(F::kRounder);
  return std::bit_cast<T>((n + F::kBias) << F::kMantissa);
}

// See Note [Exponential]: e^x = (1 + tail) * 2^n.
template <class T>
struct Exponential {
  T tail;
  T rounded;  // n + kRounder

  explicit Exponential(T x) {
    using F = Format<T>;
    constexpr T kLog2E = T(0x1.71547652b82fep+0);
    rounded = x * kLog2E + F::kRounder;
    const T r = (x - n() * F::kLn2High) - n() * F::kLn2Low;
    const T square = r * r;
    tail = r + square * exp_series<F::kExpTerms, 2>(r, square);
  }

  T n() const { return rounded - Format<T>::kRounder; }
  // y * 2^n, in two steps: 2^n itself may overflow or be denormal where the
  // product is not.
  T scale(T y) const {
    constexpr T kRounder = Format<T>::kRounder;
    const T half = n() * T(0.5) + kRounder;
    const T rest = (n() - (half - kRounder)) + kRounder;
    return y * power_of_two(half) * power_of_two(rest);
  }
};

// NaN stays NaN, as in the rest of this file: comparisons with it are false.
template <class T>
inline T at_least(T x, T low) {
  return x < low ? low : x;
}
template <class T>
inline T at_most(T x, T high) {
  return x > high ? high : x;
}

template <class T>
inline T exp(T x) {
  using F = Format<T>;
  const Exponential<T> e(at_most(at_least(x, F::kExpMin), F::kExpMax));
  return e.scale(T(1) + e.tail);
}

// Exact near 0, where exp(x) - 1 would lose digits. REQUIRES: |x| <= 60
template <class T>
inline T bounded_expm1(T x) {
  const Exponential<T> e(x);
  const T power = power_of_two(e.rounded);
  return e.tail * power + (power - T(1));
}

template <class T>
inline T expm1(T x) {
  const T bounded = bounded_expm1(at_most(at_least(x, T(-60)), T(60)));
  const T result = x > T(50) ? exp(x) : bounded;
  return x == T(0) ? x : result;  // keeps the sign of -0
}

// 2 * (z/3 + z^2/5 + ...), the rest of log((1+s)/(1-s)) / s over 2, z = s^2.
template <int Terms, int I = 1, class T>
inline T atanh_rest(T z) {
  if constexpr (I > Terms) {
    return T(0);
  } else {
    constexpr T kCoefficient = T(2) / T(2 * I + 1);
    return z * (kCoefficient + atanh_rest<Terms, I + 1>(z));
  }
}

// x = 2^k m with m near 1, and log m = 2 atanh(s) with s = (m-1)/(m+1).
template <class T>
inline T log(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  using Limits = std::numeric_limits<T>;
  constexpr Bits kRootHalf = std::bit_cast<Bits>(T(0x1.6a09e6p-1));
  constexpr Bits kOne = std::bit_cast<Bits>(T(1));
  constexpr Bits kMask = (Bits(1) << F::kMantissa) - 1;
  const bool denormal = x < Limits::min();
  const T scaled = denormal ? x * T(Bits(1) << F::kMantissa) : x;
  const Bits bits = std::bit_cast<Bits>(scaled) + (kOne - kRootHalf);
  const Bits exponent =
      (bits >> F::kMantissa) - F::kBias - (denormal ? Bits(F::kMantissa) : 0);
  const T k = std::bit_cast<T>(std::bit_cast<Bits>(F::kRounder) + exponent) -
              F::kRounder;
  const T f = std::bit_cast<T>((bits & kMask) + kRootHalf) - T(1);
  const T s = f / (T(2) + f);
  const T rest = s * atanh_rest<F::kLogTerms>(s * s);
  T result = k * F::kLn2High + (T(2) * s + (rest + k * F::kLn2Low));
  result = x == Limits::infinity() ? x : result;
  const T outside = x == T(0) ? -Limits::infinity() : Limits::quiet_NaN();
  return x > T(0) ? result : outside;
}

// log(1 + x) without losing the digits of a small x: the factor x / ((1 + x) -
// 1) corrects the rounding of 1 + x.
template <class T>
inline T log1p(T x) {
  const T sum = T(1) + x;
  const T rounded = sum - T(1);
  const T lifted = log(sum) * (x / rounded);
  const bool large = !(x < std::numeric_limits<T>::max());
  const T result = large ? log(sum) : lifted;
  return rounded == T(0) ? x : result;
}

template <class T>
inline T tanh(T x) {
  const T e = bounded_expm1(at_most(std::abs(x), T(20)) * T(2));
  return std::copysign(e / (e + T(2)), x);
}

// 1 / (1 + e^-x). 1 for large x, where e^-x is below the normal numbers; if
// 2^n overflows, it is infinite, as e^-x is soon after.
template <class T>
inline T sigmoid(T x) {
  using F = Format<T>;
  const T bounded = x > -F::kNormalMin ? F::kNormalMin
                    : x < -F::kExpMax  ? F::kExpMax
                                       : -x;
  const Exponential<T> e(bounded);
  return T(1) / (T(1) + power_of_two(e.rounded) * (T(1) + e.tail));
}

}  // namespace tagflow::devices::vector_math
