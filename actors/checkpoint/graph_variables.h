// The variables that a graph declares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::actors {

struct GraphVariable {
  // By which the state has it; one of a container that has a name has that
  // before it, and a slash.
  std::string name;
  std::string container;  // empty: the one without a name
  // The node that makes it, or the first of several, with what `shared_name`
  // came to; without inputs.
  graph::NodeDef maker;
  DataType dtype = DataType::kInvalid;
  PartialShape shape;  // as declared

  // As TensorFlow 1 has them; else a resource.
  bool is_reference() const;
};

// Those of the graph and of its functions, by name, each once. Not those
// without a name, nor any whose type depends on who calls a function.
// InvalidArgument where two have one name: of different kinds, or "b" of the
// container "a" and "a/b" of the one without a name. Thread-safe.
Result<std::vector<GraphVariable>> find_variables(const graph::Graph& graph);

// For messages: the first few, and how many more there are.
std::string list_some(std::span<const std::string> texts);

}  // namespace tagflow::actors
