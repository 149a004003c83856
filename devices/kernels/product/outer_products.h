// Sums of outer products: the gradients of matrices that multiply rows.
#pragma once

#include <span>

#include "devices/kernel.h"

namespace tagflow::devices {

// The same number of rows of a matrix with m columns and of one with n columns.
struct RowPairs {
  const float* a = nullptr;
  const float* b = nullptr;
  int64_t rows = 0;
};

// Sums a[r, i] * b[r, j] over all rows r, in their order, and adds the result
// to sum[i, j]; on all workers if that pays. ResourceExhausted; throws
// std::bad_alloc; in both cases part of the sum may have been added. REQUIRES:
// m and n are not 0, and the sum overlaps no factor.
Status add_outer_products(const KernelContext& context,
                          std::span<const RowPairs> pairs, int64_t m, int64_t n,
                          float* sum);

}  // namespace tagflow::devices
