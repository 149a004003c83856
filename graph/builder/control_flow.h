// Conditionals and loops of lists of tensors (those of structures are in
// structured_control_flow.h), built of the primitives Switch, Merge, Enter,
// Exit, NextIteration and LoopCond. They nest to any depth.
//
//   Outputs r = while_loop(
//       s, [](const Scope& s, const Outputs& v) { return less(s, v[0], 10); },
//       [&](const Scope& s, const Outputs& v) -> Outputs {
//         return {add(s, v[0], 1), mul(s, v[1], w)};
//       },
//       {0, x});
//
// The functions must build their ops with the scope that they are given; they
// may use any tensor of the graph that is not inside of another loop. They are
// called once, at once, and not at all after an error.
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
// least one), of pairwise the same types; an operation counts as a bool that
// is there when the operation has run. Each output is a Merge of the branches'
// (false first). What the scope waits for, the whole conditional waits for.
// REQUIRES of the graph: `pred` is a bool scalar; else the scope fails.
Outputs cond(const Scope& scope, const Input& pred, const BranchFn& then_fn,
             const BranchFn& else_fn);

struct CaseOptions {
  // At most one predicate may be true; checked when the graph runs.
  bool exclusive = false;
};

// The branch of the first predicate that is true, or the default. Without a
// default (null), one must be true, which is checked when the graph runs. The
// predicates are bool scalars; all of them are computed.
Outputs case_(const Scope& scope,
              const std::vector<std::pair<Input, BranchFn>>& cases,
              const BranchFn& default_fn, const CaseOptions& options = {});

// The branch of that number; out of range, the default or, without one (null),
// the last. `index` is an int32 or int64 scalar. Takes about
// log2(branches.size()) comparisons.
Outputs switch_case(const Scope& scope, const Input& index,
                    const std::vector<BranchFn>& branches,
                    const BranchFn& default_fn = {});

using PredicateFn = std::function<Output(const Scope&, const Outputs& vars)>;
using BodyFn = std::function<Outputs(const Scope&, const Outputs& vars)>;

// What gradients keep of a loop's values, in place of those of all iterations.
// The rest is computed again, in segments of the loop.
struct Save {
  enum class Kind : uint8_t { kAll, kEvery, kLog };
  Kind kind = Kind::kAll;
  Input k = {};

  // The variables in every k-th iteration; an int32 or int64 scalar, which may
  // be computed. Less than 1 counts as 1. With the square root of the number of
  // iterations, as much is kept in all, and each is computed twice.
  static Save every(Input k) { return {Kind::kEvery, std::move(k)}; }
  // The variables in about log2(n) of n iterations at a time, each of which is
  // computed log2(n) / 2 times.
  static Save log() { return {Kind::kLog, {}}; }
};

// Attributes that say so in the graph: of the LoopCond "every", with the number
// where that is a constant, or "log"; of the Enter of another number, true.
inline constexpr std::string_view kSaveAttr = "_save";
inline constexpr std::string_view kSaveEveryAttr = "_save_every";

struct WhileOptions {
  int64_t parallel_iterations = 10;  // at least 1
  // An int32 or int64 scalar; no bound where it is left out. Adds a counter
  // to the loop's variables, but not to its results.
  Input maximum_iterations = {};
  // Of each variable, what its shape is in every iteration. Left out: the
  // shapes with which the variables enter.
  std::vector<PartialShape> shape_invariants = {};
  // The same by path, for those that differ from that: "state.h" of a
  // structure (structured_control_flow.h), "[1]" of a list of variables.
  std::map<std::string, PartialShape> shapes = {};
  // What gradients of the loop keep.
  Save save = {};
  // Where the scope has no named(): "while".
  std::string name = {};
  // Accepted for compatibility; without effect.
  bool swap_memory = false;
};

// Repeats `body` while `predicate` is true, and returns the last values of
// the variables. At least one variable. The body must return one tensor for
// each, of its type and with a shape that is known to satisfy its invariant;
// else the scope fails and says which variable and why.
Outputs while_loop(const Scope& scope, const PredicateFn& predicate,
                   const BodyFn& body, const Inputs& vars,
                   const WhileOptions& options = {});

}  // namespace tagflow::graph
