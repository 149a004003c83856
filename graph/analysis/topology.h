// Topological orders of a graph's nodes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Whether data input `index` of `node` is a loop's back edge, from a
// NextIteration into a Merge.
bool is_back_edge(const Node& node, size_t index);

// Every node comes after its inputs, except over back edges; otherwise in order
// of insertion. InvalidArgument with the nodes, if other edges form a cycle.
Result<std::vector<Node*>> topological_order(const Graph& graph);
// The order of the nodes from position `first` on. REQUIRES: no earlier node
// has one of these as input, except over back edges.
Result<std::vector<Node*>> topological_order(const Graph& graph, size_t first);

// By node id: the nodes that read an output of the node, or wait for it.
using Successors = std::vector<std::vector<const Node*>>;
Successors find_successors(const Graph& graph);
// By node id: whether the node is in `nodes` or comes after one of them. If
// `is_end` is given, edges from nodes for which it is true are not followed.
std::vector<bool> all_after(
    const Successors& successors, std::vector<const Node*> nodes,
    const std::function<bool(const Node&)>& is_end = nullptr);

}  // namespace tagflow::graph
