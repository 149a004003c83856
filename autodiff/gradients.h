// Gradients: what extends a graph with its derivatives.
//
//   const std::vector<Gradient> grads = gradients(s, {loss}, {w, b});
//   ops::sub(s, w, ops::mul(s, 0.1, grads[0].values));
//
// The graph may be built here or come from a file; loops, conditionals,
// functions, TensorArrays and lists are differentiated to any order, since what
// is made is a plain graph again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autodiff/explain.h"
#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct GradientOptions {
  // The gradients of each y, of its shape; left out, or invalid: ones.
  graph::Outputs grad_ys = {};
  // Taken for constants.
  graph::Outputs stop_gradients = {};
  // Where given, what the gradient needs of the values of loops is added to it.
  std::vector<KeptValue>* kept = nullptr;
  // Of loops, by the names of their frames, what gradients keep, in place of
  // what WhileOptions::save said: "all", "every:K" or "log".
  std::map<std::string, std::string> save = {};
  // Zeros for an x on which no y depends, in place of an invalid Gradient.
  bool zeros_if_unconnected = false;
  // Whether it is checked that each gradient is live exactly where its tensor
  // is, which costs about as much again: an Internal error where not.
  // For tests: it also reports sums of which it is only not seen that all parts
  // are as live.
  bool check_liveness = false;
};

// The gradients of the sum of all elements of all ys, by each of xs. An x is a
// tensor of a floating-point or complex type, or a variable: its handle or its
// reference, whose gradient is the sum of those of all reads. Each read counts
// as the version that it saw; how a value that was assigned came about does not
// matter.
//
// Calls, conditionals and loops of TensorFlow 2 (`While`, `If`) between xs and
// ys are replaced by primitives, once; their nodes stay, with their names, as
// Identities of what replaced them. What saves values for the gradient is added
// to the loops of the graph, but runs only where a gradient is fetched.
//
// In the body of a loop, ys of an iteration may be given, with xs of the same
// one, or from outside: the gradient by these is that of the iteration alone,
// and leads by what is the same in all iterations. The scope fails, and all
// gradients are invalid, where
//   - an op between an x and a y has no rule (Unimplemented, with the path),
//   - a y or x has no derivative for its type, or they are in different loops,
//   - a loop between them is none whose iterations end by its LoopCond.
std::vector<Gradient> gradients(const graph::Scope& scope,
                                const graph::Outputs& ys,
                                const graph::Outputs& xs,
                                const GradientOptions& options = {});

// The same with sparse gradients made dense.
graph::Outputs dense_gradients(const graph::Scope& scope,
                               const graph::Outputs& ys,
                               const graph::Outputs& xs,
                               const GradientOptions& options = {});

}  // namespace tagflow::autodiff
