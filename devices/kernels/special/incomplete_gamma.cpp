// References are to the NIST Digital Library of Mathematical Functions (DLMF),
// chapters 5 and 8. N. M. Temme, "The asymptotic expansion of the incomplete
// gamma functions", SIAM Journal on Mathematical Analysis 10 (1979), is the
// source of 8.12.
#include "devices/kernels/special/incomplete_gamma.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

namespace tagflow::devices {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTwoPi = 2 * std::numbers::pi;

// c[0] + c[1] x + ...
template <size_t N>
double polynomial_of(const double (&c)[N], double x) {
  double sum = 0;
  for (size_t i = N; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// log(gamma(1 + a)), without losing digits near 0: 5.7.3, whose coefficients
// are those of Riemann's zeta function.
double log_gamma_1p(double a) {
  constexpr double kSeries = 0.25;
  int sign = 0;
  if (a > kSeries) return ::lgamma_r(1 + a, &sign);
  double sum = -std::numbers::egamma * a, power = -a;
  for (int k = 2; k < 30; ++k) {
    power *= -a;
    sum += std::riemann_zeta(double(k)) / k * power;
  }
  return sum;
}

// x / a - 1, and the square of 8.12.1, halved: m - log(1 + m), for m = x/a - 1.
struct Distance {
  double m, half_square;
};

// With s = m / (2 + m), log(1 + m) = 2 (s + s^3/3 + s^5/5 + ...), which leaves
// m s - 2 (s^3/3 + ...): near 0 nothing cancels.
Distance distance_of(double a, double x) {
  const double m = (x - a) / a;
  if (!(std::abs(m) < 0.5)) return {m, m - std::log(x / a)};
  const double s = m / (2 + m), square = s * s;
  double rest = 0;
  for (int k = 25; k >= 3; k -= 2) rest = rest * square + 1.0 / k;
  return {m, m * s - 2 * s * square * rest};
}

// Stirling's series of log(gamma(a)) without its first terms, 5.11.1, for a of
// at least 10.
double stirling_series(double a) {
  static constexpr double kTerms[] = {
      1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
      1.0 / 1188, -691.0 / 360360.0, 1.0 / 156};
  return polynomial_of(kTerms, 1 / (a * a)) / a;
}

// x^a e^-x / gamma(1 + a): in a form without large terms that cancel.
double common_factor(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - log_gamma_1p(a));
  return std::exp(-a * distance_of(a, x).half_square - stirling_series(a)) /
         std::sqrt(kTwoPi * a);
}

// P by 8.11.4; for x up to a + 1.
double lower_by_series(double a, double x) {
  double sum = 1, term = 1;
  for (double n = a + 1; term > kEpsilon * sum; ++n) sum += term *= x / n;
  return common_factor(a, x) * sum;
}

// Q by the continued fraction 8.9.2, evaluated from its front (W. J. Lentz,
// "Generating Bessel functions in Mie scattering calculations", Applied Optics
// 15 (1976)); for x above 1 and a.
double upper_by_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMost = 100'000;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, fraction = d;
  for (int i = 1; i < kMost; ++i) {
    const double n = i * (a - i);
    b += 2;
    d = n * d + b;
    c = b + n / c;
    d = 1 / (d == 0 ? kTiny : d);
    if (c == 0) c = kTiny;
    fraction *= d * c;
    if (std::abs(d * c - 1) <= kEpsilon) break;
  }
  return common_factor(a, x) * a * fraction;
}

// Q for a and x of at most 1, where P is near 1 if a is small: by 8.7.1, P is
// x^a / gamma(1 + a) (1 + a S), and the difference of its first factor from 1
// is computed as such.
double upper_by_difference(double a, double x) {
  const double log = a * std::log(x) - log_gamma_1p(a);
  double sum = 0, term = 1;
  for (int k = 1; k < 30; ++k) {
    term *= -x / k;
    sum += term / (a + k);
  }
  return -std::expm1(log) - std::exp(log) * a * sum;
}

constexpr double kLarge = 1e4;

// P or Q for a of at least kLarge, by the uniform expansion 8.12.3 and 8.12.4:
// of 8.12.7, four terms are as exact as a double. The terms are 8.12.9 and
// those that follow from it by the recurrence 8.12.10; near their common
// singularity by their Taylor series.
double ratio_of_large(double a, double x, bool upper) {
  static constexpr double kTaylor0[] = {
      -0.33333333333333333,  0.083333333333333333,   -0.014814814814814815,
      0.0011574074074074074, 0.0003527336860670194,  -0.00017875514403292181,
      3.9192631785224378e-5, -2.1854485106799922e-6, -1.85406221071516e-6,
      8.296711340953086e-7,  -1.7665952736826079e-7, 6.7078535434014986e-9,
      1.0261809784240308e-8, -4.3820360184533532e-9};
  static constexpr double kTaylor1[] = {
      -0.0018518518518518519,  -0.0034722222222222222, 0.0026455026455026455,
      -0.00099022633744855967, 0.00020576131687242798, -4.0187757201646091e-7,
      -1.8098550334489978e-5,  7.6491609160811101e-6};
  static constexpr double kTaylor2[] = {
      0.0041335978835978836, -0.0026813271604938272, 0.00077160493827160494,
      2.0093878600823045e-6, -0.00010736653226365161};
  static constexpr double kTaylor3[] = {0.00064943415637860082,
                                        0.00022947209362139918};
  const auto [m, half_square] = distance_of(a, x);
  const double eta = std::copysign(std::sqrt(2 * half_square), m);
  double c[4];
  if (std::abs(eta) < 0.2) {
    c[0] = polynomial_of(kTaylor0, eta);
    c[1] = polynomial_of(kTaylor1, eta);
    c[2] = polynomial_of(kTaylor2, eta);
    c[3] = polynomial_of(kTaylor3, eta);
  } else {
    const double u = 1 / m, v = 1 / eta, w = v * v;
    c[0] = u - v;
    c[1] = v * w - u * (1.0 / 12 + u * (1 + u));
    c[2] = -3 * v * w * w +
           u * (1.0 / 288 + u * (1.0 / 12 + u * (25.0 / 12 + u * (5 + u * 3))));
    c[3] = 15 * v * w * w * w +
           (1 + m) * u * u * u *
               (-1.0 / 288 +
                u * (-1.0 / 6 + u * (-25.0 / 4 + u * (-20 + u * -15)))) +
           139.0 / 51840 * u;
  }
  const double rest = std::exp(-a * half_square) / std::sqrt(kTwoPi * a) *
                      polynomial_of(c, 1 / a);
  const double side = eta * std::sqrt(a / 2);
  return upper ? 0.5 * std::erfc(side) + rest : 0.5 * std::erfc(-side) - rest;
}

}  // namespace

double lower_gamma_ratio(double a, double x) {
  if (a >= kLarge) return ratio_of_large(a, x, false);
  if (x > 1 && x > a) return 1 - upper_by_fraction(a, x);
  return lower_by_series(a, x);
}

double upper_gamma_ratio(double a, double x) {
  if (a >= kLarge) return ratio_of_large(a, x, true);
  if (x > 1 && x > a) return upper_by_fraction(a, x);
  if (a <= 1 && x <= 1) return upper_by_difference(a, x);
  return 1 - lower_by_series(a, x);
}

double gamma_density(double a, double x) {
  if (!(x >= 0) || std::isnan(a))
    return std::numeric_limits<double>::quiet_NaN();
  if (a > 0 && x > 0) {
    // Only a / x may overflow or vanish.
    const double factor = common_factor(a, x);
    return factor == 0 ? 0 : factor * (a / x);
  }
  if (a <= 0 && a == std::floor(a)) return 0;  // gamma(a) is infinite
  if (x > 0) return std::exp((a - 1) * std::log(x) - x) / std::tgamma(a);
  if (a >= 1) return a == 1 ? 1 : 0;
  return std::copysign(std::numeric_limits<double>::infinity(), std::tgamma(a));
}

}  // namespace tagflow::devices
