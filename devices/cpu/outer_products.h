// Sums of outer products: the gradients of what rows were multiplied by.
#pragma once

#include <span>

#include "devices/kernel.h"

namespace tagflow::devices {

// As many rows of a matrix [rows, m] as of another one, [rows, n].
struct RowPairs {
  const float* a = nullptr;
  const float* b = nullptr;
  int64_t rows = 0;
};

// sum[i, j] += a[r, i] * b[r, j] for all rows, in their order; on all workers
// where it is worth it. ResourceExhausted; throws std::bad_alloc. REQUIRES: m
// and n are not 0.
Status add_outer_products(const KernelContext& context,
                          std::span<const RowPairs> pairs, int64_t m, int64_t n,
                          float* sum);

}  // namespace tagflow::devices
