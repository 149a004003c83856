// Comparisons and logic.
#include <cmath>
#include <initializer_list>
#include <utility>

#include "devices/broadcast.h"
#include "devices/kernels/elementwise/registration.h"
#include "graph/dtype_visit.h"

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
  using Exchanged = Less<T>;
  static bool apply(T a, T b) { return a > b; }
};

template <class T>
struct GreaterEqual : Elementwise<T, bool> {
  using Exchanged = LessEqual<T>;
  static bool apply(T a, T b) { return a >= b; }
};

template <class T>
struct Equal : Elementwise<T, bool> {
  static bool apply(const T& a, const T& b) { return a == b; }
};

template <class T>
struct NotEqual : Elementwise<T, bool> {
  static bool apply(const T& a, const T& b) { return a != b; }
};

// Equal or NotEqual if shapes that do not fit are unequal, not an error.
class LenientEqualityKernel final : public Kernel {
 public:
  LenientEqualityKernel(std::unique_ptr<Kernel> strict, bool of_different)
      : strict_(std::move(strict)), of_different_(of_different) {}

  // The strict kernel itself if the node says that shapes must fit.
  // `of_different`: the result for shapes that do not.
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info,
                                              KernelMaker make_strict,
                                              bool of_different) {
    TAGFLOW_ASSIGN(const bool refuses,
                   info.attr<bool>("incompatible_shape_error"));
    TAGFLOW_ASSIGN(std::unique_ptr<Kernel> strict, make_strict(info));
    if (refuses) return strict;
    return std::unique_ptr<Kernel>(std::make_unique<LenientEqualityKernel>(
        std::move(strict), of_different));
  }

  Status compute(KernelContext& context) const override {
    const Shape x = context.input(0).shape();
    const Shape y = context.input(1).shape();
    if (broadcast_shapes({&x, &y}).ok()) return strict_->compute(context);
    context.set_output(0, Tensor::scalar(of_different_));
    return {};
  }

  double cost(const KernelContext& context) const override {
    return strict_->cost(context);
  }
  bool may_be_expensive() const override { return strict_->may_be_expensive(); }
  bool may_be_expensive_on_small_inputs() const override {
    return strict_->may_be_expensive_on_small_inputs();
  }
  // For two scalars, whose shapes fit.
  ScalarFunction scalar_function() const override {
    return strict_->scalar_function();
  }

 private:
  std::unique_ptr<Kernel> strict_;
  bool of_different_;
};

// Op is Equal or NotEqual. Integers are equal if their bits are, also those
// that store quantized values: their signs do not matter.
template <template <class> class Op>
void add_equalities(KernelRegistry& registry, const char* op) {
  const auto add = [&]<class T>(std::initializer_list<DataType> dtypes,
                                TypeTag<T>) {
    const KernelMaker make_strict =
        make_kernel<BinaryKernel<typename ResolveOp<Op, T>::type>>;
    for (const DataType dtype : dtypes)
      registry.add<LenientEqualityKernel>(op, {{"T", {dtype}}}, make_strict,
                                          Op<bool>::apply(true, false));
  };
  using enum DataType;
  add({kFloat}, TypeTag<float>());
  add({kDouble}, TypeTag<double>());
  add({kHalf}, TypeTag<Half>());
  add({kBFloat16}, TypeTag<BFloat16>());
  add({kComplex64}, TypeTag<Complex64>());
  add({kComplex128}, TypeTag<Complex128>());
  add({kBool, kInt8, kUInt8, kQInt8, kQUInt8}, TypeTag<uint8_t>());
  add({kInt16, kUInt16, kQInt16, kQUInt16}, TypeTag<uint16_t>());
  add({kInt32, kUInt32, kQInt32}, TypeTag<uint32_t>());
  add({kInt64, kUInt64}, TypeTag<uint64_t>());
  add({kString}, TypeTag<std::string>());
}

// z[i] = |x[i] - y[i]| < tolerance, for i < n.
using ApproximateRow = void (*)(const void* x, const void* y, float tolerance,
                                bool* z, int64_t n);

template <class T>
void approximate_row(const void* x, const void* y, float tolerance, bool* z,
                     int64_t n) {
  const auto distance = [](T a, T b) {
    if constexpr (kIsNarrow<T>) {
      return std::abs(float(a) - float(b));
    } else if constexpr (std::is_integral_v<T>) {
      return float(a > b ? wrap(a) - wrap(b) : wrap(b) - wrap(a));
    } else {
      return std::abs(a - b);
    }
  };
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(y);
  for (int64_t i = 0; i < n; ++i) z[i] = distance(a[i], b[i]) < tolerance;
}

class ApproximateEqualKernel final : public Kernel {
 public:
  ApproximateEqualKernel(ApproximateRow row, float tolerance)
      : row_(row), tolerance_(tolerance) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info,
                                              ApproximateRow row) {
    TAGFLOW_ASSIGN(const float tolerance, info.attr<float>("tolerance"));
    return std::unique_ptr<Kernel>(
        std::make_unique<ApproximateEqualKernel>(row, tolerance));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.input(1);
    if (!same_dims(x, y))
      return context.fail("the inputs must have one shape, not {} and {}",
                          x.describe(), y.describe());
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, x.shape()));
    row_(x.raw(), y.raw(), tolerance_, out->mutable_data<bool>(),
         x.num_elements());
    return {};
  }

  double cost(const KernelContext& context) const override {
    return double(context.input(0).num_elements());
  }

 private:
  ApproximateRow row_;
  float tolerance_;
};

template <class... Ts>
void add_approximate_equal(KernelRegistry& registry, Types<Ts...>) {
  (registry.add<ApproximateEqualKernel>(
       "ApproximateEqual", {{"T", {kDataTypeOf<Ts>}}}, &approximate_row<Ts>),
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
  add_equalities<Equal>(registry, "Equal");
  add_equalities<NotEqual>(registry, "NotEqual");
  add_approximate_equal(registry, floating);
  add_approximate_equal(registry, integers);
  add_approximate_equal(registry, naturals);
  add_approximate_equal(registry, complex);
  registry.add<BinaryKernel<And>>("LogicalAnd");
  registry.add<BinaryKernel<Or>>("LogicalOr");
  registry.add<UnaryKernel<Not>>("LogicalNot");
}

}  // namespace tagflow::devices
