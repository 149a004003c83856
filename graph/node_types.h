// Infers the types of a node's ports from its op's definition.
#pragma once

#include <span>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// The maximum number of outputs of one node, and of all nodes of a graph: an
// attribute in a small file must not cause unbounded allocation.
inline constexpr int64_t kMaxNodeOutputs = int64_t(1) << 16;
inline constexpr int64_t kMaxGraphOutputs = int64_t(1) << 22;

struct PortTypes {
  DataTypes inputs;
  DataTypes outputs;
};

// Completes `attrs`: infers those that the inputs determine, fills in defaults,
// and gives empty lists their type. Then checks attributes and inputs against
// `def`. An open input (a null node) gets its type from the attributes. A
// reference is accepted for its base type. InvalidArgument names the attribute
// or input; the caller adds the node.
Result<PortTypes> infer_types(const OpDef& def,
                              std::span<const Endpoint> inputs, AttrMap& attrs);

}  // namespace tagflow::graph
