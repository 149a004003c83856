// Batches of sparse tensors: many of one rank as one, whose first dimensions
// number them; and the rows of one as tensors.
#pragma once

#include <span>
#include <vector>

#include "devices/kernels/sparse/args.h"

namespace tagflow::devices {

// One of a batch.
struct SparseItem {
  Tensor indices, values, shape;
};

// InvalidArgument unless the first three inputs are a matrix and two vectors.
Status check_sparse_ports(const KernelContext& context);

// The rows of the sparse tensor of the node along its first dimension, in their
// order; rows without elements, too. Elements may be in any order.
// InvalidArgument for less than two dimensions; ResourceExhausted for more than
// kMostItems rows.
inline constexpr int64_t kMostItems = int64_t{1} << 24;
Result<std::vector<SparseItem>> sparse_rows(KernelContext& context);

// Sets outputs 0 to 2 to the batch, whose first dimensions are `leading`, of
// values of `dtype`. InvalidArgument unless each item is a sparse tensor of
// such values, and all are of one rank, and there is one. REQUIRES: there is an
// item for each element of `leading`.
Status set_batch(KernelContext& context, std::span<const SparseItem> items,
                 const Shape& leading, DataType dtype);

}  // namespace tagflow::devices
