// Adds named gradients to a graph, for `tagflow gradients` and for recorded
// cases with gradients.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/explain.h"
#include "graph/builder/scope.h"
#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::apps {

// The default prefix of gradient names: "grad_0", ...
inline constexpr const char* kGradientPrefix = "grad";
// A limit on the order: the graph grows by a factor with each order.
inline constexpr int kMaxGradientOrder = 100;

struct GradientRequest {
  // "name:port" or "name".
  std::vector<std::string> ys;
  std::vector<std::string> xs;
  // Order k differentiates the sum of all elements of the gradients of order
  // k - 1 by the same xs. At least 1.
  int order = 1;
  // The gradient by xs[i] is fetched as "prefix_i".
  std::string prefix = kGradientPrefix;
  // As autodiff::GradientOptions::save.
  std::map<std::string, std::string> save = {};
};

struct NamedGradient {
  graph::Output output;  // of an Identity, dense
  // False if the tensor that was differentiated last does not depend on the
  // x: the gradient is zeros.
  bool is_connected = true;
};

// How the values of loops get to the gradients of the requested order.
using KeptValues = std::vector<autodiff::KeptValue>;

// Adds the gradients of that order to the graph; one for each of xs. Returns
// AlreadyExists, and leaves the graph unchanged, if it has a node of such a
// name. After any other error, of find_outputs() or autodiff::gradients(), the
// graph is unusable; ResourceExhausted as soon as it is too large. `kept`,
// unless null, receives the values of loops that the last order needs.
Result<std::vector<NamedGradient>> add_gradients(
    graph::Graph& graph, const GradientRequest& request,
    KeptValues* kept = nullptr, const graph::Limits& limits = {});

// Limits what is built through the scope, so that its graph with its functions
// keeps the limits of those who read it. ResourceExhausted if it does not.
Status limit_graph(const graph::Scope& scope, const graph::Limits& limits);

// The tensors of these names. Errors are those of Graph::endpoint(), after
// `prefix`, and explain why a node inside a function cannot be used.
Result<graph::Outputs> find_outputs(const graph::Graph& graph,
                                    const std::vector<std::string>& names,
                                    std::string_view prefix);

}  // namespace tagflow::apps
