// What gradients() and jvp() are called with: checked, and the graph made
// ready.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/call_table.h"
#include "autodiff/paths.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

using graph::Output;
using graph::Outputs;

struct Arguments {
  Outputs ys, xs;
  Outputs stop_gradients;

  // An error where there are no ys, one of these is no tensor of the scope's
  // graph, or a y or x is of a type that has no derivative.
  Status check(const graph::Scope& scope) const;
};

// A graph of which derivatives are made, and what is between xs and ys.
struct Prepared {
  std::unique_ptr<CallTable> calls;  // of the analysis
  std::unique_ptr<Analysis> analysis;
  FrameId frame;             // where all ys are
  std::vector<Endpoint> xs;  // there, or in frames around it
  Paths::Set stops;
  std::unique_ptr<Paths> paths;
};

// Makes of the graph between xs and ys one of ops that have rules, and loops:
// calls are replaced by primitives or, if they are recursive, by calls that
// keep records; mutable stacks by persistent ones. An error of check(), or of
// what is made; where an x is in a frame that the ys are outside of, or values
// get from one to the other in a way that is not seen.
Result<Prepared> prepare(const graph::Scope& scope, const Arguments& arguments);

// The same of tensors that were checked. `save` is that of GradientOptions.
struct Tensors {
  std::vector<Endpoint> ys, xs;
  std::vector<Endpoint> stops;  // taken for constants
};
Result<Prepared> prepare(const graph::Scope& scope, const Tensors& tensors,
                         const std::map<std::string, std::string>& save = {});

std::vector<Endpoint> endpoints_of(const Outputs& outputs);

// An error where `given`, which goes with `like`, is not of this type and
// shape: `what` and `like_what` are for the message.
Status check_kind(const Output& given, DataType dtype,
                  const PartialShape& shape, const Output& like,
                  std::string_view what, std::string_view like_what);
// The same of the type and shape of `like`; of a variable's handle that of its
// value counts, where it is known.
Status check_same_kind(const Analysis& analysis, const Output& given,
                       const Output& like, std::string_view what,
                       std::string_view like_what);

}  // namespace tagflow::autodiff
