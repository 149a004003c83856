// Functions of one operand; devices/kernels/elementwise/unary.cpp and its
// neighbours define them.
#include <math_constants.h>

#include <type_traits>

#include "devices/kernels/elementwise/elementwise.cuh"

namespace tagflow::devices::cuda {
namespace {

#define TAGFLOW_UNARY(Name, ...)             \
  template <class T>                         \
  struct Name {                              \
    static __device__ T apply(T x, double) { \
      return static_cast<T>(__VA_ARGS__);    \
    }                                        \
  };
TAGFLOW_UNARY(Negate, -wrap(x))
TAGFLOW_UNARY(Sign, x == x ? T(int(x > T(0)) - int(x < T(0))) : x)
TAGFLOW_UNARY(Square, wrap(x) * wrap(x))
TAGFLOW_UNARY(Reciprocal, T(1) / x)
TAGFLOW_UNARY(Root, sqrt(x))
TAGFLOW_UNARY(ReciprocalRoot, T(1) / sqrt(x))
TAGFLOW_UNARY(Floor, floor(x))
TAGFLOW_UNARY(Ceil, ceil(x))
TAGFLOW_UNARY(Round, rint(x))
TAGFLOW_UNARY(Exp, exp(x))
TAGFLOW_UNARY(Expm1, expm1(x))
TAGFLOW_UNARY(Log, log(x))
TAGFLOW_UNARY(Log1p, log1p(x))
TAGFLOW_UNARY(Tanh, tanh(x))
TAGFLOW_UNARY(Sigmoid, T(1) / (T(1) + exp(-x)))
TAGFLOW_UNARY(Sin, sin(x))
TAGFLOW_UNARY(Cos, cos(x))
TAGFLOW_UNARY(Erf, erf(x))
// Comparisons with NaN are false: it passes through the activations.
TAGFLOW_UNARY(Relu, x < T(0) ? T(0) : x)
TAGFLOW_UNARY(Relu6, x < T(0) ? T(0) : (x > T(6) ? T(6) : x))
TAGFLOW_UNARY(Elu, x < T(0) ? expm1(x) : x)
TAGFLOW_UNARY(Selu, x < T(0) ? T(1.0507009873554804934193349852946 *
                                 1.6732632423543772848170429916717) *
                                   expm1(x)
                             : T(1.0507009873554804934193349852946) * x)
TAGFLOW_UNARY(Softplus, (x < T(0) ? T(0) : x) + log1p(exp(-fabs(x))))
TAGFLOW_UNARY(Softsign, x / (T(1) + fabs(x)))
#undef TAGFLOW_UNARY

// The smallest integer stays the same.
template <class T>
struct Absolute {
  static __device__ T apply(T x, double) {
    if constexpr (std::is_floating_point<T>::value) {
      return fabs(x);  // also for -0
    } else {
      return x < T(0) ? T(-wrap(x)) : x;
    }
  }
};
template <class T>
struct IsNan {
  static __device__ bool apply(T x, double) { return x != x; }
};
template <class T>
struct IsInf {
  static __device__ bool apply(T x, double) { return fabs(x) == T(CUDART_INF); }
};
template <class T>
struct IsFinite {
  static __device__ bool apply(T x, double) { return fabs(x) < T(CUDART_INF); }
};
struct Not {
  static __device__ bool apply(bool x, double) { return !x; }
};

template <template <class> class Op>
cudaError_t of_floating(Element type, const ElementwiseArgs& args,
                        cudaStream_t stream) {
  return with_floating(type, [&](auto zero) {
    using T = decltype(zero);
    return launch_unary<Op<Wide<T>>, T, T>(args, stream);
  });
}

template <template <class> class Op>
cudaError_t of_number(Element type, const ElementwiseArgs& args,
                      cudaStream_t stream) {
  return with_number(type, [&](auto zero) {
    using T = decltype(zero);
    return launch_unary<Op<Wide<T>>, T, T>(args, stream);
  });
}

template <template <class> class Op>
cudaError_t to_bool(Element type, const ElementwiseArgs& args,
                    cudaStream_t stream) {
  return with_floating(type, [&](auto zero) {
    using T = decltype(zero);
    return launch_unary<Op<Wide<T>>, T, bool>(args, stream);
  });
}

}  // namespace

bool has_unary(Unary op, Element type) {
  switch (op) {
    case Unary::kNegate:
    case Unary::kAbsolute:
    case Unary::kSign:
    case Unary::kSquare:
    case Unary::kRelu:
    case Unary::kRelu6:
      return is_floating(type) || is_integer(type);
    case Unary::kNot:
      return type == Element::kBool;
    default:
      return is_floating(type);
  }
}

cudaError_t unary(Unary op, Element type, const ElementwiseArgs& args,
                  cudaStream_t stream) {
  switch (op) {
    case Unary::kNegate:
      return of_number<Negate>(type, args, stream);
    case Unary::kAbsolute:
      return of_number<Absolute>(type, args, stream);
    case Unary::kSign:
      return of_number<Sign>(type, args, stream);
    case Unary::kSquare:
      return of_number<Square>(type, args, stream);
    case Unary::kReciprocal:
      return of_floating<Reciprocal>(type, args, stream);
    case Unary::kRoot:
      return of_floating<Root>(type, args, stream);
    case Unary::kReciprocalRoot:
      return of_floating<ReciprocalRoot>(type, args, stream);
    case Unary::kFloor:
      return of_floating<Floor>(type, args, stream);
    case Unary::kCeil:
      return of_floating<Ceil>(type, args, stream);
    case Unary::kRound:
      return of_floating<Round>(type, args, stream);
    case Unary::kExp:
      return of_floating<Exp>(type, args, stream);
    case Unary::kExpm1:
      return of_floating<Expm1>(type, args, stream);
    case Unary::kLog:
      return of_floating<Log>(type, args, stream);
    case Unary::kLog1p:
      return of_floating<Log1p>(type, args, stream);
    case Unary::kTanh:
      return of_floating<Tanh>(type, args, stream);
    case Unary::kSigmoid:
      return of_floating<Sigmoid>(type, args, stream);
    case Unary::kSin:
      return of_floating<Sin>(type, args, stream);
    case Unary::kCos:
      return of_floating<Cos>(type, args, stream);
    case Unary::kErf:
      return of_floating<Erf>(type, args, stream);
    case Unary::kRelu:
      return of_number<Relu>(type, args, stream);
    case Unary::kRelu6:
      return of_number<Relu6>(type, args, stream);
    case Unary::kElu:
      return of_floating<Elu>(type, args, stream);
    case Unary::kSelu:
      return of_floating<Selu>(type, args, stream);
    case Unary::kSoftplus:
      return of_floating<Softplus>(type, args, stream);
    case Unary::kSoftsign:
      return of_floating<Softsign>(type, args, stream);
    case Unary::kIsNan:
      return to_bool<IsNan>(type, args, stream);
    case Unary::kIsInf:
      return to_bool<IsInf>(type, args, stream);
    case Unary::kIsFinite:
      return to_bool<IsFinite>(type, args, stream);
    case Unary::kNot:
      return launch_unary<Not, bool, bool>(args, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace tagflow::devices::cuda
