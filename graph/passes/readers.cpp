#include "graph/passes/readers.h"

#include <algorithm>

#include "graph/analysis/frames.h"
#include "graph/analysis/polls.h"
#include "graph/analysis/whole_loops.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {

LastWaits::LastWaits(const Program& program) {
  const auto nodes = program.graph.nodes();
  const auto is_push = [](const Node* node) {
    return node->op() == "TensorListPushBack";
  };
  if (std::ranges::none_of(nodes, is_push)) return;
  readers_.resize(program.graph.end_id());
  const auto add = [&](const Node* source, const Node* reader) {
    if (source->is_const() || source->is_identity() || is_push(source))
      readers_[source->id()].push_back(reader);
  };
  for (const Node* node : nodes) {
    for (const Endpoint& input : node->inputs())
      if (input.node != nullptr) add(input.node, node);
    for (const Node* control : node->control_inputs()) add(control, node);
  }
  for (const Endpoint& fetch : program.fetches)
    if (fetch.node != nullptr) add(fetch.node, nullptr);
  for (const Node* target : program.targets) add(target, nullptr);
  constexpr int kDepth = 4;
  for (const Node* node : nodes)
    if (node->is_const() && !node->control_inputs().empty() &&
        std::ranges::all_of(readers_[node->id()], [&](const Node* reader) {
          return reader != nullptr && is_push(reader) &&
                 goes_on_lists(*reader, kDepth);
        }))
      waits_.insert(*node);
}

bool LastWaits::goes_on_lists(const Node& node, int depth) const {
  if (depth == 0) return false;
  return std::ranges::all_of(readers_[node.id()], [&](const Node* reader) {
    return reader != nullptr &&
           (reader->is_next_iteration() ||
            (reader->is_identity() && goes_on_lists(*reader, depth - 1)));
  });
}

struct Readers::Lives {
  Lives(const Graph& graph, FrameMap map)
      : frames(std::move(map)), facts(find_facts(graph, frames)) {}

  const FrameMap frames;
  const GraphFacts facts;
};

bool Readers::are_alike(const Node& node, const Node& reader) const {
  return lives_ == nullptr ||
         (lives_->frames.of(node) == lives_->frames.of(reader) &&
          lives_->facts.liveness->of(node) ==
              lives_->facts.liveness->of(reader));
}

Readers::Readers(const Program& program, Waits waits)
    : uses_(program.graph.end_id()) {
  std::optional<LastWaits> last;
  if (waits == Waits::kNotLast) last.emplace(program);
  if (last && !last->empty() &&
      std::ranges::none_of(program.graph.nodes(), [](const Node* node) {
        // Nodes after the list may be waited for without edges.
        return hides_deadness(*node) || may_end_wait(*node);
      }))
    if (Result<FrameMap> frames = FrameMap::build(program.graph); frames.ok())
      lives_ =
          std::make_shared<Lives>(program.graph, std::move(frames).value());
  for (Node* node : program.graph.nodes()) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Endpoint& input = node->inputs()[i];
      if (input.node == nullptr) continue;
      Use& use = uses_[input.node->id()];
      if (input.port != 0) use.has_others = true;
      (input.port == 0 ? use.reads : others_[input]).add({node, i});
    }
    if (lives_ != nullptr && last->contains(*node)) continue;
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
  if (reads.first.node == nullptr || reads.is_more ||
      !are_alike(*output.node, *reads.first.node))
    return {};
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
  Node* const reader = use.reads.first.node;
  return use.is_awaited || use.reads.has_others || reader == nullptr ||
                 !are_alike(node, *reader)
             ? nullptr
             : reader;
}

bool Readers::only_first_output(const Node& node) const {
  return node.id() < uses_.size() && !uses_[node.id()].has_others;
}

}  // namespace tagflow::graph
