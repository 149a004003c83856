// Matrix products on the calling thread; dense kernels spend nearly all their
// time here. A back end (oneDNN or Eigen, chosen when the build is configured)
// does the large float products.
#pragma once

#include <cstdint>

#include "graph/dtype.h"

namespace tagflow::devices {

// A row-major factor of a product. `stride` is the distance between the
// starts of consecutive stored rows, at least their length. If `transposed`
// is set the product uses the transpose of the stored matrix.
template <class T>
struct Factor {
  const T* data;
  int64_t stride;
  bool transposed = false;
};

// c = a b, or c += a b if `accumulate` is set; a is m x k, b is k x n, c is
// m x n with rows `c_stride` apart. Integers wrap around. T is float, double,
// a complex type or an integer of 8 to 64 bits; only float and double accept
// transposed factors. k may be 0; m and n too.
// REQUIRES: c overlaps neither factor. Thread-safe.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b, T* c,
          int64_t c_stride, bool accumulate = false);

// gemm() with Eigen; for float and double.
template <class T>
void eigen_gemm(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b, T* c,
                int64_t c_stride, bool accumulate);

// gemm() of float matrices large enough to be worth a library call. Defined by
// the back end. REQUIRES: m, n and k are at least 1.
void large_float_gemm(int64_t m, int64_t n, int64_t k, Factor<float> a,
                      Factor<float> b, float* c, int64_t c_stride,
                      bool accumulate);

// Estimated nanoseconds of an m x n x k product of the element type.
double gemm_cost(DataType dtype, int64_t m, int64_t n, int64_t k);

}  // namespace tagflow::devices
