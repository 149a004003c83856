// RemoteCall: calls of functions on a device that a tensor names.
#pragma once

#include "graph/graph.h"

namespace tagflow::graph {

// Turns each RemoteCall of the graph, whose target is a constant, into a
// StatefulPartitionedCall on that device; nodes of the function that name no
// device are then placed there. Unimplemented if a target is not a constant,
// or an Identity of one; errors of DeviceName::parse() otherwise. The errors
// name the node.
Status localize_remote_calls(Graph& graph);

}  // namespace tagflow::graph
