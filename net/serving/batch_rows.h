// Rows of tensors: how several requests become one run, and its results theirs
// again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "net/serving/request.h"

namespace tagflow::net::serving {

// The first dimension of all tensors. InvalidArgument if one has none, or they
// differ, or there are no rows or no tensors. Thread-safe.
Result<int64_t> count_rows(const Tensors& tensors);

// "x:float[2,3]" of each tensor without its first dimension: only tensors that
// agree in this can be joined. REQUIRES: each has a first dimension
std::string row_types(const Tensors& tensors);

// The rows of all parts, in order, and then the last one again until there are
// `rows`. ResourceExhausted without memory. REQUIRES: the parts have the same
// names and row_types(), and no more rows
Result<Tensors> join_rows(std::span<const Tensors* const> parts, int64_t rows);

// So many rows from `begin` on. InvalidArgument if a tensor has not `all` rows.
// ResourceExhausted without memory. REQUIRES: 0 <= begin, begin + count <= all
Result<Tensors> cut_rows(const Tensors& tensors, int64_t all, int64_t begin,
                         int64_t count);

}  // namespace tagflow::net::serving
