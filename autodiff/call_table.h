// CallTable: facts about the functions that run in frames of their own, as
// recursive ones do, and about their gradients.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "graph/node.h"

namespace tagflow::autodiff {

// One such function f (Note [Gradients of recursion] in recursive_calls.h).
struct CalledFunction {
  FunctionRef function;
  // By argument, then by result of f: whether there is a path of edges that
  // have a derivative.
  std::vector<std::vector<bool>> reaches = {};
  // The type of the gradient by each argument; kInvalid if there is none.
  // The gradient by a variable's handle has the type of the variable.
  std::vector<DataType> types = {};
  // The arguments whose gradients are requested, given those of these results.
  std::vector<bool> xs = {};
  std::vector<bool> ys = {};
  // The names of f' and of its gradient; empty if they are not needed.
  std::string extended = {};
  std::string gradient = {};

  bool is_wanted() const { return !extended.empty(); }
  // Whether a result of f or f' depends on an argument.
  bool has_path(size_t argument, size_t result) const {
    return result < reaches[argument].size() && reaches[argument][result];
  }
};

// The table of one graph and all functions that its calls reach.
// Thread-compatible.
class CallTable {
 public:
  // The function that the node calls in a frame of its own, as f or as f'; null
  // if the node is not such a call, or the table does not have the function.
  CalledFunction* find(const graph::Node& call);
  const CalledFunction* find(const graph::Node& call) const;

  // A deque, since pointers to its elements are kept.
  std::deque<CalledFunction> functions = {};
};

}  // namespace tagflow::autodiff
