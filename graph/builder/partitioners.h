// Partitioners: into how many parts VariableScope::get() makes a
// variable, each a variable of its own, as for one that is too large for a
// device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/status.h"

namespace tagflow::graph {

// For a variable of that shape and type: the number of parts along each
// dimension, at most one of which is more than 1.
using Partitioner =
    std::function<Result<std::vector<int64_t>>(const Shape&, DataType)>;

namespace partitioners {

// `parts` along dimension `axis`, or as many as it has rows. InvalidArgument,
// when it is asked, unless there are at least 1 part and that dimension; so of
// those below.
Partitioner fixed_size(int64_t parts, int axis = 0);

struct MaxBytes {
  int64_t bytes = 0;  // of a part, but that it has one row at least
  int axis = 0;
  int64_t bytes_per_string = 16;  // counted for an element that is a string
  int64_t max_parts = 0;          // 0: any number
};
// As few parts as that allows.
Partitioner max_bytes(MaxBytes options);

struct MaxParts {
  int64_t parts = 1;
  int axis = 0;
  int64_t min_bytes = 256 << 10;  // of a part, but the last
  int64_t bytes_per_string = 16;
};
// As many parts as that allows.
Partitioner max_parts(MaxParts options);

}  // namespace partitioners

}  // namespace tagflow::graph
