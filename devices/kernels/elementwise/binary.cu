// Functions of two operands; devices/kernels/elementwise/arithmetic.cpp and its
// neighbours define them. Division and powers of integers are missing, because
// they can fail.
#include "devices/kernels/elementwise/elementwise.cuh"

namespace tagflow::devices::cuda {
namespace {

#define TAGFLOW_BINARY(Name, ...)                 \
  template <class T>                              \
  struct Name {                                   \
    static __device__ T apply(T a, T b, double) { \
      return static_cast<T>(__VA_ARGS__);         \
    }                                             \
  };
TAGFLOW_BINARY(Add, wrap(a) + wrap(b))
TAGFLOW_BINARY(Subtract, wrap(a) - wrap(b))
TAGFLOW_BINARY(Multiply, wrap(a) * wrap(b))
TAGFLOW_BINARY(SquaredDifference, (wrap(a) - wrap(b)) * (wrap(a) - wrap(b)))
// The first operand if both are equal; NaN if one of them is.
TAGFLOW_BINARY(Maximum, a >= b || a != a ? a : b)
TAGFLOW_BINARY(Minimum, a <= b || a != a ? a : b)
TAGFLOW_BINARY(Divide, a / b)
// A negative quotient that is too small for the type is not 0.
TAGFLOW_BINARY(FloorDivide, a / b == T(0) && a != T(0) && !isinf(b) &&
                                    (a < T(0)) != (b < T(0))
                                ? T(-1)
                                : floor(a / b))
TAGFLOW_BINARY(TruncateModulo, fmod(a, b))
TAGFLOW_BINARY(DivideNoNan, b == T(0) ? T(0) : a / b)
TAGFLOW_BINARY(MultiplyNoNan, b == T(0) ? T(0) : a * b)
TAGFLOW_BINARY(Power, pow(a, b))
TAGFLOW_BINARY(SigmoidGradient, b*(a*(T(1) - a)))
TAGFLOW_BINARY(TanhGradient, b*(T(1) - a * a))
TAGFLOW_BINARY(RootGradient, b == T(0) ? T(0) : b * T(0.5) / a)
TAGFLOW_BINARY(ReciprocalRootGradient,
               b == T(0) ? T(0) : T(-0.5) * b * (a * (a * a)))
TAGFLOW_BINARY(ReciprocalGradient, b == T(0) ? T(0) : -(b * (a * a)))
TAGFLOW_BINARY(ReluGradient, b > T(0) ? a : T(0))
TAGFLOW_BINARY(Relu6Gradient, b > T(0) && b < T(6) ? a : T(0))
TAGFLOW_BINARY(EluGradient, b < T(0) ? a * (b + T(1)) : a)
TAGFLOW_BINARY(SeluGradient,
               a*(b < T(0) ? b + T(1.0507009873554804934193349852946 *
                                   1.6732632423543772848170429916717)
                           : T(1.0507009873554804934193349852946)))
TAGFLOW_BINARY(SoftplusGradient, a / (T(1) + exp(-b)))
TAGFLOW_BINARY(SoftsignGradient, a / ((T(1) + fabs(b)) * (T(1) + fabs(b))))
#undef TAGFLOW_BINARY

template <class T>
struct FloorModulo {
  static __device__ T apply(T a, T b, double) {
    const T rest = fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
};

template <class T>
struct LeakyRelu {
  static __device__ T apply(T value, T x, double alpha) {
    return x > T(0) ? value : value * T(alpha);
  }
};

template <template <class> class Op>
cudaError_t of_floating(Element type, const ElementwiseArgs& args,
                        cudaStream_t stream) {
  return with_floating(type, [&](auto zero) {
    using T = decltype(zero);
    return launch_binary<Op<Wide<T>>, T, T>(args, stream);
  });
}

template <template <class> class Op>
cudaError_t of_number(Element type, const ElementwiseArgs& args,
                      cudaStream_t stream) {
  return with_number(type, [&](auto zero) {
    using T = decltype(zero);
    return launch_binary<Op<Wide<T>>, T, T>(args, stream);
  });
}

cudaError_t arithmetic(Binary op, Element type, const ElementwiseArgs& args,
                       cudaStream_t stream) {
  switch (op) {
    case Binary::kAdd:
      return of_number<Add>(type, args, stream);
    case Binary::kSubtract:
      return of_number<Subtract>(type, args, stream);
    case Binary::kMultiply:
      return of_number<Multiply>(type, args, stream);
    case Binary::kSquaredDifference:
      return of_number<SquaredDifference>(type, args, stream);
    case Binary::kMaximum:
      return of_number<Maximum>(type, args, stream);
    case Binary::kMinimum:
      return of_number<Minimum>(type, args, stream);
    case Binary::kDivide:
      return of_floating<Divide>(type, args, stream);
    case Binary::kFloorDivide:
      return of_floating<FloorDivide>(type, args, stream);
    case Binary::kFloorModulo:
      return of_floating<FloorModulo>(type, args, stream);
    case Binary::kTruncateModulo:
      return of_floating<TruncateModulo>(type, args, stream);
    case Binary::kDivideNoNan:
      return of_floating<DivideNoNan>(type, args, stream);
    case Binary::kMultiplyNoNan:
      return of_floating<MultiplyNoNan>(type, args, stream);
    case Binary::kPower:
      return of_floating<Power>(type, args, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t gradient(Binary op, Element type, const ElementwiseArgs& args,
                     cudaStream_t stream) {
  switch (op) {
    case Binary::kSigmoidGradient:
      return of_floating<SigmoidGradient>(type, args, stream);
    case Binary::kTanhGradient:
      return of_floating<TanhGradient>(type, args, stream);
    case Binary::kRootGradient:
      return of_floating<RootGradient>(type, args, stream);
    case Binary::kReciprocalRootGradient:
      return of_floating<ReciprocalRootGradient>(type, args, stream);
    case Binary::kReciprocalGradient:
      return of_floating<ReciprocalGradient>(type, args, stream);
    case Binary::kReluGradient:
      return of_number<ReluGradient>(type, args, stream);
    case Binary::kRelu6Gradient:
      return of_number<Relu6Gradient>(type, args, stream);
    case Binary::kEluGradient:
      return of_floating<EluGradient>(type, args, stream);
    case Binary::kSeluGradient:
      return of_floating<SeluGradient>(type, args, stream);
    case Binary::kSoftplusGradient:
      return of_floating<SoftplusGradient>(type, args, stream);
    case Binary::kSoftsignGradient:
      return of_floating<SoftsignGradient>(type, args, stream);
    case Binary::kLeakyRelu:
      return of_floating<LeakyRelu>(type, args, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

// In comparison.cu.
cudaError_t compare(Binary op, Element type, const ElementwiseArgs& args,
                    cudaStream_t stream);

bool has_binary(Binary op, Element type) {
  const bool number = is_floating(type) || is_integer(type);
  switch (op) {
    case Binary::kAdd:
    case Binary::kSubtract:
    case Binary::kMultiply:
    case Binary::kSquaredDifference:
    case Binary::kMaximum:
    case Binary::kMinimum:
    case Binary::kReluGradient:
    case Binary::kRelu6Gradient:
    case Binary::kLess:
    case Binary::kLessEqual:
    case Binary::kGreater:
    case Binary::kGreaterEqual:
      return number;
    case Binary::kEqual:
    case Binary::kNotEqual:
      return number || type == Element::kBool;
    case Binary::kAnd:
    case Binary::kOr:
      return type == Element::kBool;
    default:
      return is_floating(type);
  }
}

cudaError_t binary(Binary op, Element type, const ElementwiseArgs& args,
                   cudaStream_t stream) {
  if (op >= Binary::kLess) return compare(op, type, args, stream);
  if (op >= Binary::kSigmoidGradient) return gradient(op, type, args, stream);
  return arithmetic(op, type, args, stream);
}

}  // namespace tagflow::devices::cuda
