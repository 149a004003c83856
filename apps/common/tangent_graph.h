// A graph with tangents that have names: what `tagflow gradients --forward`
// writes.
#pragma once

#include <string>
#include <vector>

#include "apps/common/gradient_graph.h"

namespace tagflow::apps {

// What tangents have for names where nothing else is said: "jvp_0", ...
inline constexpr const char* kTangentPrefix = "jvp";

struct TangentRequest {
  // "name:port" or "name".
  std::vector<std::string> ys;
  std::vector<std::string> xs;
  // Along which the xs change, one for each; without any, Placeholders are
  // added, which are called "prefix_x_0", ... and are to be fed.
  std::vector<std::string> tangents;
  // Order k changes the tangents of order k - 1 along the same ones. At least
  // 1.
  int order = 1;
  // The tangent of ys[i] is fetched as "prefix_i".
  std::string prefix = kTangentPrefix;
};

struct NamedTangents {
  std::vector<NamedGradient> of_ys;
  graph::Outputs of_xs;
};

// Adds the tangents of that order to the graph. Errors as add_gradients(), and
// of autodiff::jvp(); InvalidArgument where the type of a variable is not known
// for which a Placeholder is to be made.
Result<NamedTangents> add_tangents(graph::Graph& graph,
                                   const TangentRequest& request);

}  // namespace tagflow::apps
