// Partitioners: the number of parts into which VariableScope::get() splits a
// variable that is, for example, too large for a device. Each part is a
// variable.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/status.h"

namespace tagflow::graph {

// For a variable of that shape and type: the number of parts along each
// dimension; at most one of them is more than 1.
using Partitioner =
    std::function<Result<std::vector<int64_t>>(const Shape&, DataType)>;

namespace partitioners {

// `parts` along dimension `axis`, at most as many as it has rows. The
// partitioner returns InvalidArgument unless `parts` is at least 1 and the
// dimension exists; so do those below.
Partitioner fixed_size(int64_t parts, int axis = 0);

struct MaxBytes {
  int64_t bytes = 0;  // of a part, which has at least one row
  int axis = 0;
  int64_t bytes_per_string = 16;  // assumed size of a string element
  int64_t max_parts = 0;          // 0: any number
};
// As few parts as that allows.
Partitioner max_bytes(MaxBytes options);

struct MaxParts {
  int64_t parts = 1;
  int axis = 0;
  int64_t min_bytes = 256 << 10;  // of each part except the last
  int64_t bytes_per_string = 16;
};
// As many parts as that allows.
Partitioner max_parts(MaxParts options);

}  // namespace partitioners

}  // namespace tagflow::graph
