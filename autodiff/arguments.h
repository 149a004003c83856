// The arguments of gradients() and jvp(): checks them, and prepares the graph.
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

  // Fails if there are no ys, if one of the tensors is not in the scope's
  // graph, or if the type of a y or x has no derivative.
  Status check(const graph::Scope& scope) const;
};

// A graph that is differentiated, with the paths between xs and ys.
struct PreparedGraph {
  std::unique_ptr<CallTable> calls;  // of the analysis
  std::unique_ptr<Analysis> analysis;
  FrameId frame;             // where all ys are
  std::vector<Endpoint> xs;  // there, or in frames around it
  Paths::Set stops;
  std::unique_ptr<Paths> paths;
};

// Rewrites the graph between xs and ys into loops and ops that have rules.
// Calls are replaced by primitives or, if they are recursive, by calls that
// keep records; mutable stacks are replaced by persistent ones. Fails if
// check() or a replacement fails, if an x is in a frame that does not
// contain the ys, or if values get from an x to a y in a way that cannot be
// followed.
Result<PreparedGraph> prepare(const graph::Scope& scope,
                              const Arguments& arguments);

// Does the same for tensors that were checked. `save` is as in GradientOptions.
struct Tensors {
  std::vector<Endpoint> ys, xs;
  std::vector<Endpoint> stops;  // taken for constants
};
Result<PreparedGraph> prepare(
    const graph::Scope& scope, const Tensors& tensors,
    const std::map<std::string, std::string>& save = {});

std::vector<Endpoint> endpoints_of(const Outputs& outputs);

// Fails if `given`, which belongs to `like`, has another type or shape.
// `what` and `like_what` are for the message.
Status check_kind(const Output& given, DataType dtype,
                  const PartialShape& shape, const Output& like,
                  std::string_view what, std::string_view like_what);
// Does the same with the type and shape of `like`. For a variable's handle,
// these are the type and shape of its value, if they are known.
Status check_same_kind(const Analysis& analysis, const Output& given,
                       const Output& like, std::string_view what,
                       std::string_view like_what);

}  // namespace tagflow::autodiff
