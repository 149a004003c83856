// Finds the nodes that a run needs.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/node_set.h"

namespace tagflow::graph {

// The nodes that the fetches and targets need: they themselves and all nodes
// that they depend on, along data, control and back edges. An edge from a fed
// output is not followed, nor a control edge from a fed Placeholder; so a fed
// fetch needs no nodes. REQUIRES: all are in this graph.
NodeSet prune(const Graph& graph, std::span<const Endpoint> fetches,
              std::span<Node* const> targets, std::span<const Endpoint> feeds);
// As prune(), but the nodes are a list in order of insertion.
std::vector<Node*> needed_nodes(const Graph& graph,
                                std::span<const Endpoint> fetches,
                                std::span<Node* const> targets,
                                std::span<const Endpoint> feeds);

}  // namespace tagflow::graph
