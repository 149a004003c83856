// The order in which a graph's nodes can run.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Data input `index` of `node` is a loop's back edge: from a NextIteration
// into a Merge.
bool is_back_edge(const Node& node, size_t index);

// Every node after its inputs, back edges apart; otherwise as inserted.
// InvalidArgument where other edges form a cycle, naming its nodes.
Result<std::vector<Node*>> topological_order(const Graph& graph);

// The same for things that are not nodes yet: `inputs[i]` lists what comes
// before i; `name` is for the message.
Result<std::vector<size_t>> topological_order(
    const std::vector<std::vector<size_t>>& inputs,
    const std::function<std::string_view(size_t)>& name);

}  // namespace tagflow::graph
