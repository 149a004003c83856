// Relu, Relu6, Elu, Selu, LeakyRelu, Softplus and their gradients. Softsign is
// in elementwise/transcendental.cpp, and its gradient in gradient/unary.cpp.
#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/elementwise/vector_math.h"

namespace tagflow::devices {
namespace {

// Comparisons with NaN are false: it passes through the activations.
template <class T>
struct Relu : Elementwise<T> {
  static T apply(T x) { return x < T(0) ? T(0) : x; }
};

template <class T>
struct ReluGradient : Elementwise<T> {
  static T apply(T dy, T x) { return x > T(0) ? dy : T(0); }
};

template <class T>
struct Relu6 : Elementwise<T> {
  static T apply(T x) {
    const T positive = x < T(0) ? T(0) : x;
    return positive > T(6) ? T(6) : positive;
  }
};

template <class T>
struct Relu6Gradient : Elementwise<T> {
  static T apply(T dy, T x) { return x > T(0) && x < T(6) ? dy : T(0); }
};

template <class T>
struct Elu : Elementwise<T> {
  static constexpr double kCost = 1.5;
  static T apply(T x) { return x < T(0) ? vector_math::expm1(x) : x; }
};

// From the result y: e^x = y + 1 if x is negative.
template <class T>
struct EluGradient : Elementwise<T> {
  static T apply(T dy, T y) { return y < T(0) ? dy * (y + T(1)) : dy; }
};

// The constants of "Self-Normalizing Neural Networks" (Klambauer, 2017).
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

template <class T>
struct Selu : Elementwise<T> {
  static constexpr double kCost = 1.5;
  static T apply(T x) {
    return x < T(0) ? T(kSeluScale * kSeluAlpha) * vector_math::expm1(x)
                    : T(kSeluScale) * x;
  }
};

template <class T>
struct SeluGradient : Elementwise<T> {
  static T apply(T dy, T y) {
    return dy * (y < T(0) ? y + T(kSeluScale * kSeluAlpha) : T(kSeluScale));
  }
};

// log(1 + e^x), written so that e^x cannot overflow.
template <class T>
struct Softplus : Elementwise<T> {
  static constexpr double kCost = 3;
  static T apply(T x) {
    const T positive = x < T(0) ? T(0) : x;
    return positive + vector_math::log1p(vector_math::exp(-std::abs(x)));
  }
};

template <class T>
struct SoftplusGradient : Elementwise<T> {
  static constexpr double kCost = 1.5;
  static T apply(T dy, T x) { return dy * vector_math::sigmoid(x); }
};

// x, or alpha x if x is not positive. The gradient is the same function
// of dy, chosen by x.
template <class T>
class LeakyReluKernel : public Kernel {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;

 public:
  explicit LeakyReluKernel(float alpha) : alpha_(alpha) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const float alpha, info.attr<float>("alpha"));
    return std::unique_ptr<Kernel>(std::make_unique<LeakyReluKernel>(alpha));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& from = context.input(0);
    const Tensor& chooser = context.input(context.num_inputs() - 1);
    if (!same_dims(from, chooser))
      return context.fail("the inputs must have one shape, not {} and {}",
                          from.describe(), chooser.describe());
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, from.shape()));
    const T* value = from.data<T>();
    const T* x = chooser.data<T>();
    T* to = out->mutable_data<T>();
    const W alpha = alpha_;
    context.parallel_for(
        from.num_elements(), 0.3, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
          for (int64_t i = begin; i < end; ++i)
            to[i] =
                W(x[i]) > 0 ? value[i] : static_cast<T>(W(value[i]) * alpha);
        });
    return Status();
  }

  double cost(const KernelContext& context) const override {
    return 50 + double(context.input(0).num_elements()) * 0.3;
  }

 private:
  float alpha_;
};

}  // namespace

void register_pointwise_activation_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  add_unary<Relu>(registry, "Relu", floating, integers, naturals);
  add_alike<ReluGradient>(registry, "ReluGrad", floating, integers, naturals);
  add_unary<Relu6>(registry, "Relu6", floating, integers, naturals);
  add_alike<Relu6Gradient>(registry, "Relu6Grad", floating, integers, naturals);
  add_unary<Elu>(registry, "Elu", floating);
  add_alike<EluGradient>(registry, "EluGrad", floating);
  add_unary<Selu>(registry, "Selu", floating);
  add_alike<SeluGradient>(registry, "SeluGrad", floating);
  add_unary<Softplus>(registry, "Softplus", floating);
  add_alike<SoftplusGradient>(registry, "SoftplusGrad", floating);
  const auto add_leaky = [&]<class T>(T) {
    for (const char* op : {"LeakyRelu", "LeakyReluGrad"})
      registry.add<LeakyReluKernel<T>>(op, {{"T", {kDataTypeOf<T>}}});
  };
  add_leaky(float());
  add_leaky(double());
  add_leaky(Half());
  add_leaky(BFloat16());
}

}  // namespace tagflow::devices
