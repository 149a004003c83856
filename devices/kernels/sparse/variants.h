// Sparse and ragged tensors as variants, also for kernels/dataset/: what
// DeserializeSparse and RaggedTensorFromVariant read.
#pragma once

#include <vector>

#include "devices/kernels/sparse/batch.h"
#include "graph/allocator.h"

namespace tagflow::devices {

// A vector of three variants: indices, values and shape. ResourceExhausted
// without memory for it.
Result<Tensor> sparse_variants(const SparseItem& item, Allocator& allocator);

// A scalar. `splits` has those of each level, the outermost first.
// ResourceExhausted without memory for it.
Result<Tensor> ragged_variant(std::vector<Tensor> splits, Tensor values,
                              Allocator& allocator);

}  // namespace tagflow::devices
