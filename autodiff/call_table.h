// CallTable: what is known of the functions that run in frames of their own,
// which recursive ones do, and of their gradients.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tagflow::autodiff {

// One such function f: Note [Gradients of recursion] in recursive_calls.h.
struct CalledFunction {
  FunctionRef function;
  // By argument, then by result of f: whether there is a path of edges that
  // have a derivative.
  std::vector<std::vector<bool>> reaches = {};
  // Of the gradient by each argument; kInvalid where it has none. That by a
  // variable's handle is of the type of the variable.
  std::vector<DataType> types = {};
  // The arguments whose gradients are asked for, given those of these results.
  std::vector<bool> xs = {};
  std::vector<bool> ys = {};
  // The names of f' and of its gradient; empty where nobody asks for these.
  std::string extended = {};
  std::string gradient = {};

  bool is_wanted() const { return !extended.empty(); }
  // Whether a result of f or f' depends on an argument.
  bool has_path(size_t argument, size_t result) const {
    return result < reaches[argument].size() && reaches[argument][result];
  }
};

// Of one graph and all that its calls reach. Thread-compatible.
class CallTable {
 public:
  // What the node calls in a frame of its own, as f or as f'; null where it is
  // no such call, or of a function that is not in the table.
  CalledFunction* find(const graph::Node& call);
  const CalledFunction* find(const graph::Node& call) const;

  // A deque, since pointers to what is in it are kept.
  std::deque<CalledFunction> functions = {};
};

}  // namespace tagflow::autodiff
