// A graph with gradients that have names: what `tagflow gradients` writes, and
// what recorded cases of gradients run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/explain.h"
#include "graph/builder/output.h"
#include "graph/graph.h"

namespace tagflow::apps {

// What gradients have for names where nothing else is said: "grad_0", ...
inline constexpr const char* kGradientPrefix = "grad";
// A larger order is a slip: the graph grows by a factor with each.
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
  // False where what was differentiated last does not depend on the x: the
  // gradient is zeros.
  bool is_connected = true;
};

// How the values of loops get to the gradients of the order that was asked for.
using KeptValues = std::vector<autodiff::KeptValue>;

// Adds the gradients of that order to the graph; one for each of xs.
// AlreadyExists, and the graph is as before, where it has a node of such a
// name. After another error, one of find_outputs() or autodiff::gradients(), it
// is of no use. `kept`, where given, gets what the last order needs of loops.
Result<std::vector<NamedGradient>> add_gradients(graph::Graph& graph,
                                                 const GradientRequest& request,
                                                 KeptValues* kept = nullptr);

// The tensors of these names. Errors as Graph::endpoint(), with `prefix` before
// them, and with why a node inside of a function cannot be had.
Result<graph::Outputs> find_outputs(const graph::Graph& graph,
                                    const std::vector<std::string>& names,
                                    std::string_view prefix);

}  // namespace tagflow::apps
