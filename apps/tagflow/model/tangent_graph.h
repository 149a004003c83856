// Adds named tangents to a graph, for `tagflow gradients --forward`.
#pragma once

#include <string>
#include <vector>

#include "apps/tagflow/model/gradient_graph.h"

namespace tagflow::apps {

// The default prefix of tangent names: "jvp_0", ...
inline constexpr const char* kTangentPrefix = "jvp";

struct TangentRequest {
  // "name:port" or "name".
  std::vector<std::string> ys;
  std::vector<std::string> xs;
  // The tangents of the xs, one for each. If empty, Placeholders "prefix_x_0",
  // ... are added, which must be fed.
  std::vector<std::string> tangents;
  // Order k has the tangents of those of order k - 1, along the same ones. At
  // least 1.
  int order = 1;
  // The tangent of ys[i] is fetched as "prefix_i".
  std::string prefix = kTangentPrefix;
};

struct NamedTangents {
  std::vector<NamedGradient> of_ys;
  graph::Outputs of_xs;
};

// Adds the tangents of that order to the graph. Returns errors like
// add_gradients() and those of autodiff::jvp(), and InvalidArgument if a
// Placeholder is needed for a variable of unknown type.
Result<NamedTangents> add_tangents(graph::Graph& graph,
                                   const TangentRequest& request,
                                   const graph::Limits& limits = {});

}  // namespace tagflow::apps
