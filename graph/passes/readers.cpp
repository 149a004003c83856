#include "graph/passes/readers.h"

namespace tagflow::graph {

Readers::Readers(const Program& program) : uses_(program.graph.end_id()) {
  for (Node* node : program.graph.nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Endpoint& input = node->inputs()[i];
      if (input.node == nullptr) continue;
      Use& use = uses_[input.node->id()];
      if (input.port != 0) use.has_others = true;
      (input.port == 0 ? use.reads : others_[input]).add({node, i});
    }
    for (const Node* control : node->control_inputs())
      uses_[control->id()].is_awaited = true;
  }
  for (const Endpoint& fetch : program.fetches)
    if (fetch.node != nullptr) {
      Use& use = uses_[fetch.node->id()];
      use.is_awaited = true;
      if (fetch.port != 0) use.has_others = true;
    }
  for (const Node* target : program.targets)
    uses_[target->id()].is_awaited = true;
}

std::optional<Readers::Reader> Readers::only_reader(const Node& node) const {
  if (!only_first_output(node)) return {};
  return only_reader(Endpoint{const_cast<Node*>(&node), 0});
}

std::optional<Readers::Reader> Readers::only_reader(
    const Endpoint& output) const {
  if (output.node->id() >= uses_.size()) return {};
  const Use& use = uses_[output.node->id()];
  if (use.is_awaited) return {};
  const auto other = others_.find(output);
  if (output.port != 0 && other == others_.end()) return {};
  const Reads& reads = output.port == 0 ? use.reads : other->second;
  if (reads.first.node == nullptr || reads.is_more) return {};
  return reads.first;
}

bool Readers::is_read(const Endpoint& output) const {
  if (output.node->id() >= uses_.size()) return false;
  if (output.port != 0) return others_.contains(output);
  return uses_[output.node->id()].reads.first.node != nullptr;
}

Node* Readers::only_reading_node(const Node& node) const {
  if (!only_first_output(node)) return nullptr;
  const Use& use = uses_[node.id()];
  return use.is_awaited || use.reads.has_others ? nullptr
                                                : use.reads.first.node;
}

bool Readers::only_first_output(const Node& node) const {
  return node.id() < uses_.size() && !uses_[node.id()].has_others;
}

}  // namespace tagflow::graph
