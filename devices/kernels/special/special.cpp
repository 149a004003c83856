// The error function, the gamma function and related functions.
#include <bit>
#include <cmath>
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/elementwise/vector_math.h"
#include "devices/kernels/special/incomplete_gamma.h"

namespace tagflow::devices {

namespace {

template <class T>
struct Special : Elementwise<T> {
  static constexpr double kCost = 25;
};

template <class T>
struct Erf : Special<T> {
  static T apply(T x) { return std::erf(x); }
};

// Eigen's function is vectorised.
template <>
struct Erf<float> : Elementwise<float> {
  static constexpr double kCost = 1;
  static float apply(float x) { return Eigen::numext::erf(x); }
  static void apply_row(const float* x, float* z, int64_t n) {
    using Array = Eigen::Array<float, Eigen::Dynamic, 1>;
    Eigen::Map<Array>(z, n) = Eigen::Map<const Array>(x, n).erf();
  }
};

template <class T>
struct Erfc : Special<T> {
  static T apply(T x) { return std::erfc(x); }
};

// c[0] + c[1] x + ..., unrolled, so that loops around it are vectorised.
template <size_t I = 0, size_t N>
float polynomial(const float (&c)[N], float x) {
  if constexpr (I + 1 == N) {
    return c[I];
  } else {
    return c[I] + x * polynomial<I + 1>(c, x);
  }
}

// Exact GELUs spend most of their time here. With t = 1 / (1 + z/2), the
// logarithm of erfc(z) e^(z^2) / t is so smooth in t that a short polynomial
// gives it to the last digits, for z from 0 to 11, where erfc is 0 as a float.
// z^2 needs more digits than a float has: the square of the first half of z's
// digits is exact, and the rest of the exponent is small; a factor corrects the
// rounding of their sum.
template <>
struct Erfc<float> : Elementwise<float> {
  static constexpr double kCost = 2;
  static float apply(float x) {
    static constexpr float kLog[] = {
        -0.671794064f, 1.34528531f,  0.189367059f, -0.375051731f,
        -0.157702845f, 0.279158143f, 0.109606647f, -0.262103619f,
        -0.035386777f, 0.152171283f};
    const float z = vector_math::at_most(std::abs(x), 11.0f);
    const float high =
        std::bit_cast<float>(std::bit_cast<uint32_t>(z) & 0xfffff000u);
    const float t = 1 / (1 + 0.5f * z);
    const float square = -high * high;
    const float rest = (high - z) * (high + z) + polynomial(kLog, t - 0.5f);
    const float sum = square + rest;
    const float lost = (square - sum) + rest;
    const float tail = t * (vector_math::exp(sum) * (1 + lost));
    return x < 0 ? 2 - tail : tail;
  }
};

// The quantile function of the normal distribution.
template <class T>
struct NormalQuantile : Special<T> {
  static T apply(T p) {
    if (!(p >= T(0) && p <= T(1))) return std::numeric_limits<T>::quiet_NaN();
    return Eigen::numext::ndtri(p);
  }
};

// The quantile of (x+1)/2 over the root of 2. It loses digits near 0; a step of
// Newton's method, in double, restores them.
template <class T>
struct ErfInverse : Special<T> {
  static constexpr double kCost = 60;
  static T apply(T x) {
    if (x == T(0) || x != x) return x;
    const double y = double(x);
    double z = NormalQuantile<double>::apply(0.5 * y + 0.5) * M_SQRT1_2;
    if (!std::isfinite(z)) return T(z);
    const double slope = M_2_SQRTPI * std::exp(-z * z);
    z -= (std::erf(z) - y) / slope;
    return T(z);
  }
};

template <class T>
struct LogGamma : Special<T> {
  static T apply(T x) {
    int sign = 0;  // std::lgamma would write it into a global variable
    if constexpr (std::is_same_v<T, float>) {
      return ::lgammaf_r(x, &sign);
    } else {
      return ::lgamma_r(x, &sign);
    }
  }
};

template <class T>
struct Digamma : Special<T> {
  static T apply(T x) {
    if (x == -std::numeric_limits<T>::infinity())
      return std::numeric_limits<T>::quiet_NaN();
    return Eigen::numext::digamma(x);
  }
};

// The incomplete gamma functions. Eigen's are wrong by all digits where one of
// them is near 1, or where both arguments are large: its functions only say
// what arguments give that are not positive, or not finite.
template <class T>
struct SlowSpecial : Elementwise<T> {
  static constexpr double kCost = 300;
};
template <class T>
bool is_regular(T a, T x) {
  constexpr T kMost = std::numeric_limits<T>::max();
  return a > 0 && x > 0 && a <= kMost && x <= kMost;
}
template <class T>
struct LowerGamma : SlowSpecial<T> {
  static T apply(T a, T x) {
    return is_regular(a, x) ? T(lower_gamma_ratio(double(a), double(x)))
                            : Eigen::numext::igamma(a, x);
  }
};
template <class T>
struct UpperGamma : SlowSpecial<T> {
  static T apply(T a, T x) {
    return is_regular(a, x) ? T(upper_gamma_ratio(double(a), double(x)))
                            : Eigen::numext::igammac(a, x);
  }
};
template <class T>
struct GammaDensity : SlowSpecial<T> {
  static T apply(T a, T x) { return T(gamma_density(double(a), double(x))); }
};
// Related functions: computed by Eigen.
template <class T>
struct LowerGammaGrad : SlowSpecial<T> {
  static T apply(T a, T x) { return Eigen::numext::igamma_der_a(a, x); }
};
// The derivative of a sample of the gamma distribution by its parameter.
template <class T>
struct GammaSampleGrad : SlowSpecial<T> {
  static T apply(T alpha, T sample) {
    return Eigen::numext::gamma_sample_der_alpha(alpha, sample);
  }
};
template <class T>
struct Zeta : SlowSpecial<T> {
  static T apply(T x, T q) { return Eigen::numext::zeta(x, q); }
};
template <class T>
struct Polygamma : SlowSpecial<T> {
  static T apply(T n, T x) { return Eigen::numext::polygamma(n, x); }
};

#define TAGFLOW_BESSEL(Name, function)                                  \
  template <class T>                                                    \
  struct Bessel##Name : Special<T> {                                    \
    static T apply(T x) { return Eigen::numext::bessel_##function(x); } \
  };
TAGFLOW_BESSEL(I0, i0)
TAGFLOW_BESSEL(I0e, i0e)
TAGFLOW_BESSEL(I1, i1)
TAGFLOW_BESSEL(I1e, i1e)
TAGFLOW_BESSEL(J0, j0)
TAGFLOW_BESSEL(J1, j1)
TAGFLOW_BESSEL(K0, k0)
TAGFLOW_BESSEL(K0e, k0e)
TAGFLOW_BESSEL(K1, k1)
TAGFLOW_BESSEL(K1e, k1e)
TAGFLOW_BESSEL(Y0, y0)
TAGFLOW_BESSEL(Y1, y1)
#undef TAGFLOW_BESSEL

}  // namespace

void register_special_function_kernels(KernelRegistry& registry) {
  const Types<float, double> exact;
  add_binary<LowerGamma>(registry, "Igamma", exact);
  add_binary<UpperGamma>(registry, "Igammac", exact);
  add_binary<GammaDensity>(registry, "_GammaDensity", exact);
  add_binary<LowerGammaGrad>(registry, "IgammaGradA", exact);
  add_binary<GammaSampleGrad>(registry, "RandomGammaGrad", exact);
  add_binary<Zeta>(registry, "Zeta", exact);
  add_binary<Polygamma>(registry, "Polygamma", exact);
  add_unary<BesselI0>(registry, "BesselI0", exact);
  add_unary<BesselI0e>(registry, "BesselI0e", exact);
  add_unary<BesselI1>(registry, "BesselI1", exact);
  add_unary<BesselI1e>(registry, "BesselI1e", exact);
  add_unary<BesselJ0>(registry, "BesselJ0", exact);
  add_unary<BesselJ1>(registry, "BesselJ1", exact);
  add_unary<BesselK0>(registry, "BesselK0", exact);
  add_unary<BesselK0e>(registry, "BesselK0e", exact);
  add_unary<BesselK1>(registry, "BesselK1", exact);
  add_unary<BesselK1e>(registry, "BesselK1e", exact);
  add_unary<BesselY0>(registry, "BesselY0", exact);
  add_unary<BesselY1>(registry, "BesselY1", exact);
  const FloatingTypes floating;
  add_unary<Erf>(registry, "Erf", floating);
  add_unary<Erfc>(registry, "Erfc", floating);
  add_unary<ErfInverse>(registry, "Erfinv", floating);
  add_unary<NormalQuantile>(registry, "Ndtri", floating);
  add_unary<LogGamma>(registry, "Lgamma", floating);
  add_unary<Digamma>(registry, "Digamma", floating);
}

}  // namespace tagflow::devices
