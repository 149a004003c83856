// Limits of a graph that is built through scopes.
#pragma once

#include "graph/builder/scope.h"
#include "graph/limits.h"

namespace tagflow::graph {

// Ops of the scope, and of all that share its graph and status, fail with
// ResourceExhausted once the graph has so many nodes, and with the error of the
// budget once that has ended. autodiff::gradients() keeps these limits, too.
// Thread-compatible, like the graph.
void limit_growth(const Scope& scope, const Limits& limits);

// By default the number of nodes is not limited.
const Limits& growth_limits(const Scope& scope);

}  // namespace tagflow::graph
