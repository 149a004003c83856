// Integer parameters of array ops: shapes, axes, indices. They are given as
// tensors of several integer types.
#pragma once

#include <cstdint>

#include "graph/shape.h"
#include "graph/tensor.h"

namespace tagflow::graph {

// Element i as an int64_t; 0 if the type is not one of int8 to int64 or uint8
// to uint32. REQUIRES: 0 <= i < num_elements().
int64_t index_at(const Tensor& tensor, int64_t i);

// All elements, row-major.
Shape::Dims index_elements(const Tensor& tensor);

}  // namespace tagflow::graph
