// Batches of matrix products between tensors, sharded over workers: the common
// part of MatMul, BatchMatMul and Einsum.
#pragma once

#include <boost/container/small_vector.hpp>
#include <utility>

#include "devices/kernel.h"

namespace tagflow::devices {

// How a factor's last two dimensions are read.
struct FactorForm {
  bool transposed = false;
  bool conjugated = false;  // of complex types; no effect for others
};

// A batch of products. Matrices of a tensor follow one another; the sizes are
// those after transposition. The batch has its own dimensions; along each a
// factor moves on to its next matrices or repeats.
struct ProductBatch {
  struct Dim {
    int64_t size;
    int64_t a_step, b_step;  // in matrices; 0 where the factor repeats
  };

  int64_t m = 0, n = 0, k = 0;
  FactorForm a_form, b_form;
  boost::container::small_vector<Dim, 4> dims;  // outermost first

  // The number of products. REQUIRES: it does not overflow.
  int64_t count() const;
  // The matrices of a and b that are multiplied in product i.
  std::pair<int64_t, int64_t> factors(int64_t i) const;
};

// Computes the batch into `out`. The element types of a and b may differ from
// each other and from out's if their values convert exactly enough: int8 and
// uint8 to int32, for instance. 16-bit floats are multiplied and summed in
// float.
// REQUIRES: a, b and out have the elements that the batch says; all types are
// numeric, and either all or none complex.
Status multiply(KernelContext& context, const ProductBatch& batch,
                const Tensor& a, const Tensor& b, Tensor& out);

// Adds one product to `sum`. The stored factors may have more rows than the
// product. REQUIRES: a, b and sum are all of float, or all of double, and have
// the elements; the batch has no dimensions; nobody else holds `sum`.
Status add_product(const KernelContext& context, const ProductBatch& product,
                   const Tensor& a, const Tensor& b, Tensor& sum);

// Estimated nanoseconds of `count` products, conversions included.
double multiply_cost(DataType dtype, int64_t count, int64_t m, int64_t n,
                     int64_t k);

}  // namespace tagflow::devices
