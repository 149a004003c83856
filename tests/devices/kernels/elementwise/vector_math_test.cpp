#include "devices/kernels/elementwise/vector_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tagflow::devices::vector_math {

namespace {

// How many units in the last place `x` is from the exact value.
template <class T>
long double units_off(T x, long double exact) {
  const T rounded = T(exact);
  if (x == rounded || (std::isnan(x) && std::isnan(exact))) return 0;
  if (!std::isfinite(x) || !std::isfinite(rounded)) return HUGE_VALL;
  const T size = std::max(std::abs(rounded), std::numeric_limits<T>::min());
  const int exponent = std::ilogb(size);
  return std::abs((long double)(x)-exact) /
         std::ldexp(1.0L, exponent + 1 - std::numeric_limits<T>::digits);
}

template <class T>
std::vector<T> samples(double low, double high) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> values(low, high);
  std::vector<T> xs;
  for (int i = 0; i < 20000; ++i) xs.push_back(T(values(random)));
  return xs;
}

// The worst of f against `exact` over the samples, in units.
template <class T, class F, class Exact>
double worst(const std::vector<T>& xs, F f, Exact exact) {
  long double units = 0;
  for (const T x : xs)
    units = std::max(units, units_off(f(x), exact((long double)(x))));
  return double(units);
}

using Long = long double;

template <class T>
void check_exponentials(double low, double high) {
  const auto xs = samples<T>(low, high);
  CHECK(worst(xs, exp<T>, [](Long x) { return std::exp(x); }) < 4);
  CHECK(worst(xs, expm1<T>, [](Long x) { return std::expm1(x); }) < 4);
  CHECK(worst(xs, tanh<T>, [](Long x) { return std::tanh(x); }) < 4);
  CHECK(worst(xs, sigmoid<T>, [](Long x) { return 1 / (1 + std::exp(-x)); }) <
        4);
}

template <class T>
void check_logarithms(double low, double high) {
  const auto xs = samples<T>(low, high);
  CHECK(worst(xs, log<T>, [](Long x) { return std::log(x); }) < 4);
  CHECK(worst(xs, log1p<T>, [](Long x) { return std::log1p(x); }) < 4);
  const auto negative = samples<T>(-0.999, 0);
  CHECK(worst(negative, log1p<T>, [](Long x) { return std::log1p(x); }) < 4);
}

template <class T>
void check_special_values() {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kLeast = std::numeric_limits<T>::denorm_min();
  for (const T x : {T(0), T(1), T(-1), kInf, -kInf, kNan, kLeast, T(1e4),
                    T(-1e4), T(89), T(-104), std::numeric_limits<T>::max()}) {
    CAPTURE(x);
    const auto exact = (long double)(x);
    CHECK(units_off(exp(x), std::exp(exact)) < 4);
    CHECK(units_off(expm1(x), std::expm1(exact)) < 4);
    CHECK(units_off(log(x), std::log(exact)) < 4);
    CHECK(units_off(log1p(x), std::log1p(exact)) < 4);
    CHECK(units_off(tanh(x), std::tanh(exact)) < 4);
  }
  for (const T x : {T(-87), T(-88), T(708), T(710),
                    std::numeric_limits<T>::max(), kLeast, T(-0.0)})
    CHECK(units_off(sigmoid(x), 1 / (1 + std::exp(-Long(x)))) < 4);
  // 4e-39 as a float, which is a denormal, and then 0.
  CHECK(sigmoid(-88.3f) > 0);
  CHECK(sigmoid(-88.5f) == 0);
  CHECK(sigmoid(-709.0) > 0);
  CHECK(sigmoid(-709.5) == 0);
  CHECK(sigmoid(std::numeric_limits<T>::lowest()) == 0);
  CHECK(sigmoid(-kInf) == 0);
  CHECK(sigmoid(kInf) == 1);
  CHECK(std::isnan(sigmoid(kNan)));
  CHECK(std::signbit(expm1(T(-0.0))));
  CHECK(std::signbit(log1p(T(-0.0))));
  CHECK(std::signbit(tanh(T(-0.0))));
}

}  // namespace

TEST_CASE("the exponential of a float is within 4 units") {
  check_exponentials<float>(-2, 2);
  check_exponentials<float>(-87, 88);
}

TEST_CASE("the exponential of a double is within 4 units") {
  check_exponentials<double>(-2, 2);
  check_exponentials<double>(-700, 709);
}

TEST_CASE("an exponential below the normal numbers is a denormal") {
  CHECK(exp(-100.0f) == doctest::Approx(std::exp(-100.0f)));
  CHECK(exp(-100.0f) > 0);
  CHECK(exp(-740.0) > 0);
}

TEST_CASE("logarithms are within 4 units") {
  check_logarithms<float>(1e-3, 3);
  check_logarithms<float>(0, 1e30);
  check_logarithms<double>(1e-3, 3);
  check_logarithms<double>(0, 1e300);
}

TEST_CASE("vector math agrees with std at infinities, zeros and NaN") {
  check_special_values<float>();
  check_special_values<double>();
}

}  // namespace tagflow::devices::vector_math
