// Gradients of unary functions, from their result y (or input x) and the
// gradient dy of the result.
#include <cmath>

#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

// Gradients of holomorphic functions are multiplied by the conjugate of the
// derivative. By GraphDef's conventions the caller conjugates y for SigmoidGrad
// and TanhGrad; the others conjugate it themselves.
template <class T>
T conjugate(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

template <class T>
struct SigmoidGradient : Elementwise<T> {
  static T apply(T y, T dy) { return multiply(dy, multiply(y, T(1) - y)); }
};

template <class T>
struct TanhGradient : Elementwise<T> {
  static T apply(T y, T dy) { return multiply(dy, T(1) - multiply(y, y)); }
};

// The three below are 0 for dy = 0, also at singular points, where y is 0 or
// infinite: a choice that has cut off such a point gives it a gradient of 0.

// y = sqrt(x): dy / (2 y).
template <class T>
struct RootGradient : Elementwise<T> {
  static T apply(T y, T dy) {
    const T slope = multiply(dy, T(0.5)) / conjugate(y);
    return dy == T(0) ? T(0) : slope;
  }
};

// y = x^(-1/2): -y^3 dy / 2.
template <class T>
struct ReciprocalRootGradient : Elementwise<T> {
  static T apply(T y, T dy) {
    const T z = conjugate(y);
    const T slope =
        multiply(multiply(T(-0.5), dy), multiply(z, multiply(z, z)));
    return dy == T(0) ? T(0) : slope;
  }
};

// y = 1/x: -y^2 dy.
template <class T>
struct ReciprocalGradient : Elementwise<T> {
  static T apply(T y, T dy) {
    const T z = conjugate(y);
    const T slope = -multiply(dy, multiply(z, z));
    return dy == T(0) ? T(0) : slope;
  }
};

template <class T>
struct SoftsignGradient : Elementwise<T> {
  static T apply(T dy, T x) {
    const T root = T(1) + std::abs(x);
    return dy / (root * root);
  }
};

// Inputs need the same number of elements, in any shape: the result has the
// shape of y. TensorFlow does this, too, except for the activations.
template <class Op>
class PairedKernel final : public BinaryKernel<Op> {
 public:
  using BinaryKernel<Op>::BinaryKernel;

  Status compute(KernelContext& context) const override {
    const Tensor& y = context.input(0);
    const Tensor& dy = context.input(1);
    if (same_dims(y, dy)) return BinaryKernel<Op>::compute(context);
    if (y.num_elements() != dy.num_elements())
      return context.fail(
          "the inputs must have as many elements, not {} and {}", y.describe(),
          dy.describe());
    Tensor operands[2] = {y};
    TAGFLOW_ASSIGN(operands[1], dy.reshaped(y.shape()));
    KernelContext alike(&context.node(), operands, context.mutable_outputs(),
                        &context.step(), &context.tag(), &context.allocator());
    return BinaryKernel<Op>::compute(alike);
  }
  bool broadcasts() const override { return false; }
};

template <template <class> class Op, class... Lists>
void add_paired(KernelRegistry& registry, const char* op, Lists... types) {
  (add_elementwise<PairedKernel, Op>(registry, op, types), ...);
}

}  // namespace

void register_unary_gradient_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const ComplexTypes complex;
  add_paired<SigmoidGradient>(registry, "SigmoidGrad", floating, complex);
  add_paired<TanhGradient>(registry, "TanhGrad", floating, complex);
  add_paired<RootGradient>(registry, "SqrtGrad", floating, complex);
  add_paired<ReciprocalRootGradient>(registry, "RsqrtGrad", floating, complex);
  for (const char* op : {"ReciprocalGrad", "InvGrad"})
    add_paired<ReciprocalGradient>(registry, op, floating, complex);
  add_alike<SoftsignGradient>(registry, "SoftsignGrad", floating);
}

}  // namespace tagflow::devices
