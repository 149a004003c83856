// Eigen's matrix products: for double, for small float matrices, and for all if
// there is no other back end. They have their own file, because they take long
// to compile.
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 falsely reports its own AVX-512 intrinsics as uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <Eigen/Core>

#include "devices/kernels/product/gemm.h"

namespace tagflow::devices {
namespace {

template <class T, int kOrder>
using Stored =
    Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, kOrder>,
               Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Target = Eigen::Map<
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
    Eigen::Unaligned, Eigen::OuterStride<>>;

// Calls body with the factor as an Eigen matrix of the given size; the
// transpose of a row-major matrix is a column-major one.
template <class T, class Body>
void with_matrix(Factor<T> f, int64_t rows, int64_t columns, Body&& body) {
  const Eigen::OuterStride<> stride(f.stride);
  if (f.transposed)
    body(Stored<T, Eigen::ColMajor>(f.data, rows, columns, stride));
  else
    body(Stored<T, Eigen::RowMajor>(f.data, rows, columns, stride));
}

}  // namespace

template <class T>
void eigen_gemm(int64_t m, int64_t n, int64_t k, Factor<T> a, Factor<T> b, T* c,
                int64_t c_stride, bool accumulate) {
  Target<T> to(c, m, n, Eigen::OuterStride<>(c_stride));
  with_matrix(a, m, k, [&](const auto& left) {
    with_matrix(b, k, n, [&](const auto& right) {
      if (!accumulate) to.setZero();
      to.noalias() += left * right;
    });
  });
}

template void eigen_gemm(int64_t, int64_t, int64_t, Factor<float>,
                         Factor<float>, float*, int64_t, bool);
template void eigen_gemm(int64_t, int64_t, int64_t, Factor<double>,
                         Factor<double>, double*, int64_t, bool);

}  // namespace tagflow::devices
