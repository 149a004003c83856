// Conditionals and loops on lists of tensors (structured_control_flow.h has
// those on structures), built from Switch, Merge, Enter, Exit, NextIteration
// and LoopCond. They can be nested to any depth.
//
//   Outputs r = while_loop(
//       s, [](const Scope& s, const Outputs& v) { return less(s, v[0], 10); },
//       [&](const Scope& s, const Outputs& v) -> Outputs {
//         return {add(s, v[0], 1), mul(s, v[1], w)};
//       },
//       {0, x});
//
// The functions must build their ops with the scope that they receive; they may
// use any tensor of the graph that is not inside another loop. Each is called
// once, immediately, and not at all after an error.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::graph {

using BranchFn = std::function<Outputs(const Scope&)>;

// Runs one of the branches. They must return the same number of outputs (at
// least one), with pairwise the same types; an operation counts as a bool that
// exists once the operation has run. Each output is a Merge of the branches'
// outputs (false first). The whole conditional waits for the control
// dependencies of the scope. `pred` must be a bool scalar, otherwise the scope
// fails.
Outputs cond(const Scope& scope, const Input& pred, const BranchFn& then_fn,
             const BranchFn& else_fn);

struct CaseOptions {
  // At most one predicate may be true; checked when the graph runs.
  bool exclusive = false;
};

// Runs the branch of the first predicate that is true, or the default. Without
// a default (null), one must be true, which is checked when the graph runs. The
// predicates are bool scalars; all of them are computed.
Outputs case_(const Scope& scope,
              const std::vector<std::pair<Input, BranchFn>>& cases,
              const BranchFn& default_fn, const CaseOptions& options = {});

// Runs the branch with that number. If it is out of range, runs the default or,
// without one (null), the last branch. `index` is an int32 or int64 scalar.
// Takes about log2(branches.size()) comparisons.
Outputs switch_case(const Scope& scope, const Input& index,
                    const std::vector<BranchFn>& branches,
                    const BranchFn& default_fn = {});

using PredicateFn = std::function<Output(const Scope&, const Outputs& vars)>;
using BodyFn = std::function<Outputs(const Scope&, const Outputs& vars)>;

// Which values of a loop are saved for gradients, instead of those of all
// iterations. The others are computed again, in segments of the loop.
struct Save {
  enum class Kind : uint8_t { kAll, kEvery, kLog };
  Kind kind = Kind::kAll;
  Input k = {};

  // Saves the variables of every k-th iteration; k is an int32 or int64 scalar,
  // which may be computed. Less than 1 counts as 1. If k is the square root of
  // the number of iterations, memory is minimal, and each iteration is computed
  // twice.
  static Save every(Input k) { return {Kind::kEvery, std::move(k)}; }
  // Saves the variables of about log2(n) of n iterations at a time; each
  // iteration is computed log2(n) / 2 times.
  static Save log() { return {Kind::kLog, {}}; }
};

// Attributes for this in the graph: of the LoopCond "every", with k if it is a
// constant, or "log"; of the Enter of any other k, true.
inline constexpr std::string_view kSaveAttr = "_save";
inline constexpr std::string_view kSaveEveryAttr = "_save_every";

struct WhileOptions {
  int64_t parallel_iterations = 10;  // at least 1
  // An int32 or int64 scalar; unbounded if omitted. Adds a counter to the
  // loop's variables, but not to its results.
  Input maximum_iterations = {};
  // The shape of each variable in every iteration. If omitted, the shapes with
  // which the variables enter.
  std::vector<PartialShape> shape_invariants = {};
  // The shapes by path, for variables with other shapes: "state.h" of a
  // structure (structured_control_flow.h), "[1]" of a list of variables.
  std::map<std::string, PartialShape> shapes = {};
  // The values to save for gradients of the loop.
  Save save = {};
  // Used if the scope has no named(); default "while".
  std::string name = {};
  // Accepted for compatibility; has no effect.
  bool swap_memory = false;
};

// Repeats `body` while `predicate` is true, and returns the last values of the
// variables. At least one variable is required. The body must return one tensor
// for each, of its type and with a shape that is known to satisfy its
// invariant; otherwise the scope fails with the variable and the reason.
Outputs while_loop(const Scope& scope, const PredicateFn& predicate,
                   const BodyFn& body, const Inputs& vars,
                   const WhileOptions& options = {});

}  // namespace tagflow::graph
