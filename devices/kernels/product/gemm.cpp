#include "devices/kernels/product/gemm.h"

#include <algorithm>
#include <type_traits>

namespace tagflow::devices {
namespace {

// The plain triple loop, whose inner loop runs along rows of b and c.
// Integers are computed as unsigned ones, whose overflow is defined.
template <class T>
void row_loop_gemm(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b,
                   T* c, int64_t c_stride, bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * c_stride;
    if (!accumulate) std::fill_n(row, n, T(0));
    for (int64_t l = 0; l < k; ++l) {
      const T factor =
          a.transposed ? a.data[l * a.stride + i] : a.data[i * a.stride + l];
      if (b.transposed) {
        for (int64_t j = 0; j < n; ++j)
          row[j] = T(row[j] + factor * b.data[j * b.stride + l]);
      } else {
        const T* from = b.data + l * b.stride;
        for (int64_t j = 0; j < n; ++j) row[j] = T(row[j] + factor * from[j]);
      }
    }
  }
}

// An unsigned type whose arithmetic is not promoted to int.
template <class T>
using Wrapping = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <class T>
void integer_gemm(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b,
                  T* c, int64_t c_stride, bool accumulate) {
  using U = Wrapping<T>;
  // int * int of two uint16_t could overflow int.
  using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, U>;
  const U* from_a = reinterpret_cast<const U*>(a.data);
  const U* from_b = reinterpret_cast<const U*>(b.data);
  U* to = reinterpret_cast<U*>(c);
  for (int64_t i = 0; i < m; ++i) {
    U* row = to + i * c_stride;
    if (!accumulate) std::fill_n(row, n, U(0));
    for (int64_t l = 0; l < k; ++l) {
      const Wide factor = from_a[i * a.stride + l];
      const U* from = from_b + l * b.stride;
      for (int64_t j = 0; j < n; ++j) row[j] = U(row[j] + factor * from[j]);
    }
  }
}

// Below this many multiplications a plain loop is faster than the overhead of a
// library; below the second limit, Eigen's product beats oneDNN's.
constexpr int64_t kLoopSize = 512;
constexpr int64_t kEigenSize = 32 * 32 * 32;

}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b, T* c,
          int64_t c_stride, bool accumulate) {
  if (m == 0 || n == 0 || (k == 0 && accumulate)) return;
  if constexpr (std::is_integral_v<T>) {
    integer_gemm(m, n, k, a, b, c, c_stride, accumulate);
  } else if constexpr (std::is_floating_point_v<T>) {
    // In double: the product of the sizes may exceed int64_t.
    const double multiplications = double(m) * double(n) * double(k);
    if (multiplications <= kLoopSize)
      row_loop_gemm(m, n, k, a, b, c, c_stride, accumulate);
    else if (std::is_same_v<T, double> || multiplications <= kEigenSize)
      eigen_gemm(m, n, k, a, b, c, c_stride, accumulate);
    else if constexpr (std::is_same_v<T, float>)
      large_float_gemm(m, n, k, a, b, c, c_stride, accumulate);
  }
}

double gemm_cost(DataType dtype, int64_t m, int64_t n, int64_t k) {
  // Multiplications per nanosecond, for AVX-512.
  double rate = 50;
  switch (dtype) {
    case DataType::kDouble:
      rate = 20;
      break;
    case DataType::kComplex64:
      rate = 8;
      break;
    case DataType::kComplex128:
      rate = 4;
      break;
    case DataType::kInt64:
    case DataType::kUInt64:
      rate = 2;
      break;
    default:
      if (is_integer(dtype)) rate = 6;
  }
  // A matrix times a vector is read once, at the speed of memory.
  if (m == 1 || n == 1) rate /= 10;
  return 50 + double(m) * double(n) * double(k) / rate;
}

#define TAGFLOW_GEMM(T)                                                   \
  template void gemm(int64_t, int64_t, int64_t, Factor<T>, Factor<T>, T*, \
                     int64_t, bool);
TAGFLOW_GEMM(float)
TAGFLOW_GEMM(double)
TAGFLOW_GEMM(int8_t)
TAGFLOW_GEMM(int16_t)
TAGFLOW_GEMM(int32_t)
TAGFLOW_GEMM(int64_t)
TAGFLOW_GEMM(uint8_t)
TAGFLOW_GEMM(uint16_t)
TAGFLOW_GEMM(uint32_t)
TAGFLOW_GEMM(uint64_t)
#undef TAGFLOW_GEMM

}  // namespace tagflow::devices
