// The types of a node's ports, from its op's definition.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// The most outputs that one node, and all nodes of a graph, may have: a small
// file must not ask for unbounded memory by an attribute.
inline constexpr int64_t kMaxNodeOutputs = int64_t(1) << 16;
inline constexpr int64_t kMaxGraphOutputs = int64_t(1) << 22;

struct PortTypes {
  DataTypes inputs;
  DataTypes outputs;
};

// Completes `attrs`: infers those that the inputs determine, fills in
// defaults, gives empty lists their type. Then checks attributes and inputs
// against `def`. Inputs may be open (a null node): such an input has the type
// that the attributes say. A reference is accepted where its base type is
// wanted. InvalidArgument about an attribute or input; the caller names the
// node.
Result<PortTypes> infer_types(const OpDef& def,
                              std::span<const Endpoint> inputs, AttrMap& attrs);

}  // namespace tagflow::graph
