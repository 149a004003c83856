// What a graph from outside may ask for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/node_name.h"

namespace tagflow::graph {

// Bounds on graphs and their files; beyond them they are refused with
// ResourceExhausted. The defaults are far above real graphs.
struct Limits {
  // Of a file. Its messages need up to some 60 times as much memory.
  size_t max_bytes = size_t(1) << 29;
  // Nodes of a graph, those of its functions included.
  size_t max_nodes = size_t(1) << 20;
  // Of a node, function, attribute or frame. At most kMaxNameLength.
  size_t max_name_length = kMaxNameLength;
  // A function's name with attributes that name functions with attributes ...
  int max_attr_depth = 16;
  // All constants of a file together, in memory: a few bytes of a file can
  // say "a terabyte of zeros".
  int64_t max_tensor_bytes = int64_t(1) << 31;
  // Functions that call functions, recursion apart.
  int max_function_depth = 256;
  // Loops inside loops.
  int max_frame_depth = 64;
};

}  // namespace tagflow::graph
