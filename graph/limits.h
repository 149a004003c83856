// Limits for graphs from untrusted sources.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/node_name.h"

namespace tagflow::graph {

class Budget;  // graph/budget.h

// The most inputs, and the most outputs, of a node that can run; writers refuse
// nodes with more inputs.
inline constexpr size_t kMaxNodePorts = (size_t(1) << 16) - 1;

// Graphs and files beyond these bounds are rejected with ResourceExhausted. The
// defaults are far above the needs of real graphs.
struct Limits {
  // Size of a file. Parsing it may need about 60 times as much memory.
  size_t max_bytes = size_t(1) << 29;
  // Nodes of a graph, including those of its functions.
  size_t max_nodes = size_t(1) << 20;
  // Name of a node, function, attribute or frame. At most kMaxNameLength.
  size_t max_name_length = kMaxNameLength;
  // Nesting of function-valued attributes inside one another.
  int max_attr_depth = 16;
  // Memory of all constants of a file together: a few bytes of a file can
  // define a terabyte of zeros.
  int64_t max_tensor_bytes = int64_t(1) << 31;
  // Of these, the memory of elements that repeat the last value that the file
  // gives for their constant.
  int64_t max_repeated_bytes = int64_t(1) << 28;
  // Depth of nested function calls, without recursion.
  int max_function_depth = 256;
  // Depth of nested loops.
  int max_frame_depth = 64;
  // Asked whether the work may go on; null: it may. Outlives the call that the
  // limits are passed to.
  Budget* budget = nullptr;
};

}  // namespace tagflow::graph
