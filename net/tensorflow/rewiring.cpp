#include "net/tensorflow/rewiring.h"

namespace tagflow::net {

Status replace_readers(graph::Graph& graph, const graph::Endpoint& from,
                       const graph::Endpoint& to) {
  for (graph::Node* const node : graph.nodes()) {
    if (node == to.node) continue;
    for (int i = 0; i < node->num_inputs(); ++i)
      if (node->inputs()[size_t(i)] == from)
        TAGFLOW_RETURN_IF_ERROR(graph.set_input(node, i, to));
  }
  return {};
}

}  // namespace tagflow::net
