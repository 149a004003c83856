// Exponentials, logarithms, trigonometric and hyperbolic functions.
#include <cmath>

#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/elementwise/vector_math.h"

namespace tagflow::devices {

namespace {

// The cost of a vectorised function, per element.
template <class T>
inline constexpr double kVectorCost = kIsComplex<T> ? 20 : sizeof(T) * 0.3;

// Defines the op `Name` by `real` and, for complex values, `complex`:
// expressions of x, both vectorised.
#define TAGFLOW_VECTOR_FUNCTION(Name, real, complex) \
  template <class T>                                 \
  struct Name : Elementwise<T> {                     \
    static constexpr double kCost = kVectorCost<T>;  \
    static T apply(T x) {                            \
      if constexpr (kIsComplex<T>) {                 \
        return complex;                              \
      } else {                                       \
        return real;                                 \
      }                                              \
    }                                                \
  };
TAGFLOW_VECTOR_FUNCTION(Exp, vector_math::exp(x), std::exp(x))
TAGFLOW_VECTOR_FUNCTION(Expm1, vector_math::expm1(x), std::exp(x) - T(1))
TAGFLOW_VECTOR_FUNCTION(Log, vector_math::log(x), std::log(x))
TAGFLOW_VECTOR_FUNCTION(Log1p, vector_math::log1p(x), std::log(T(1) + x))
TAGFLOW_VECTOR_FUNCTION(Tanh, vector_math::tanh(x), std::tanh(x))
TAGFLOW_VECTOR_FUNCTION(Sigmoid, vector_math::sigmoid(x),
                        T(1) / (T(1) + std::exp(-x)))
#undef TAGFLOW_VECTOR_FUNCTION

// Defines the op `Name` by the standard library's `function`.
#define TAGFLOW_STANDARD_FUNCTION(Name, function)    \
  template <class T>                                 \
  struct Name : Elementwise<T> {                     \
    static constexpr double kCost = 10;              \
    static T apply(T x) { return std::function(x); } \
  };
TAGFLOW_STANDARD_FUNCTION(Tan, tan)
TAGFLOW_STANDARD_FUNCTION(Asin, asin)
TAGFLOW_STANDARD_FUNCTION(Acos, acos)
TAGFLOW_STANDARD_FUNCTION(Atan, atan)
TAGFLOW_STANDARD_FUNCTION(Sinh, sinh)
TAGFLOW_STANDARD_FUNCTION(Cosh, cosh)
TAGFLOW_STANDARD_FUNCTION(Asinh, asinh)
TAGFLOW_STANDARD_FUNCTION(Acosh, acosh)
TAGFLOW_STANDARD_FUNCTION(Atanh, atanh)
#undef TAGFLOW_STANDARD_FUNCTION

// Eigen's functions are vectorised for float.
#define TAGFLOW_EIGEN_FUNCTION(Name, function)                            \
  template <class T>                                                      \
  struct Name : Elementwise<T> {                                          \
    static constexpr double kCost = std::is_same_v<T, float> ? 1 : 10;    \
    static T apply(T x) { return std::function(x); }                      \
    static void apply_row(const T* x, T* z, int64_t n) {                  \
      using Array = Eigen::Array<T, Eigen::Dynamic, 1>;                   \
      Eigen::Map<Array>(z, n) = Eigen::Map<const Array>(x, n).function(); \
    }                                                                     \
  };
TAGFLOW_EIGEN_FUNCTION(Sin, sin)
TAGFLOW_EIGEN_FUNCTION(Cos, cos)
#undef TAGFLOW_EIGEN_FUNCTION

// x / (1 + |x|).
template <class T>
struct Softsign : Elementwise<T> {
  static T apply(T x) { return x / (T(1) + std::abs(x)); }
};

}  // namespace

void register_transcendental_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const ComplexTypes complex;
  add_unary<Exp>(registry, "Exp", floating, complex);
  add_unary<Expm1>(registry, "Expm1", floating, complex);
  add_unary<Log>(registry, "Log", floating, complex);
  add_unary<Log1p>(registry, "Log1p", floating, complex);
  add_unary<Tanh>(registry, "Tanh", floating, complex);
  add_unary<Sigmoid>(registry, "Sigmoid", floating, complex);
  add_unary<Sin>(registry, "Sin", floating, complex);
  add_unary<Cos>(registry, "Cos", floating, complex);
  add_unary<Tan>(registry, "Tan", floating, complex);
  add_unary<Asin>(registry, "Asin", floating, complex);
  add_unary<Acos>(registry, "Acos", floating, complex);
  add_unary<Atan>(registry, "Atan", floating, complex);
  add_unary<Sinh>(registry, "Sinh", floating, complex);
  add_unary<Cosh>(registry, "Cosh", floating, complex);
  add_unary<Asinh>(registry, "Asinh", floating, complex);
  add_unary<Acosh>(registry, "Acosh", floating, complex);
  add_unary<Atanh>(registry, "Atanh", floating, complex);
  add_unary<Softsign>(registry, "Softsign", floating);
}

}  // namespace tagflow::devices
