// Copies of a graph in which tensors take the place of others.
#pragma once

#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::net {

// Lets the nodes that read the tensor `from` read `to` instead, but for the
// node of `to`. InvalidArgument if their types differ; then the graph is of no
// use. Thread-compatible.
Status replace_readers(graph::Graph& graph, const graph::Endpoint& from,
                       const graph::Endpoint& to);

}  // namespace tagflow::net
