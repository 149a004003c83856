// Graphs as text, for tests of structure.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tagflow::graph {

// A line for each node in order of insertion: "name = Op(inputs)"; inputs as
// in a GraphDef, a constant Enter marked with '*'.
inline std::string dump(const Graph& graph) {
  std::string text;
  for (const Node* node : graph.nodes()) {
    const NodeDef def = Graph::to_def(*node);
    std::string inputs;
    for (const std::string& input : def.inputs)
      inputs += (inputs.empty() ? "" : ", ") + input;
    const auto constant = def.attrs.find("is_constant");
    const bool marked =
        constant != def.attrs.end() && constant->second == AttrValue(true);
    text += fmt::format("{} = {}{}({})\n", def.name, def.op, marked ? "*" : "",
                        inputs);
  }
  return text;
}

// The line of one node.
inline std::string dump(const Graph& graph, std::string_view name) {
  const std::string text = "\n" + dump(graph);
  const size_t start = text.find(fmt::format("\n{} = ", name));
  if (start == std::string::npos) return "no such node";
  return text.substr(start + 1, text.find('\n', start + 1) - start - 1);
}

}  // namespace tagflow::graph
