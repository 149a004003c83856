// Sums, products, extrema.
#include "devices/broadcast.h"
#include "devices/kernels/elementwise/registration.h"

namespace tagflow::devices {

namespace {

template <class T>
struct Add : Elementwise<T> {
  static T apply(T a, T b) { return T(wrap(a) + wrap(b)); }
};

template <class T>
struct Sub : Elementwise<T> {
  static T apply(T a, T b) { return T(wrap(a) - wrap(b)); }
};

template <class T>
struct Mul : Elementwise<T> {
  static T apply(T a, T b) { return multiply(a, b); }
};

// (a-b) times the conjugate of (a-b) for complex numbers.
template <class T>
struct SquaredDifference : Elementwise<T> {
  static T apply(T a, T b) {
    const T difference = T(wrap(a) - wrap(b));
    if constexpr (kIsComplex<T>) {
      return std::norm(difference);
    } else {
      return multiply(difference, difference);
    }
  }
};

// The first operand if both are equal; NaN if one of them is.
template <class T>
struct Maximum : Elementwise<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a >= b || a != a ? a : b;
    } else {
      return a >= b ? a : b;
    }
  }
};

template <class T>
struct Minimum : Elementwise<T> {
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a <= b || a != a ? a : b;
    } else {
      return a <= b ? a : b;
    }
  }
};

struct Concatenate : Elementwise<std::string> {
  static constexpr double kCost = 30;
  static std::string apply(const std::string& a, const std::string& b) {
    return a + b;
  }
};

// Checks that there is memory for the strings before they are made.
class ConcatenateKernel final : public BinaryKernel<Concatenate> {
 public:
  using BinaryKernel::BinaryKernel;

  Status compute(KernelContext& context) const override {
    if (context.allocator().counts_outside())
      TAGFLOW_RETURN_IF_ERROR(check_joined_text(context));
    return BinaryKernel::compute(context);
  }

 private:
  static Status check_joined_text(const KernelContext& context) {
    const Shape x = context.input(0).shape(), y = context.input(1).shape();
    const Result<Shape> shape = broadcast_shapes({&x, &y});
    if (!shape.ok()) return {};  // compute() reports it
    double bytes = 0;
    for (const Tensor& input : context.inputs()) {
      double own = 0;
      for (const std::string& text : input.flat<std::string>())
        own += double(text.size());
      // Broadcasting repeats all elements equally often.
      if (own > 0)
        bytes +=
            own * double(shape->num_elements()) / double(input.num_elements());
    }
    MemoryCharge room;
    return context.count(room, size_t(std::min(bytes, 0x1p62)),
                         [] { return "the joined text"; });
  }
};

}  // namespace

void register_arithmetic_kernels(KernelRegistry& registry) {
  const FloatingTypes floating;
  const SignedIntegers integers;
  const UnsignedIntegers naturals;
  const ComplexTypes complex;
  for (const char* op : {"AddV2", "Add"})
    add_binary<Add>(registry, op, floating, integers, naturals, complex);
  add_binary<Sub>(registry, "Sub", floating, integers, naturals, complex);
  add_binary<Mul>(registry, "Mul", floating, integers, naturals, complex);
  add_binary<SquaredDifference>(registry, "SquaredDifference", floating,
                                Types<int32_t, int64_t>(), complex);
  add_binary<Maximum>(registry, "Maximum", floating, integers, naturals);
  add_binary<Minimum>(registry, "Minimum", floating, integers, naturals);
  add_kernel(registry, "Add", DataType::kString,
             make_kernel<ConcatenateKernel>);
}

}  // namespace tagflow::devices
