// Makes registered kernels from element-wise ops, which are written once per op
// as a template over the element type.
#pragma once

#include <algorithm>
#include <string>

#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/elementwise.h"
#include "devices/kernels/elementwise/narrow.h"
#include "graph/float16.h"

namespace tagflow::devices {

template <class... Ts>
struct Types {};

using FloatingTypes = Types<float, double, Half, BFloat16>;
using ComplexTypes = Types<Complex64, Complex128>;
using SignedIntegers = Types<int32_t, int64_t, int8_t, int16_t>;
using UnsignedIntegers = Types<uint8_t, uint16_t, uint32_t, uint64_t>;

template <class T>
inline constexpr bool kIsNarrow =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Op<float> on 16-bit floats: computed in float, rounded to nearest even.
template <template <class> class Op, class T>
struct Narrow {
  using Wide = Op<float>;
  using In = T;
  using Out = std::conditional_t<std::is_same_v<typename Wide::Out, float>, T,
                                 typename Wide::Out>;
  static constexpr double kCost = Wide::kCost + 0.3;

  static Out apply(T a) { return Out(Wide::apply(float(a))); }
  static Out apply(T a, T b) { return Out(Wide::apply(float(a), float(b))); }

  // Piece by piece, through float arrays.
  static void apply_row(const T* x, Out* z, int64_t n) {
    float a[kPiece];
    typename Wide::Out result[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = std::min(kPiece, n - i);
      widen(x + i, a, m);
      run_row<Wide>(a, result, m);
      finish(result, z + i, m);
    }
  }
  static void apply_row(const T* x, bool x_moves, const T* y, bool y_moves,
                        Out* z, int64_t n) {
    float a[kPiece], b[kPiece];
    typename Wide::Out result[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = std::min(kPiece, n - i);
      if (x_moves || i == 0) widen(x + i, a, x_moves ? m : 1);
      if (y_moves || i == 0) widen(y + i, b, y_moves ? m : 1);
      run_row<Wide>(a, x_moves, b, y_moves, result, m);
      finish(result, z + i, m);
    }
  }

 private:
  static constexpr int64_t kPiece = 256;

  static void finish(const float* x, T* z, int64_t n) { narrow(x, z, n); }
  static void finish(const bool* x, bool* z, int64_t n) {
    std::copy(x, x + n, z);
  }
};

// Op<T>, or for 16-bit floats the op that computes in float.
template <template <class> class Op, class T>
struct ResolveOp {
  using type = Op<T>;
};
template <template <class> class Op, class T>
requires kIsNarrow<T>
struct ResolveOp<Op, T> {
  using type = Narrow<Op, T>;
};

template <class K>
Result<std::unique_ptr<Kernel>> make_kernel(const KernelInfo& info) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(info));
}

// A kernel of `op` for nodes whose attribute "T" is `dtype`.
void add_kernel(KernelRegistry& registry, const char* op, DataType dtype,
                KernelMaker maker);

// `Kind` (UnaryKernel, BinaryKernel, ...) of Op for each of the types.
template <template <class> class Kind, template <class> class Op, class... Ts>
void add_elementwise(KernelRegistry& registry, const char* op, Types<Ts...>) {
  (add_kernel(registry, op, kDataTypeOf<Ts>,
              make_kernel<Kind<typename ResolveOp<Op, Ts>::type>>),
   ...);
}
template <template <class> class Op, class... Lists>
void add_unary(KernelRegistry& registry, const char* op, Lists... types) {
  (add_elementwise<UnaryKernel, Op>(registry, op, types), ...);
}
template <template <class> class Op, class... Lists>
void add_binary(KernelRegistry& registry, const char* op, Lists... types) {
  (add_elementwise<BinaryKernel, Op>(registry, op, types), ...);
}
// A binary op whose operands must have one shape.
template <template <class> class Op, class... Lists>
void add_alike(KernelRegistry& registry, const char* op, Lists... types) {
  (add_elementwise<AlikeKernel, Op>(registry, op, types), ...);
}

// Integers as unsigned ones of at least 32 bits, whose arithmetic wraps around
// instead of being undefined; other types unchanged.
template <class T>
auto wrap(T x) {
  if constexpr (std::is_integral_v<T>) {
    return std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>(x);
  } else {
    return x;
  }
}

template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

// The product, wrapping around; complex numbers by the textbook formula,
// without the library's slow handling of infinities.
template <class T>
T multiply(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(),
            a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return T(wrap(a) * wrap(b));
  }
}

}  // namespace tagflow::devices
