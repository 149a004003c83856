#include <bit>
#include <limits>
#include <type_traits>

#include "devices/kernels/elementwise/cast.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// Towards zero; the smallest number for NaN and values that do not fit, as CPUs
// do; C++ leaves these cases undefined.
template <class Int, class Real>
Int truncate_to(Real x) {
  constexpr Real kLeast = Real(std::numeric_limits<Int>::min());
  const bool fits = x >= kLeast && x < -kLeast;
  return fits ? Int(x) : std::numeric_limits<Int>::min();
}

template <class Real>
uint64_t truncate_to_uint64(Real x) {
  constexpr Real kHalf = Real(uint64_t(1) << 63);
  if (!(x >= kHalf)) return uint64_t(truncate_to<int64_t>(x));
  return x < 2 * kHalf ? uint64_t(x) : uint64_t(1) << 63;
}

template <class D, class S>
D convert(S x) {
  if constexpr (std::is_same_v<D, bool>) {
    return x != S(0);
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    if constexpr (std::is_same_v<D, uint64_t>) {
      return truncate_to_uint64(x);
    } else if constexpr (sizeof(D) < 4 || std::is_same_v<D, int32_t>) {
      return D(truncate_to<int32_t>(x));
    } else {
      return D(truncate_to<int64_t>(x));
    }
  } else {
    return D(x);
  }
}

template <class S, class D>
void cast_row(const void* x, void* z, int64_t n) {
  const auto* from = static_cast<const S*>(x);
  auto* to = static_cast<D*>(z);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = convert<D>(from[i]);
}

template <class S, class D>
bool cast_scalar(const Tensor* inputs, Tensor& output) {
  if (!inputs[0].is_inline_scalar()) return false;
  new (&output)
      Tensor(Tensor::scalar<D>(convert<D>(*inputs[0].inline_data<S>())));
  return true;
}

// Calls visit(TypeTag<S>, TypeTag<D>) for two types of those above.
template <class F>
void visit_cast(DataType from, DataType to, F&& visit) {
  const auto visit_core = [](DataType type, auto&& f) {
    return visit_integer(type, f) ||
           tagflow::detail::visit_among<float, double, bool>(type, f);
  };
  visit_core(from, [&]<class S>(TypeTag<S> s) {
    visit_core(to, [&]<class D>(TypeTag<D> d) { visit(s, d); });
  });
}

// Clears the last `bits` bits of each mantissa.
template <class Real, class Bits, int kBits>
void clear_row(const void* x, void* z, int64_t n) {
  const auto* from = static_cast<const Real*>(x);
  auto* to = static_cast<Real*>(z);
  constexpr Bits kMask = ~((Bits(1) << kBits) - 1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    to[i] = std::bit_cast<Real>(std::bit_cast<Bits>(from[i]) & kMask);
}

}  // namespace

CastRow core_cast_row(DataType from, DataType to) {
  CastRow row = nullptr;
  visit_cast(from, to, [&]<class S, class D>(TypeTag<S>, TypeTag<D>) {
    row = cast_row<S, D>;
  });
  return row;
}

ScalarFunction core_cast_scalar(DataType from, DataType to) {
  ScalarFunction scalar = nullptr;
  visit_cast(from, to, [&]<class S, class D>(TypeTag<S>, TypeTag<D>) {
    scalar = cast_scalar<S, D>;
  });
  return scalar;
}

CastRow truncate_row(DataType from, DataType to) {
  // Bits of the mantissas: 52 of double, 23 of float, 10 of half, 7 of
  // bfloat16.
  if (from == DataType::kFloat) {
    if (to == DataType::kHalf) return clear_row<float, uint32_t, 23 - 10>;
    if (to == DataType::kBFloat16) return clear_row<float, uint32_t, 23 - 7>;
  } else if (from == DataType::kDouble) {
    if (to == DataType::kFloat) return clear_row<double, uint64_t, 52 - 23>;
    if (to == DataType::kHalf) return clear_row<double, uint64_t, 52 - 10>;
    if (to == DataType::kBFloat16) return clear_row<double, uint64_t, 52 - 7>;
  }
  return nullptr;
}

}  // namespace tagflow::devices
