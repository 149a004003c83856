// Comparisons and logic.
#include <cmath>

#include "devices/cpu/broadcast.h"
#include "devices/cpu/elementwise/register.h"

namespace tagflow::devices {

namespace {

template <class T>
struct Less : Elementwise<T, bool> {
  static bool apply(T a, T b) { return a < b; }
};

template <class T>
struct LessEqual : Elementwise<T, bool> {
  static bool apply(T a, T b) { return a <= b; }
};

template <class T>
struct Greater : Elementwise<T, bool> {
  static bool apply(T a, T b) { return a > b; }
};

template <class T>
struct GreaterEqual : Elementwise<T, bool> {
  static bool apply(T a, T b) { return a >= b; }
};

template <class T>
struct Equal : Elementwise<T, bool> {
  static constexpr bool kOfDifferentShapes = false;
  static bool apply(const T& a, const T& b) { return a == b; }
};

template <class T>
struct NotEqual : Elementwise<T, bool> {
  static constexpr bool kOfDifferentShapes = true;
  static bool apply(const T& a, const T& b) { return a != b; }
};

// Equal or NotEqual if shapes that do not fit are unequal, not an error.
template <template <class> class Op, class T>
class LenientEqualityKernel final
    : public BinaryKernel<typename ResolveOp<Op, T>::type> {
 public:
  using Base = BinaryKernel<typename ResolveOp<Op, T>::type>;
  using Base::Base;

  Status compute(KernelContext& context) const override {
    const Shape x = context.input(0).shape();
    const Shape y = context.input(1).shape();
    if (broadcast_shapes({&x, &y}).ok()) return Base::compute(context);
    context.set_output(0, Tensor::scalar(Op<bool>::kOfDifferentShapes));
    return {};
  }
};

template <template <class> class Op, class T>
Result<std::unique_ptr<Kernel>> make_equality(const KernelInfo& info) {
  TAGFLOW_ASSIGN(const bool refuses,
                 info.attr<bool>("incompatible_shape_error"));
  if (!refuses) return make_kernel<LenientEqualityKernel<Op, T>>(info);
  return make_kernel<BinaryKernel<typename ResolveOp<Op, T>::type>>(info);
}

template <template <class> class Op, class... Ts>
void add_equality(KernelRegistry& registry, const char* op, Types<Ts...>) {
  (add_kernel(registry, op, kDataTypeOf<Ts>, make_equality<Op, Ts>), ...);
}

// Quantized values are equal if their stored integers are.
template <template <class> class Op>
void add_quantized_equality(KernelRegistry& registry, const char* op) {
  add_kernel(registry, op, DataType::kQInt8, make_equality<Op, int8_t>);
  add_kernel(registry, op, DataType::kQUInt8, make_equality<Op, uint8_t>);
  add_kernel(registry, op, DataType::kQInt16, make_equality<Op, int16_t>);
  add_kernel(registry, op, DataType::kQUInt16, make_equality<Op, uint16_t>);
  add_kernel(registry, op, DataType::kQInt32, make_equality<Op, int32_t>);
}

// |a - b| < tolerance.
template <class T>
class ApproximateEqualKernel final : public Kernel {
 public:
  explicit ApproximateEqualKernel(float tolerance) : tolerance_(tolerance) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const float tolerance, info.attr<float>("tolerance"));
    return std::unique_ptr<Kernel>(
        std::make_unique<ApproximateEqualKernel>(tolerance));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.input(1);
    if (!same_dims(x, y))
      return context.fail("the inputs must have one shape, not {} and {}",
                          x.describe(), y.describe());
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, x.shape()));
    const T* a = x.data<T>();
    const T* b = y.data<T>();
    bool* z = out->mutable_data<bool>();
    const int64_t n = x.num_elements();
    for (int64_t i = 0; i < n; ++i) z[i] = distance(a[i], b[i]) < tolerance_;
    return {};
  }

  double cost(const KernelContext& context) const override {
    return double(context.input(0).num_elements());
  }

 private:
  static auto distance(T a, T b) {
    if constexpr (kIsNarrow<T>) {
      return std::abs(float(a) - float(b));
    } else if constexpr (std::is_integral_v<T>) {
      return float(a > b ? wrap(a) - wrap(b) : wrap(b) - wrap(a));
    } else {
      return std::abs(a - b);
    }
  }

  float tolerance_;
};

template <class... Ts>
void add_approximate_equal(KernelRegistry& registry, Types<Ts...>) {
  (add_kernel(registry, "ApproximateEqual", kDataTypeOf<Ts>,
              ApproximateEqualKernel<Ts>::make),
   ...);
}

struct And : Elementwise<bool> {
  static bool apply(bool a, bool b) { return a & b; }
};

struct Or : Elementwise<bool> {
  static bool apply(bool a, bool b) { return a | b; }
};

struct Not : Elementwise<bool> {
  static bool apply(bool a) { return !a; }
};

}  // namespace

void register_comparison_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  const ComplexTypes complex;
  add_binary<Less>(registry, "Less", floating, integers, naturals);
  add_binary<LessEqual>(registry, "LessEqual", floating, integers, naturals);
  add_binary<Greater>(registry, "Greater", floating, integers, naturals);
  add_binary<GreaterEqual>(registry, "GreaterEqual", floating, integers,
                           naturals);
  const auto add_equal = [&](auto types) {
    add_equality<Equal>(registry, "Equal", types);
    add_equality<NotEqual>(registry, "NotEqual", types);
  };
  add_equal(floating);
  add_equal(integers);
  add_equal(naturals);
  add_equal(complex);
  add_equal(Types<bool, std::string>());
  add_quantized_equality<Equal>(registry, "Equal");
  add_quantized_equality<NotEqual>(registry, "NotEqual");
  add_approximate_equal(registry, floating);
  add_approximate_equal(registry, integers);
  add_approximate_equal(registry, naturals);
  add_approximate_equal(registry, complex);
  registry.add<BinaryKernel<And>>("LogicalAnd");
  registry.add<BinaryKernel<Or>>("LogicalOr");
  registry.add<UnaryKernel<Not>>("LogicalNot");
}

}  // namespace tagflow::devices
