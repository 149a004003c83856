// The variables that a graph declares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::actors {

struct GraphVariable {
  // Its name in the state. For a named container, it is "container/name".
  std::string name;
  std::string container;  // empty: the unnamed one
  // The node that makes it, or the first of several, with the resolved
  // `shared_name`; without inputs.
  graph::NodeDef maker;
  DataType dtype = DataType::kInvalid;
  PartialShape shape;  // as declared

  // Whether it is a reference variable of TensorFlow 1; otherwise it is a
  // resource.
  bool is_reference() const;
};

// The variables of the graph and of its functions, ordered by name, without
// duplicates. Unnamed variables, and those whose type depends on a function's
// call, are left out. InvalidArgument if two variables have the same name: if
// their kinds differ, or for "b" of the container "a" and "a/b" of the unnamed
// one. Thread-safe.
Result<std::vector<GraphVariable>> find_variables(const graph::Graph& graph);

// Lists the first few texts, and the number of others, for messages.
std::string list_some(std::span<const std::string> texts);

}  // namespace tagflow::actors
