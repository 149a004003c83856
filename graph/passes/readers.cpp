#include "graph/passes/readers.h"

namespace tagflow::graph {

Readers::Readers(const Program& program) : uses_(program.graph.end_id()) {
  for (Node* node : program.graph.nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Endpoint& input = node->inputs()[i];
      if (input.node == nullptr) continue;
      Use& use = uses_[input.node->id()];
      if (input.port != 0) use.has_others = true;
      if (use.is_only || input.port != 0) {
        use.is_shared = true;
      } else {
        use.is_only = true;
        use.reader = {node, i};
      }
    }
    for (const Node* control : node->control_inputs()) share(*control);
  }
  for (const Endpoint& fetch : program.fetches)
    if (fetch.node != nullptr) {
      share(*fetch.node);
      if (fetch.port != 0) uses_[fetch.node->id()].has_others = true;
    }
  for (const Node* target : program.targets) share(*target);
}

std::optional<Readers::Reader> Readers::only_reader(const Node& node) const {
  if (node.id() >= uses_.size()) return {};
  const Use& use = uses_[node.id()];
  if (!use.is_only || use.is_shared) return {};
  return use.reader;
}

bool Readers::only_first_output(const Node& node) const {
  return node.id() < uses_.size() && !uses_[node.id()].has_others;
}

}  // namespace tagflow::graph
